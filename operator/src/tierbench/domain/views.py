"""Views of nodes, pods, Jobs and Leases: the fields that decisions need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import ValidationError

from tierbench.api.link import LINK
from tierbench.api.measurements import Failure
from tierbench.api.model import without_controls
from tierbench.api.node_class import NodeClass, ResultsPath
from tierbench.api.quantity import parse_quantity
from tierbench.api.result import NodeFacts
from tierbench.domain import reasons
from tierbench.kube.meta import Raw, parse_time
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
    LABEL_SLOT,
    LABEL_WORK,
    ROLE_CLIENT,
    Role,
    place_of,
)

PARSE_ERRORS: Final = (KeyError, ValueError, TypeError, AttributeError, RecursionError)
"""The errors that parsing an object of someone else may raise."""

_MAXIMUM_IMAGE_ID: Final = 512
_LATE: Final = timedelta(minutes=5)
"""A kubelet that was cut off accepts a pod late."""


@dataclass(frozen=True)
class Problem:
    """Why a case or a server fails. A `transient` problem may pass within `timeouts.schedulingSeconds`. `case` is the
    number of the only affected case if a client measures several, else 0."""

    reason: str
    message: str
    transient: bool = False
    case: int = 0


@dataclass(frozen=True)
class NodeView:
    """A node: whether a benchmark can use it, and its hardware and software. `unready_since` is None if only the clock
    of the node says when it stopped being Ready."""

    name: str
    labels: Mapping[str, str]
    ready: bool
    unready_since: datetime | None
    schedulable: bool
    architecture: str
    kernel: str
    os_image: str
    kubelet: str
    runtime: str
    cpu_millicores: int
    memory_bytes: int
    storage_bytes: int


@dataclass(frozen=True)
class Termination:
    """The exit code, reason and termination message of a container."""

    exit_code: int
    reason: str
    message: str


@dataclass(frozen=True)
class PodView:
    """A pod of a benchmark. `limits` are the resource limits of its first container. A client has `parts` pods, and
    `part_role` is what this one does among them. `results` says how its trials come. `clock_ahead` is by how much the
    clock of its node is ahead of the control plane's, as far as that shows."""

    name: str
    uid: str
    role: str
    run: int
    slot: int
    case: int
    pass_number: int
    attempt: int
    part: int
    node: str
    pod_ip: str
    host_ip: str
    image_id: str
    created: datetime
    started: bool
    ready: bool
    deleting: bool
    problem: Problem | None
    terminated: Termination | None
    limits: Mapping[str, str] = field(default_factory=dict)
    parts: int = 1
    part_role: Role = Role.WHOLE
    results: ResultsPath = ResultsPath.AUTO
    clock_ahead: timedelta = timedelta(0)


@dataclass(frozen=True)
class JobView:
    """A client Job of a benchmark. Its client may `work` for that long while its nodes are there. None if an earlier
    version has made it. `ended` is None while it runs."""

    name: str
    run: int
    case: int
    pass_number: int
    attempt: int
    part: int
    deleting: bool
    finished: bool
    timed_out: bool
    created: datetime
    work: timedelta | None = None
    ended: datetime | None = None


@dataclass(frozen=True)
class LeaseView:
    """The holder of a node's Lease, since when and until when."""

    node: str
    holder: str
    acquired: datetime
    expires: datetime


def node_view(raw: Raw) -> NodeView:
    """Returns the view of a core/v1 Node. Its texts are cut to the lengths that a result allows."""
    status = raw.get("status", {})
    info = status.get("nodeInfo", {})
    ready = next((item for item in status.get("conditions", ()) if item["type"] == "Ready"), None)
    is_ready = ready is not None and ready["status"] == "True"
    capacity = status.get("capacity", {})
    return NodeView(
        name=raw["metadata"]["name"],
        labels=raw["metadata"].get("labels", {}),
        ready=is_ready,
        unready_since=_unready_since(ready),
        schedulable=not raw.get("spec", {}).get("unschedulable", False),
        architecture=info.get("architecture", "")[:32],
        kernel=info.get("kernelVersion", "")[:128],
        os_image=info.get("osImage", "")[:128],
        kubelet=info.get("kubeletVersion", "")[:64],
        runtime=info.get("containerRuntimeVersion", "")[:64],
        cpu_millicores=round(parse_quantity(capacity.get("cpu", "0")) * 1000),
        memory_bytes=round(parse_quantity(capacity.get("memory", "0"))),
        storage_bytes=round(parse_quantity(capacity.get("ephemeral-storage", "0"))),
    )


def _unready_since(ready: Raw | None) -> datetime | None:
    """Returns since when a node does not report, by the clock of the control plane. A node that reports that it is not
    Ready says so by its own clock."""
    if ready is None or ready["status"] != "Unknown":
        return None
    return parse_time(ready["lastTransitionTime"])


def node_facts(name: str, node_class: NodeClass | None, node: NodeView | None) -> NodeFacts:
    """Returns what a result keeps of a node, or of the members of an external class."""
    if node_class is not None and node_class.spec.external:
        return _facts_of_members(name, node_class)
    if node is None:
        return NodeFacts(node_class=name)
    return NodeFacts(
        node_class=name,
        node=node.name,
        architecture=node.architecture,
        kernel=node.kernel,
        os_image=node.os_image,
        kubelet=node.kubelet,
        runtime=node.runtime,
        cpu_millicores=node.cpu_millicores,
        memory_bytes=node.memory_bytes,
        access_network=(node_class.spec.access_network if node_class else None) or "",
        storage=(node_class.spec.storage if node_class else None) or "",
    )


def _facts_of_members(name: str, node_class: NodeClass) -> NodeFacts:
    """Returns what is the same of all members. Which of them measures is known once it takes the work."""
    architectures = {one.architecture for one in node_class.status.members}
    systems = {one.os or "" for one in node_class.status.members}
    return NodeFacts(
        node_class=name,
        node=place_of(name),
        architecture=architectures.pop() if len(architectures) == 1 else "",
        os_image=systems.pop() if len(systems) == 1 else "",
        access_network=node_class.spec.access_network or "",
        storage=node_class.spec.storage or "",
    )


def pod_view(raw: Raw) -> PodView:
    """Returns the view of a core/v1 Pod with the labels of `workloads.workload`."""
    metadata, status = raw["metadata"], raw.get("status", {})
    labels = metadata["labels"]
    role, containers = labels[LABEL_ROLE], status.get("containerStatuses", ())
    mine = [container for container in containers if role != ROLE_CLIENT or container["name"] == CLIENT]
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in status.get("conditions", ()))
    return PodView(
        name=metadata["name"],
        uid=metadata["uid"],
        role=role,
        run=int(labels[LABEL_RUN]),
        slot=int(labels.get(LABEL_SLOT, -1)),
        case=int(labels.get(LABEL_CASE, 0)),
        pass_number=int(labels.get(LABEL_PASS, 1)),
        attempt=int(labels.get(LABEL_ATTEMPT, 0)),
        part=int(labels.get(LABEL_PART, 0)),
        node=raw["spec"].get("nodeName", ""),
        pod_ip=status.get("podIP", ""),
        host_ip=status.get("hostIP", ""),
        image_id=_image_id(raw["spec"], containers),
        created=parse_time(metadata["creationTimestamp"]),
        started=any(_started(container) for container in mine),
        ready=ready,
        deleting="deletionTimestamp" in metadata,
        problem=pod_problem(status) or (None if role == ROLE_CLIENT else _out_of_memory(containers)),
        terminated=_termination(status, mine, alone=role == ROLE_CLIENT),
        limits=next((item.get("resources", {}).get("limits", {}) for item in raw["spec"].get("containers", ())), {}),
        parts=int(labels.get(LABEL_PARTS, 1)),
        part_role=Role(labels.get(LABEL_PART_ROLE, Role.WHOLE)),
        results=ResultsPath(labels.get(LABEL_RESULTS, ResultsPath.AUTO)),
        clock_ahead=_clock_ahead(status),
    )


def _clock_ahead(status: Raw) -> timedelta:
    """Returns by how much the kubelet that has accepted a pod is ahead of the scheduler that has placed it before."""
    conditions = (item for item in status.get("conditions", ()) if item["type"] == "PodScheduled")
    placed = next((time for item in conditions if (time := item.get("lastTransitionTime"))), None)
    if placed is None or not status.get("startTime"):
        return timedelta(0)
    ahead = parse_time(status["startTime"]) - parse_time(placed)
    return ahead if ahead < timedelta(0) or ahead > _LATE else timedelta(0)


def _image_id(spec: Raw, containers: Sequence[Raw]) -> str:
    """Returns the image ID of the first container. In the pod of a server, this is the server; the agent is the
    last."""
    first = next((container["name"] for container in spec.get("containers", ())), "")
    return next((item.get("imageID", "") for item in containers if item["name"] == first), "")[:_MAXIMUM_IMAGE_ID]


def _started(container: Raw) -> bool:
    return "running" in container.get("state", {}) or "terminated" in container.get("state", {})


def _termination(status: Raw, containers: Sequence[Raw], *, alone: bool) -> Termination | None:
    """Returns how a pod has ended. If one program runs `alone`, the pod ends with it, even if injected sidecars still
    run."""
    state = next((item["state"]["terminated"] for item in containers if "terminated" in item.get("state", {})), None)
    if status.get("phase") not in {"Succeeded", "Failed"} and not (alone and state is not None):
        return None
    if state is None:
        return Termination(-1, status.get("reason", reasons.POD_FAILED), "")
    return Termination(int(state.get("exitCode", -1)), state.get("reason", ""), state.get("message", ""))


def pod_problem(status: Raw) -> Problem | None:
    """Returns why a pod does not run, from its status."""
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return Problem(reasons.UNSCHEDULABLE, condition.get("message", ""), transient=True)
    for container in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        problem = _container_problem(container)
        if problem is not None:
            return problem
    if status.get("phase") == "Failed" and not status.get("containerStatuses"):
        return Problem(reasons.POD_FAILED, f"{status.get('reason', '')}: {status.get('message', '')}")
    return None


_WAITING = {
    "ErrImagePull": (reasons.IMAGE_PULL_FAILED, True),
    "ImagePullBackOff": (reasons.IMAGE_PULL_FAILED, True),
    "InvalidImageName": (reasons.IMAGE_PULL_FAILED, False),
    "ErrImageNeverPull": (reasons.IMAGE_PULL_FAILED, False),
    "CreateContainerConfigError": (reasons.CONTAINER_REFUSED, True),
    "CreateContainerError": (reasons.CONTAINER_REFUSED, True),
    "RunContainerError": (reasons.CONTAINER_REFUSED, True),
}
_MAXIMUM_LINE = 300
_SIGNALLED = 128


def _container_problem(container: Raw) -> Problem | None:
    waiting = container.get("state", {}).get("waiting", {})
    name = container["name"]
    if waiting.get("reason") in _WAITING:
        reason, transient = _WAITING[waiting["reason"]]
        return Problem(reason, f"container {name}: {waiting.get('message') or waiting['reason']}", transient)
    last = container.get("lastState", {}).get("terminated") or container.get("state", {}).get("terminated")
    if last is None or last.get("exitCode") == 0:
        return None
    reported = _reported_problem(last.get("message", ""))
    if name == LINK:
        return reported
    crash_loops = waiting.get("reason") == "CrashLoopBackOff"
    if name == "prepare":
        restarted = last["exitCode"] > _SIGNALLED and not crash_loops  # with its node; it prepares what is missing
        message = f"The preparation of the server failed with exit code {last['exitCode']}."
        return reported or (None if restarted else Problem(reasons.PREPARATION_FAILED, message))
    if crash_loops and container.get("restartCount", 0) > 1:
        line = _last_line(last.get("message", "")) or "no termination message"
        message = f"container {name} is crash-looping (exit code {last['exitCode']}): {line}"
        return reported or Problem(reasons.CRASH_LOOP, message)
    return None


def _last_line(log: str) -> str:
    lines = log.strip().splitlines()
    return without_controls(lines[-1][:_MAXIMUM_LINE]) if lines else ""


def _out_of_memory(containers: Sequence[Raw]) -> Problem | None:
    """Returns a problem if a container has run out of memory. It may have restarted since, with its state lost."""
    for container in containers:
        for state in (container.get("lastState", {}), container.get("state", {})):
            ended = state.get("terminated", {})
            if ended.get("reason") == "OOMKilled" or "java.lang.OutOfMemoryError" in ended.get("message", ""):
                message = (
                    f"container {container['name']} ran out of memory. Lower its memory needs, or remove the node "
                    "class from the benchmark."
                )
                return Problem(reasons.OUT_OF_MEMORY, message)
    return None


def _reported_problem(message: str) -> Problem | None:
    """Parses the termination message of a program of tierbench: {"reason", "message"}."""
    try:
        failure = Failure.model_validate_json(message)
    except ValidationError:
        return None
    return Problem(failure.reason, failure.message)


def job_view(raw: Raw) -> JobView:
    """Returns the view of a batch/v1 Job with the labels of `workloads.workload`."""
    labels = raw["metadata"]["labels"]
    true = {item["type"]: item for item in raw.get("status", {}).get("conditions", ()) if item["status"] == "True"}
    ended = next((item["lastTransitionTime"] for name, item in true.items() if name in {"Complete", "Failed"}), None)
    return JobView(
        name=raw["metadata"]["name"],
        run=int(labels[LABEL_RUN]),
        case=int(labels[LABEL_CASE]),
        pass_number=int(labels.get(LABEL_PASS, 1)),
        attempt=int(labels[LABEL_ATTEMPT]),
        part=int(labels[LABEL_PART]),
        deleting="deletionTimestamp" in raw["metadata"],
        finished="Complete" in true or "Failed" in true,
        timed_out=true.get("Failed", {}).get("reason") == "DeadlineExceeded",
        created=parse_time(raw["metadata"]["creationTimestamp"]),
        work=timedelta(seconds=int(labels[LABEL_WORK])) if LABEL_WORK in labels else None,
        ended=None if ended is None else parse_time(ended),
    )


def lease_view(raw: Raw) -> LeaseView:
    """Returns the view of a coordination.k8s.io/v1 Lease."""
    spec = raw.get("spec", {})
    renewed = parse_time(spec["renewTime"]) if spec.get("renewTime") else datetime.fromtimestamp(0, UTC)
    acquired = parse_time(spec["acquireTime"]) if spec.get("acquireTime") else renewed
    expires = renewed + timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    return LeaseView(raw["metadata"]["name"], spec.get("holderIdentity") or "", acquired, expires)
