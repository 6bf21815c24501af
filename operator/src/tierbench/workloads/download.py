"""The client of a file transfer: a Job that downloads one file, trial after trial."""

from typing import Final

from tierbench.api.benchmark import Tls
from tierbench.api.file_transfer import Access, FileTransferSpec
from tierbench.api.quantity import parse_size
from tierbench.plan import Case
from tierbench.workloads.names import LABEL_ATTEMPT, LABEL_CASE, LABEL_ROLE, LABEL_RUN, ROLE_CLIENT, Owner
from tierbench.workloads.nginx import AGENT_PORT, CA_FILE, CREDENTIALS, PORT_NAMES, PORTS, TOKEN_FILE
from tierbench.workloads.pods import POD_SECURITY, RESTRICTED, placement, pod_basics
from tierbench.workloads.workload import ClientSite, Images, Manifest, RunningServer

SERVER_NAME: Final = "server.tierbench.internal"


def server_url(spec: FileTransferSpec, server: RunningServer, tls: Tls) -> str:
    """Where the client finds the files, by the access that the spec asks for."""
    scheme = "http" if tls is Tls.NONE else "https"
    match spec.access:
        case Access.POD_IP:
            host, port = server.pod_ip, PORTS[tls]
        case Access.HOST_NETWORK:
            host, port = server.host_ip, PORTS[tls]
        case Access.CLUSTER_IP:
            metadata = server.service["metadata"]
            host, port = f"{metadata['name']}.{metadata['namespace']}.svc", PORTS[tls]
        case Access.NODE_PORT:
            host, port = server.host_ip, _node_port(server, tls)
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _node_port(server: RunningServer, tls: Tls) -> int:
    ports = {port["name"]: int(port["nodePort"]) for port in server.service["spec"]["ports"]}
    return ports[PORT_NAMES[tls]]


def arguments(spec: FileTransferSpec, case: Case, site: ClientSite, server: RunningServer) -> list[str]:
    """The command line of the engine."""
    tls = Tls(case.levels["tls"])
    size = parse_size(case.levels["fileSize"])
    options = {
        "url": f"{server_url(spec, server, tls)}/{size}.bin",
        "size": size,
        "trials": f"{site.trials[0]}-{site.trials[-1]}",
        "warmup": spec.warmup,
        "concurrency": case.levels["concurrency"],
        "cache-state": case.levels["cacheState"],
        "read-timeout-milliseconds": spec.retry.read_timeout_milliseconds,
        "attempts": spec.retry.attempts,
        "wait-milliseconds": spec.retry.wait_milliseconds,
        "agent": f"http://{server.agent['spec']['clusterIP']}:{AGENT_PORT}",
        "agent-token-file": TOKEN_FILE,
        "tls": tls.value,
        "output": "json",
        "termination-log": "/dev/termination-log",
    }
    if tls is not Tls.NONE:
        options |= {"ca-file": CA_FILE, "server-name": SERVER_NAME}
    flags = [f"--{name}={value}" for name, value in options.items()]
    return ["download", *flags, *(["--verify-digest"] if spec.verify_digest else [])]


def client_job(
    owner: Owner,
    spec: FileTransferSpec,
    images: Images,
    site: ClientSite,
    case: Case,
    server: RunningServer,
) -> Manifest:
    """One Job, one pod, no second try by the Job controller: the operator goes on with the next trial by itself."""
    labels = {
        LABEL_RUN: str(site.run),
        LABEL_ROLE: ROLE_CLIENT,
        LABEL_CASE: str(case.number),
        LABEL_ATTEMPT: str(site.attempt),
    }
    metadata = owner.metadata(site.name, labels)
    secret_items = [{"key": "agent-token", "path": "agent-token"}]
    if case.levels["tls"] != Tls.NONE:
        secret_items.append({"key": "ca.crt", "path": "ca.crt"})
    container = {
        "name": "client",
        "image": images.client,
        "args": arguments(spec, case, site, server),
        "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}},
        "securityContext": RESTRICTED,
        "volumeMounts": [{"name": "credentials", "mountPath": CREDENTIALS, "readOnly": True}],
    }
    secret = {"secretName": server.site.name, "defaultMode": 0o440, "items": secret_items}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": site.deadline_seconds,
            "template": {
                "metadata": {"labels": metadata["labels"]},
                "spec": {
                    **pod_basics(images.pull_secrets),
                    **placement(site.node, site.node_class),
                    "restartPolicy": "Never",
                    "securityContext": POD_SECURITY,
                    "containers": [container],
                    "volumes": [{"name": "credentials", "secret": secret}],
                },
            },
        },
    }
