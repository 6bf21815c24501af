"""The manifests of a server with the agent next to it, and of the Job of one part of a client."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tierbench.api.benchmark import Access
from tierbench.api.contract import CONTRACT_VERSION
from tierbench.api.link import Link
from tierbench.api.node_class import ResultsPath
from tierbench.api.quantity import Resources
from tierbench.api.trial_plan import AgentAccess, PlanFields, PlannedTrial
from tierbench.workloads.networking import access_services, host_and_port, network_of, node_port, pod_host, service
from tierbench.workloads.plan import Case
from tierbench.workloads.pods import (
    AGENT_KEY,
    AGENT_PIN,
    AGENT_TOKEN,
    COLLECTOR_PIN,
    COLLECTOR_TOKEN,
    CREDENTIALS,
    CREDENTIALS_MOUNT,
    NO_SIDECARS,
    NOT_READY,
    POD_IP,
    POD_IP_VARIABLE,
    RESTRICTED,
    SERVER_READY_PERIOD_SECONDS,
    Directory,
    measured_resources,
    pin_to_node,
    planned_link,
    pod_basics,
    pod_security,
    secret_volume,
    sidecar_resources,
    with_link,
)
from tierbench.workloads.workload import (
    CLIENT,
    LABEL_ATTEMPT,
    LABEL_CASE,
    LABEL_PART,
    LABEL_PART_ROLE,
    LABEL_PARTS,
    LABEL_PASS,
    LABEL_RESULTS,
    LABEL_ROLE,
    LABEL_RUN,
    LABEL_WORK,
    ROLE_CLIENT,
    ClientInstance,
    Images,
    Manifest,
    Owner,
    RunningServer,
    ServerInstance,
    Target,
    server_labels,
)

AGENT_PORT: Final = 8090
_AGENT: Final = "agent"
CLIENT_KEYS: Final = (AGENT_TOKEN, AGENT_PIN)
"""The keys of a server's Secret that clients need to talk to its agent."""

_COLLECTOR: Final = "/collector"
_SPOOL: Final = "/spool"
_SPOOL_SIZE: Final = "16Mi"  # of which the operator reads half
_TIMEOUT_SECONDS: Final = 30
_CREDENTIALS: Final = "/agent"
PLAN: Final = "--plan="
# A stand-in is the pod of a member of an external class: it offers the work, and prints what the member measures.
STAND_IN: Final = "stand-in"
CLASS: Final = "--class="
SIGNATURE: Final = "--signature="
_TERMINATION_LOG: Final = "/dev/termination-log"
_REQUESTS: Final = {"cpu": "10m", "memory": "16Mi"}


def agent_url(access: Access, server: RunningServer, *, external: bool = False) -> str:
    """Returns the URL of a server's agent. It has an IP address, because a name lookup would cost time while measuring.

    Where clients need no Service to reach the server, they need none to reach its agent. An `external` client is
    outside the cluster.
    """
    if access is Access.NODE_PORT and external:
        return f"https://{host_and_port(server.host_ip, node_port(server.agent, _AGENT))}"
    by_service = access in (Access.CLUSTER_IP, Access.NODE_PORT)
    host = server.agent["spec"]["clusterIP"] if by_service else pod_host(access, server)
    return f"https://{host_and_port(host, AGENT_PORT)}"


def agent_container(
    images: Images,
    ports: Iterable[int],
    arguments: Sequence[str],
    resources: Resources | None,
    mounts: Sequence[Manifest] = (),
) -> dict[str, Any]:
    """Returns the container of an agent.

    `ports` and `resources` are those of the server, `arguments` say what else the agent samples. The container has no
    memory limit of its own, because the page cache that it fills is charged to it.
    """
    listen = ["--address", POD_IP, "--port", str(AGENT_PORT)]
    credentials = ["--token-file", f"{_CREDENTIALS}/{AGENT_TOKEN}", "--key-file", f"{_CREDENTIALS}/{AGENT_KEY}"]
    return {
        "name": "agent",
        **images.pulled(images.client),
        "args": ["agent", *listen, *credentials, "--ports", ",".join(map(str, ports)), *arguments],
        "env": [POD_IP_VARIABLE],
        "ports": [{"name": "agent", "containerPort": AGENT_PORT}],
        "readinessProbe": {
            "httpGet": {"path": "/healthz", "port": AGENT_PORT, "scheme": "HTTPS"},
            "periodSeconds": SERVER_READY_PERIOD_SECONDS,
            "failureThreshold": 30,
        },
        "resources": sidecar_resources(resources, _REQUESTS),
        "securityContext": RESTRICTED,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [*mounts, {"name": "agent", "mountPath": _CREDENTIALS, "readOnly": True}],
    }


def server_manifests(
    owner: Owner,
    images: Images,
    instance: ServerInstance,
    access: Access,
    ports: Mapping[str, int],
    agent: Manifest,
    *,
    containers: Sequence[Manifest],
    volumes: Sequence[Manifest],
    before: Sequence[Manifest] = (),
    share_processes: bool = False,
    protocols: Sequence[str] = ("TCP",),
    grace_seconds: int | None = None,
) -> tuple[Manifest, ...]:
    """Returns the Services of a server and its agent, and last the pod with both.

    `ports` are those that clients connect to, `before` are init containers. With `share_processes`, the agent can
    measure the CPU time of the server's processes. `grace_seconds` is the time that a container has to end.
    """
    labels = server_labels(instance.run, instance.slot)
    services = access_services(owner.metadata(instance.name, labels), labels, access, ports, protocols)
    fields = {
        **({"shareProcessNamespace": True} if share_processes else {}),
        **({"initContainers": list(before)} if before else {}),
        **({} if grace_seconds is None else {"terminationGracePeriodSeconds": grace_seconds}),
    }
    return (*services, *_agent_and_pod(owner, images, instance, access, [*containers, agent], volumes, fields))


def agent_manifests(
    owner: Owner, images: Images, instance: ServerInstance, access: Access, resources: Resources | None
) -> tuple[Manifest, ...]:
    """Returns an agent in a pod of its own, for a server that is not in one of tierbench's pods.

    Clients synchronize through the agent, and it samples the node.
    """
    agent = agent_container(images, (), ["--directory="], resources)
    return _agent_and_pod(owner, images, instance, access, [agent], (), {})


def _agent_and_pod(
    owner: Owner,
    images: Images,
    instance: ServerInstance,
    access: Access,
    containers: Sequence[Manifest],
    volumes: Sequence[Manifest],
    fields: Manifest,
) -> tuple[Manifest, Manifest]:
    """Returns the Service of an agent, and the pod with these containers, volumes and further fields."""
    labels = server_labels(instance.run, instance.slot)
    credentials = secret_volume("agent", instance, (AGENT_TOKEN, AGENT_KEY))
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**owner.metadata(instance.name, labels), "annotations": NO_SIDECARS},
        "spec": {
            **pod_basics(images),
            **pin_to_node(instance.node, instance.node_class),
            **network_of(access),
            **fields,
            "restartPolicy": "Always",
            "containers": list(containers),
            "volumes": [*volumes, credentials],
        },
    }
    # Clients outside the cluster reach the agent as they reach its server: it has a token, and a key that they know.
    outside = instance.external_clients and access is Access.NODE_PORT
    kind = (Access.NODE_PORT if outside else Access.CLUSTER_IP).value
    return service(owner.metadata(f"{instance.name}-agent", labels), labels, {_AGENT: AGENT_PORT}, kind), pod


def client_job(
    owner: Owner,
    images: Images,
    instance: ClientInstance,
    targets: Sequence[Target],
    image: str,
    plan: PlanFields,
    access: Access,
    resources: Resources | None,
    credentials: Sequence[Sequence[dict[str, Any]]],
    sysctls: Sequence[dict[str, str]] = (),
    directories: Sequence[Directory] = (),
    link: Link | None = None,
) -> Manifest:
    """Returns the Job of one part of a client.

    `credentials` are the sources of a projected volume per target. `sysctls` are those of the network of the pod: a pod
    in the network of its node cannot have any. There is no backoff limit, because the operator
    continues with the next trial itself. The Job has the number of the first case of its block.
    """
    results = instance.node_class.results
    labels = {
        LABEL_RUN: str(instance.run),
        LABEL_ROLE: ROLE_CLIENT,
        LABEL_CASE: str(instance.block),
        LABEL_PASS: str(instance.pass_number),
        LABEL_ATTEMPT: str(instance.attempt),
        LABEL_PART: str(instance.part.index),
        LABEL_PARTS: str(instance.parts),
        LABEL_PART_ROLE: instance.part.role.value,
        LABEL_WORK: str(instance.deadline_seconds - instance.away_seconds),
        **({} if results is ResultsPath.AUTO else {LABEL_RESULTS: results.value}),
    }
    metadata = owner.metadata(instance.name, labels)
    delivery, external = _delivery(owner, images, instance, targets), instance.node_class.external
    arguments = [*client_arguments(plan), *delivery.arguments]
    if external:
        arguments = _stand_in_arguments(arguments, owner, images, instance)
        resources = None
    container = {
        "name": CLIENT,
        **images.pulled(image),
        "args": arguments,
        **({"env": list(delivery.environment)} if delivery.environment else {}),
        "resources": measured_resources(resources),
        "securityContext": RESTRICTED,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [CREDENTIALS_MOUNT, *(directory.mount for directory in directories), *delivery.mounts],
    }
    sources = [
        _under(_folder(target.case), source)
        for target, found in zip(targets, credentials, strict=True)
        for source in found
    ]
    volume = {"name": "credentials", "projected": {"sources": sources, "defaultMode": 0o440}}
    network = {} if external else network_of(access)
    pod = {
        **pod_basics(images),
        **(_stand_in_place(instance, targets) if external else pin_to_node(instance.node, instance.node_class)),
        **network,
        "restartPolicy": "Never",
        "securityContext": {
            **pod_security(images.user),
            **({"sysctls": list(sysctls)} if sysctls and not network else {}),
        },
        "containers": [container],
        "volumes": [volume, *(directory.volume for directory in directories), *delivery.volumes],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": instance.deadline_seconds,
            "template": {
                "metadata": {"labels": metadata["labels"], "annotations": NO_SIDECARS},
                "spec": with_link(pod, link, images, resources, instance.name),
            },
        },
    }


@dataclass(frozen=True)
class _Delivery:
    """What the container and the pod of a client need to push its lines. Nothing if it does not push them."""

    arguments: tuple[str, ...] = ()
    environment: tuple[Manifest, ...] = ()
    mounts: tuple[Manifest, ...] = ()
    volumes: tuple[Manifest, ...] = ()


def _delivery(owner: Owner, images: Images, instance: ClientInstance, targets: Sequence[Target]) -> _Delivery:
    """Returns what a client needs to push its lines, if there is a collector and its node class allows it."""
    results = instance.node_class.results
    if not images.collector or results not in {ResultsPath.AUTO, ResultsPath.PUSH}:
        return _Delivery()
    timeout = instance.deadline_seconds if results is ResultsPath.PUSH else _TIMEOUT_SECONDS
    items = [{"key": key, "path": key} for key in (COLLECTOR_TOKEN, COLLECTOR_PIN)]
    # A Secret that was made before the collector was enabled has no such keys.
    secret = {"secretName": targets[0].server.instance.attached, "items": items, "defaultMode": 0o440, "optional": True}
    return _Delivery(
        arguments=(
            f"--collector={images.collector}/v1/lines/{owner.namespace}/$(POD_NAME)",
            f"--collector-token-file={_COLLECTOR}/{COLLECTOR_TOKEN}",
            f"--collector-pin-file={_COLLECTOR}/{COLLECTOR_PIN}",
            f"--collector-timeout-seconds={timeout}",
            f"--spool={_SPOOL}/lines",
        ),
        environment=({"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},),
        mounts=(
            {"name": "collector", "mountPath": _COLLECTOR, "readOnly": True},
            {"name": "spool", "mountPath": _SPOOL},
        ),
        volumes=(
            {"name": "collector", "secret": secret},
            {"name": "spool", "emptyDir": {"sizeLimit": _SPOOL_SIZE}},
        ),
    )


def series_fields(instance: ClientInstance, warmup: int, link: Link | None = None) -> dict[str, Any]:
    """Returns the fields of every plan: the schedule of trials, and the link."""
    return {
        "contract": CONTRACT_VERSION,
        "warmup_trials": warmup,
        "schedule": tuple(PlannedTrial(case=each.case, trial=each.trial) for each in instance.schedule),
        "link": planned_link(link),
    }


def target_fields(access: Access, target: Target) -> dict[str, Any]:
    """Returns the fields of every target: its case and its agent."""
    token, pin = (credential_file(target, key) for key in CLIENT_KEYS)
    url = agent_url(access, target.server, external=target.external)
    return {
        "case": target.case.number,
        "deadline_seconds": target.deadline_seconds,
        "agent": AgentAccess(url=url, token_file=token, pin_file=pin),
    }


def meeting_fields(instance: ClientInstance, parts: int) -> dict[str, Any]:
    """Returns where the parts of a client meet. The name includes the attempt, so that no late pod comes to it."""
    barrier = f"r{instance.run}-c{instance.block}-a{instance.attempt}"
    return {"barrier": barrier, "part": instance.part.index, "parts": parts}


def credential_file(target: Target, key: str) -> str:
    """Returns the path of the credential with this key of a target."""
    return f"{CREDENTIALS}/{_folder(target.case)}/{key}"


def client_arguments(plan: PlanFields) -> list[str]:
    """Returns the arguments of a client in a container."""
    return ["measure", f"{PLAN}{plan_document(plan)}", "--output=json", f"--termination-log={_TERMINATION_LOG}"]


def plan_document(plan: PlanFields) -> str:
    """Returns the fields of a plan that were set, as JSON without dollar signs: Kubernetes replaces $(NAME)."""
    return plan.model_dump_json(by_alias=True, exclude_unset=True, exclude_none=True).replace("$", "\\u0024")


def _folder(case: Case) -> str:
    return str(case.number)


def _under(folder: str, source: dict[str, Any]) -> dict[str, Any]:
    secret = source["secret"]
    items = [{**item, "path": f"{folder}/{item['path']}"} for item in secret["items"]]
    return {"secret": {**secret, "items": items}}


def _stand_in_arguments(arguments: Sequence[str], owner: Owner, images: Images, instance: ClientInstance) -> list[str]:
    """Returns the arguments of a client, for the program that offers its plan to a member."""
    return [
        STAND_IN,
        *arguments[1:],
        f"{CLASS}{instance.part.node_class}",
        f"--work={images.collector}/v1/work/{owner.namespace}/$(POD_NAME)",
        f"--absent-seconds={instance.absent_seconds}",
        f"--silent-seconds={instance.silent_seconds}",
    ]


def _stand_in_place(instance: ClientInstance, targets: Sequence[Target]) -> dict[str, Any]:
    """Returns the affinity and tolerations of a stand-in. If possible, it does not run where servers are measured."""
    nodes = sorted({target.server.instance.node for target in targets})
    fields = [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in nodes]
    elsewhere = {"weight": 100, "preference": {"matchFields": fields}}
    return {
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [elsewhere]}},
        "tolerations": [*(toleration.to_json() for toleration in instance.node_class.tolerations), *NOT_READY],
    }
