"""The client of a file transfer: a Job that downloads one file, trial after trial."""

from tierbench.api.benchmark import Tls
from tierbench.api.file_transfer import FileTransferSpec
from tierbench.api.quantity import parse_size
from tierbench.workloads.access import SERVER_NAME, address
from tierbench.workloads.agent import CA_FILE, TOKEN_FILE, agent_url
from tierbench.workloads.client_job import client_job, secret_items
from tierbench.workloads.names import Owner
from tierbench.workloads.nginx import PORT_NAMES, PORTS, file_name
from tierbench.workloads.plan import Case
from tierbench.workloads.workload import ClientSite, Images, Manifest, RunningServer


def server_url(spec: FileTransferSpec, server: RunningServer, tls: Tls) -> str:
    """Where the client finds the files, by the access that the spec asks for."""
    scheme = "http" if tls is Tls.NONE else "https"
    return f"{scheme}://{address(spec.access, server, PORT_NAMES[tls], PORTS[tls])}"


def arguments(spec: FileTransferSpec, case: Case, site: ClientSite, server: RunningServer) -> list[str]:
    """The command line of the engine."""
    tls = Tls(case.levels["tls"])
    size = parse_size(case.levels["fileSize"])
    options = {
        "url": f"{server_url(spec, server, tls)}/{file_name(size)}",
        "size": size,
        "trials": f"{site.trials[0]}-{site.trials[-1]}",
        "warmup": spec.warmup,
        "concurrency": case.levels["concurrency"],
        "cache-state": case.levels["cacheState"],
        "read-timeout-milliseconds": spec.retry.read_timeout_milliseconds,
        "attempts": spec.retry.attempts,
        "wait-milliseconds": spec.retry.wait_milliseconds,
        "agent": agent_url(server),
        "agent-token-file": TOKEN_FILE,
        "tls": tls.value,
        "output": "json",
        "termination-log": "/dev/termination-log",
    }
    if tls is not Tls.NONE:
        options |= {"ca-file": CA_FILE, "server-name": SERVER_NAME}
    flags = [f"--{name}={value}" for name, value in options.items()]
    return ["download", *flags, *(["--verify-digest"] if spec.verify_digest else [])]


def download_job(
    owner: Owner,
    spec: FileTransferSpec,
    images: Images,
    site: ClientSite,
    case: Case,
    server: RunningServer,
) -> Manifest:
    """The Job that downloads one file, trial after trial."""
    keys = ("agent-token",) if case.levels["tls"] == Tls.NONE else ("agent-token", "ca.crt")
    credentials = (secret_items(server.site.attached, *keys),)
    return client_job(owner, images, site, case, images.client, arguments(spec, case, site, server), credentials)
