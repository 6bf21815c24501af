"""What `kubectl tierbench doctor` says of each class: from what was observed to findings and what to do."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from tierbench.api.contract import OK, CheckLine, ReachedPeer
from tierbench.api.node_class import ResultsPath
from tierbench.domain import reasons
from tierbench.domain.collecting import likely_cause
from tierbench.domain.views import Problem
from tierbench.kube.meta import parse_time
from tierbench.results.units import join_words, show

MOST_SKEW: Final = timedelta(seconds=5)
"""A clock that is off by more is reported."""
_RESERVE_BYTES: Final = 1 << 30
_RESERVE_SHARE: Final = 0.15
_LONGEST: Final = 400


class Check(StrEnum):
    """What is checked of a class."""

    NODE = "Node"
    IMAGE = "Image"
    POD = "Pod"
    LOGS = "Logs"
    PUSH = "Push"
    PORTS = "Ports"
    UDP = "UDP"
    SERVICES = "Services"
    NODE_PORTS = "NodePorts"
    DNS = "DNS"
    CLOCK = "Clock"
    MEMORY = "Memory"
    PING = "Ping"
    DISK = "Disk"


class State(StrEnum):
    """How a check ended."""

    OK = "Ok"
    UNKNOWN = "Unknown"
    LIMITED = "Limited"
    """Some benchmarks or results need it."""
    BLOCKED = "Blocked"
    """Benchmarks need it."""


@dataclass(frozen=True)
class Finding:
    """How a check of a class ended. `what_to_do` is empty if there is nothing to do."""

    check: Check
    state: State
    detail: str = ""
    what_to_do: str = ""


@dataclass(frozen=True)
class Observed:
    """What was observed of a class.

    `log_error` is why the log could not be read, None if it was read, and empty if there was none to read. `created` is
    when the pod was created, `ended` when its end was seen: both by the clock of the API server. `image_problem` is why
    further images were not pulled. `node_port_refused` is why the Service has no port on nodes.
    """

    name: str
    results: ResultsPath = ResultsPath.AUTO
    node: str = ""
    node_problem: Problem | None = None
    pod_problem: Problem | None = None
    disk_pressure: bool = False
    line: CheckLine | None = None
    log_error: str | None = ""
    created: datetime | None = None
    ended: datetime | None = None
    image_problem: Problem | None = None
    node_port_refused: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """What is known of a class."""

    name: str
    node: str
    architecture: str
    findings: tuple[Finding, ...]

    def of(self, check: Check) -> Finding:
        """Returns how a check ended."""
        return next(item for item in self.findings if item.check is check)

    @property
    def blocked(self) -> bool:
        """Whether benchmarks cannot use the class."""
        return any(item.state is State.BLOCKED for item in self.findings)


@dataclass(frozen=True)
class Setup:
    """What the checks depend on: whether there is a collector, and whether the pods used the network of their nodes."""

    collector: bool = False
    host_network: bool = False


def diagnose(observed: Sequence[Observed], setup: Setup) -> tuple[Diagnosis, ...]:
    """Returns what is known of each class."""
    nodes = {each.name: each.node for each in observed}
    found = []
    for each in observed:
        line = each.line
        findings = (
            *_start(each),
            *_ways_home(each, setup),
            *_ways(each, observed, nodes, setup),
            *_computer(each, setup),
        )
        ordered = sorted(findings, key=lambda item: list(Check).index(item.check))
        found.append(Diagnosis(each.name, each.node, line.architecture if line else "", tuple(ordered)))
    return tuple(found)


def _start(each: Observed) -> Iterator[Finding]:
    """Yields whether there is a node, and whether it runs a pod of tierbench."""
    if each.node_problem is not None:
        yield Finding(Check.NODE, State.BLOCKED, each.node_problem.reason, each.node_problem.message)
        yield from (Finding(check, State.UNKNOWN) for check in (Check.IMAGE, Check.POD))
        return
    yield Finding(Check.NODE, State.OK, each.node)
    problem = each.pod_problem
    if problem is None:
        yield _images(each)
        yield Finding(Check.POD, State.OK)
        return
    message = f"{problem.message[:_LONGEST].rstrip('. ')}. {_what_to_do(problem)}"
    if problem.reason == reasons.IMAGE_PULL_FAILED:
        yield Finding(Check.IMAGE, State.BLOCKED, problem.reason, f"Node {each.node} cannot pull the image: {message}")
        yield Finding(Check.POD, State.UNKNOWN)
        return
    yield Finding(Check.IMAGE, State.UNKNOWN)
    yield Finding(Check.POD, State.BLOCKED, problem.reason, f"The check pod on node {each.node} failed: {message}")


def _images(each: Observed) -> Finding:
    """Returns whether the node could pull all images that it was asked to pull. It has that of the client."""
    problem = each.image_problem
    if problem is None:
        return Finding(Check.IMAGE, State.OK)
    slow = problem.reason == reasons.TIMED_OUT
    step = "Give it more time by `--timeout`." if slow else _what_to_do(problem)
    message = (
        f"Node {each.node} did not pull all images that `--images` names: "
        f"{problem.message[:_LONGEST].rstrip('. ')}. {step}"
    )
    return Finding(Check.IMAGE, State.LIMITED, problem.reason, message)


def _what_to_do(problem: Problem) -> str:
    if problem.reason == reasons.IMAGE_PULL_FAILED:
        return "Provide the image for the architecture of the node, and check its registry and `imagePullSecrets`."
    if problem.reason == reasons.REFUSED:
        return "Change the quota, the Pod Security label or the policy that refuses it, or use another namespace."
    if problem.reason == reasons.UNSCHEDULABLE:
        return "Free CPU and memory on the node, or add `tolerations` to the NodeClass."
    if problem.reason == reasons.CLIENT_FAILED:
        return "If the image is of another version than this command, upgrade one of them."
    return "See `kubectl describe node` and the log of its kubelet or container runtime."


def _ways_home(each: Observed, setup: Setup) -> Iterator[Finding]:
    """Yields whether trials come home: by logs or by a push."""
    pushed = each.line is not None and each.line.collector == OK
    if each.log_error is None:
        yield Finding(Check.LOGS, State.OK)
    elif not each.log_error:
        yield Finding(Check.LOGS, State.UNKNOWN)
    else:
        needed = not pushed and each.results in {ResultsPath.AUTO, ResultsPath.LOGS}
        step = (
            "Trials come by a push."
            if pushed
            else "Set `collector.enabled` in the chart, so that clients push their trials. Without it only the last "
            "trials of a client come home, by its status."
        )
        message = f"The log of a pod on node {each.node} cannot be read: {likely_cause(each.log_error)}. {step}"
        yield Finding(Check.LOGS, State.BLOCKED if needed else State.LIMITED, each.log_error[:_LONGEST], message)
    yield _push(each, setup)


def _push(each: Observed, setup: Setup) -> Finding:
    if not setup.collector:
        if each.results is not ResultsPath.PUSH:
            return Finding(Check.PUSH, State.UNKNOWN)
        message = "The class has `results: Push`, but there is no collector. Set `collector.enabled` in the chart."
        return Finding(Check.PUSH, State.BLOCKED, "no collector", message)
    if each.line is None or not each.line.collector:
        return Finding(Check.PUSH, State.UNKNOWN)
    if each.line.collector == OK:
        return Finding(Check.PUSH, State.OK)
    message = (
        f"Pods on node {each.node} cannot reach the collector ({each.line.collector}). Set `collector.address` in the "
        "chart to an address that the node reaches, and open its port."
    )
    blocked = each.results is ResultsPath.PUSH
    return Finding(Check.PUSH, State.BLOCKED if blocked else State.LIMITED, each.line.collector, message)


_PATHS: Final[Mapping[Check, str]] = {
    Check.PORTS: "tcp",
    Check.UDP: "udp",
    Check.SERVICES: "service",
    Check.NODE_PORTS: "node_port",
    Check.DNS: "dns",
    Check.PING: "ping",
}
_OPTIONAL: Final = frozenset({Check.UDP, Check.NODE_PORTS, Check.PING})


def _ways(each: Observed, observed: Sequence[Observed], nodes: Mapping[str, str], setup: Setup) -> Iterator[Finding]:
    """Yields whether pods of the class reach those of all classes, and whether these reach them."""
    for check in _PATHS:
        if check is Check.PING and each.line is not None and each.line.ping != OK:
            yield _not_permitted(each, setup)
            continue
        if check is Check.NODE_PORTS and each.node_port_refused:
            yield _without_node_port(each)
            continue
        out, into = _closed(each, check), _closed_to(each.name, observed, check)
        if not out and not into:
            known = each.line is not None and any(_outcome(peer, check) for peer in each.line.peers)
            yield Finding(check, State.OK if known else State.UNKNOWN)
            continue
        optional = check in _OPTIONAL or (setup.host_network and check in {Check.SERVICES, Check.DNS})
        direction = "" if out and into else "out" if out else "in"
        # Where TCP fails, the other protocols and Services fail for the same cause.
        own = {name: why for name, why in out.items() if check is Check.PORTS or name not in _closed(each, Check.PORTS)}
        message = _ways_message(each, check, own, nodes) if own else ""
        yield Finding(check, State.LIMITED if optional else State.BLOCKED, direction, message)


def _outcome(peer: ReachedPeer, check: Check) -> str:
    found: str = getattr(peer, _PATHS[check])
    return found


def _closed(each: Observed, check: Check) -> dict[str, str]:
    """Returns the classes that pods of a class do not reach, and why."""
    peers = () if each.line is None else each.line.peers
    return {peer.name: found for peer in peers if (found := _outcome(peer, check)) not in {"", OK}}


def _closed_to(name: str, observed: Iterable[Observed], check: Check) -> tuple[str, ...]:
    """Returns the other classes whose pods do not reach those of a class."""
    return tuple(other.name for other in observed if other.name != name and name in _closed(other, check))


def _ways_message(each: Observed, check: Check, closed: Mapping[str, str], nodes: Mapping[str, str]) -> str:
    why = ", ".join(dict.fromkeys(closed.values()))
    names = join_words([f"{name} on {nodes[name]}" for name in closed])
    pods = f"Pods on node {each.node}"
    match check:
        case Check.PORTS:
            return (
                f"{pods} do not reach pods of {names} by TCP ({why}). Check the pod network (CNI) of both nodes, "
                "NetworkPolicies, and firewalls between the nodes. Without a pod network, use `access: HostNetwork`, "
                "and check it with --host-network."
            )
        case Check.SERVICES:
            return (
                f"{pods} reach pods of {names}, but not by their Service ({why}). Run kube-proxy on the node, or what "
                "replaces it there, such as EdgeMesh. Without it, use `access: HostNetwork`."
            )
        case Check.NODE_PORTS:
            return (
                f"{pods} do not reach pods of {names} by a port of their node ({why}). Open its NodePorts (30000 to "
                "32767 by default) in firewalls, and run kube-proxy on it, or what replaces it there. Clients outside "
                "the cluster need them, too. Without them, use another `access`."
            )
        case Check.DNS:
            return (
                f"{pods} cannot resolve the names of Services ({why}). Check that they reach CoreDNS, and the "
                "`clusterDNS` of the kubelet. `access: PodIP` needs no DNS."
            )
        case Check.UDP:
            return (
                f"{pods} reach pods of {names} by TCP, but not by UDP ({why}). Open UDP in firewalls and "
                "NetworkPolicies, or remove UDP from `spec.protocols` of a NetworkBenchmark."
            )
        case _:
            return (
                f"Pods of {names} do not answer echo requests from node {each.node} ({why}). Open ICMP in firewalls "
                "and NetworkPolicies, or set `ping.count: 0` in a NetworkBenchmark."
            )


def _not_permitted(each: Observed, setup: Setup) -> Finding:
    where = "on the node" if setup.host_network else "to pods of this namespace"
    why = "" if each.line is None else each.line.ping
    message = (
        f"Pods on node {each.node} may not send echo requests ({why}). Allow the sysctl `net.ipv4.ping_group_range` "
        f"{where}, or set `ping.count: 0` in a NetworkBenchmark."
    )
    return Finding(Check.PING, State.LIMITED, why, message)


def _without_node_port(each: Observed) -> Finding:
    message = (
        "The API server refuses a Service of the type NodePort in this namespace: "
        f"{each.node_port_refused[:_LONGEST].rstrip('. ')}. Change the quota or the policy that refuses it, or use "
        "another `access`."
    )
    return Finding(Check.NODE_PORTS, State.LIMITED, reasons.REFUSED, message)


def _computer(each: Observed, setup: Setup) -> Iterator[Finding]:
    """Yields what is known of the clock, the control groups and the disk of the node."""
    line = each.line
    yield _clock(each)
    if line is None or line.memory_cgroup is None:
        yield Finding(Check.MEMORY, State.UNKNOWN)
    elif line.memory_cgroup:
        yield Finding(Check.MEMORY, State.OK, f"cgroup v{line.cgroup_version}")
    else:
        message = (
            f"The kernel of node {each.node} has no memory cgroup, so memory limits do not hold there. On a Raspberry "
            "Pi, add `cgroup_enable=memory` to cmdline.txt, and restart it."
        )
        yield Finding(Check.MEMORY, State.LIMITED, "no memory cgroup", message)
    yield _disk(each)


def _clock(each: Observed) -> Finding:
    if each.line is None or each.created is None or each.ended is None:
        return Finding(Check.CLOCK, State.UNKNOWN)
    behind = each.created - parse_time(each.line.started_at)
    ahead = parse_time(each.line.ended_at) - each.ended
    skew, word = max((behind, "behind"), (ahead, "ahead"))
    if skew <= MOST_SKEW:
        return Finding(Check.CLOCK, State.OK)
    seconds = f"{skew.total_seconds():,.0f} s"
    message = (
        f"The clock of node {each.node} is at least {seconds} {word}. Set it by NTP or chrony: times in results come "
        "from it."
    )
    return Finding(Check.CLOCK, State.LIMITED, f"{seconds} {word}", message)


def _disk(each: Observed) -> Finding:
    line = each.line
    if each.disk_pressure:
        message = (
            f"Node {each.node} has DiskPressure, so it evicts pods and takes no new ones. Free space: "
            "`crictl rmi --prune` removes images that nothing uses."
        )
        return Finding(Check.DISK, State.BLOCKED, "DiskPressure", message)
    if line is None or line.free_bytes is None or line.size_bytes is None:
        return Finding(Check.DISK, State.UNKNOWN)
    free, reserve = line.free_bytes, round(line.size_bytes * _RESERVE_SHARE) + _RESERVE_BYTES
    detail = f"{show('Bytes', free)} of {show('Bytes', line.size_bytes)} free"
    if free > reserve:
        return Finding(Check.DISK, State.OK, detail)
    message = (
        f"The disk for pods of node {each.node} has {detail}. File transfers leave "
        f"{show('Bytes', reserve)} free, so they write no files there. Free space, or choose another `spec.storage`."
    )
    return Finding(Check.DISK, State.LIMITED, detail, message)
