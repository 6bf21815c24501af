"""The state of node classes: what the operator notices of their nodes, and the members of external classes.

It notices clocks that are off, and logs that cannot be read. A NodeClass has it as conditions, and a benchmark has
those of its classes before it deploys anything.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from tierbench.api.benchmark import Access, NodeAssignment
from tierbench.api.node_class import CollectorAddress, NodeClass, NodeClassStatus, NodeSummary, ResultsPath
from tierbench.api.record import CollectedBy
from tierbench.domain import reasons
from tierbench.domain.collecting import likely_cause
from tierbench.domain.decision import PodLog
from tierbench.domain.run import Run
from tierbench.domain.status import ConditionUpdate, set_conditions
from tierbench.domain.views import PodView, Problem
from tierbench.kinds.registry import kind_of, kinds
from tierbench.kube.meta import Raw, format_time, parse_time
from tierbench.results.units import join_words
from tierbench.workloads.workload import place_of

# A kubelet reports at least every five minutes, and the report takes a while to arrive.
_MOST_BEHIND: Final = timedelta(minutes=10)
_MOST_AHEAD: Final = timedelta(minutes=1)
_SAME: Final = timedelta(minutes=10)
_FOLLOWED: Final = frozenset({ResultsPath.AUTO, ResultsPath.LOGS})
KEY_DIGITS: Final = 16
"""The length of each of the two hashes that a member's key consists of."""
_SILENT: Final = timedelta(seconds=90)
_MINUTE: Final = timedelta(minutes=1)
_REACHED: Final = (Access.NODE_PORT, Access.HOST_NETWORK)


@dataclass
class Noticed:
    """What was noticed, by the names of nodes.

    `skews` says how far a clock is ahead, if it is off. `logs` says why logs cannot be read, and is empty if they can.
    """

    skews: dict[str, timedelta] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    _reports: dict[str, datetime] = field(default_factory=dict)

    def observe_clock(self, node: Raw, now: datetime) -> bool:
        """Compares the clock of a Ready node with the API server's when it reports. Returns whether it has changed.

        Similar skews are the same, because the first report that is seen may be some minutes old. A clock looks late by
        the age of a report, so the greatest of them is the best.
        """
        name, reported = node["metadata"]["name"], _reported(node)
        if reported is None or self._reports.get(name) == reported:
            return False
        self._reports[name] = reported
        skew, before = reported - now, self.skews.get(name)
        if -_MOST_BEHIND / 2 <= skew <= _MOST_AHEAD / 2:
            return self.skews.pop(name, None) is not None
        if -_MOST_BEHIND <= skew <= _MOST_AHEAD or (before is not None and before - _SAME < skew <= before):
            return False
        self.skews[name] = skew
        return True

    def observe_logs(self, pods: Iterable[PodView], logs: Mapping[str, PodLog]) -> bool:
        """Notes whether the logs of ended clients could be read. Returns whether that has changed."""
        found = dict(_readable(pods, logs))
        changed = any(self.logs.get(node) != cause for node, cause in found.items())
        self.logs.update(found)
        return changed

    def forget(self, node: str) -> None:
        """Forgets a node that was deleted."""
        self.skews.pop(node, None)
        self.logs.pop(node, None)
        self._reports.pop(node, None)


def _reported(node: Raw) -> datetime | None:
    """Returns when a Ready node has reported, by its own clock."""
    for item in node.get("status", {}).get("conditions", ()):
        if item["type"] == "Ready" and item["status"] == "True" and item.get("lastHeartbeatTime"):
            return parse_time(item["lastHeartbeatTime"])
    return None


def _readable(pods: Iterable[PodView], logs: Mapping[str, PodLog]) -> Iterator[tuple[str, str]]:
    for pod in pods:
        log = logs.get(pod.uid, PodLog())
        if pod.terminated is None or pod.results not in _FOLLOWED:
            continue
        if log.error is not None:
            yield pod.node, likely_cause(log.error.message)
        elif log.complete and any(trial.collected_by is CollectedBy.LOGS for trial in log.output.printed):
            yield pod.node, ""


def class_conditions(node_class: NodeClass, nodes: Iterable[str], noticed: Noticed) -> tuple[ConditionUpdate, ...]:
    """Returns what was noticed of the nodes of a class. A class has a condition once its nodes had the problem."""
    names = sorted(nodes)
    known = {item.type for item in node_class.status.conditions}
    return (*_logs(names, noticed, known), *_clocks(names, noticed, known))


def _logs(names: Iterable[str], noticed: Noticed, known: set[str]) -> Iterator[ConditionUpdate]:
    found = {name: noticed.logs[name] for name in names if name in noticed.logs}
    unreachable = next(((name, cause) for name, cause in found.items() if cause), None)
    if unreachable is not None:
        message = f"The log of the last client on node {unreachable[0]} could not be read: {unreachable[1]}."
        yield ConditionUpdate(reasons.LOGS_REACHABLE, False, reasons.LOGS_UNREACHABLE, message)
    elif found and reasons.LOGS_REACHABLE in known:
        message = "The logs of the last clients on nodes of the class were read to their end."
        yield ConditionUpdate(reasons.LOGS_REACHABLE, True, reasons.LOGS_READ, message)


def _clocks(names: Iterable[str], noticed: Noticed, known: set[str]) -> Iterator[ConditionUpdate]:
    skewed = next(((name, noticed.skews[name]) for name in names if name in noticed.skews), None)
    if skewed is not None:
        name, skew = skewed
        minutes, word = round(abs(skew) / timedelta(minutes=1)), "ahead of" if skew > timedelta(0) else "behind"
        message = (
            f"The clock of node {name} is about {minutes:,} min {word} that of the API server. Set it by NTP or "
            "chrony: times in results come from it."
        )
        yield ConditionUpdate(reasons.CLOCK_SKEWED, True, reasons.CLOCK_OFF, message)
    elif reasons.CLOCK_SKEWED in known:
        message = "The clocks of the nodes agree with that of the API server."
        yield ConditionUpdate(reasons.CLOCK_SKEWED, False, reasons.CLOCKS_AGREE, message)


def warnings_of_classes(run: Run) -> tuple[ConditionUpdate, ...]:
    """Returns the problems that the classes of a run have, and that the conditions of its benchmark say, too."""
    wrong = {reasons.LOGS_REACHABLE: "False", reasons.CLOCK_SKEWED: "True"}
    classes = [run.observed.classes[name] for name in run.node_classes if name in run.observed.classes]
    found = {
        item.type: ConditionUpdate(item.type, item.status == "True", item.reason, item.message)
        for node_class in classes
        for item in node_class.status.conditions
        if wrong.get(item.type) == item.status
    }
    had = {item.type for item in run.observed.benchmark.status.conditions}
    if reasons.CLOCK_SKEWED in had - found.keys():
        message = "No clock of a node of the run is known to be off."
        found[reasons.CLOCK_SKEWED] = ConditionUpdate(reasons.CLOCK_SKEWED, False, reasons.CLOCKS_AGREE, message)
    return tuple(found.values())


@dataclass(frozen=True)
class Member:
    """A machine that has joined a class, as the operator last saw it. `busy` says whether it has work."""

    key: str
    os: str
    architecture: str
    version: str
    seen: datetime
    busy: bool = False


def members_of(node_class: NodeClass) -> Mapping[str, Member]:
    """Returns the members in the status of a class. Those whose invitation was removed or replaced are none."""
    invited = {one.name: one.token_hash[:KEY_DIGITS] for one in node_class.spec.invitations}
    return {
        one.name: Member(one.key, one.os or "", one.architecture, one.version or "", parse_time(one.last_seen_time))
        for one in node_class.status.members
        if one.key is not None
        and one.last_seen_time is not None
        and one.name in invited
        and one.key.startswith(invited[one.name])
    }


def resolve_members(
    node_class: NodeClass, seen: Mapping[str, Member], collector: CollectorAddress | None, now: datetime
) -> NodeClassStatus:
    """Returns the status of an external class. `seen` are the members that have asked since the operator started."""
    stored = members_of(node_class)
    invited = {one.name: one.token_hash[:KEY_DIGITS] for one in node_class.spec.invitations}
    current = {name: one for name, one in seen.items() if one.key.startswith(invited.get(name, "none"))}
    members = {**stored, **current}
    listed = tuple(_summary(name, members[name], stored.get(name), now) for name in sorted(members))
    ready = sum(one.ready for one in listed)
    name, problem = node_class.metadata.name, None
    if collector is None:
        problem = Problem(
            reasons.NO_COLLECTOR,
            f"The members of NodeClass {name} reach the operator by its collector, and it has none. Set the chart "
            "values collector.enabled and collector.address.",
        )
    elif not listed:
        problem = Problem(
            reasons.NO_MEMBER,
            f"No machine has joined NodeClass {name}. Run `kubectl tierbench join {name}`, and on the machine the "
            "command that it prints.",
        )
    elif not ready:
        problem = Problem(
            reasons.MEMBERS_SILENT,
            f"None of the {len(listed)} members of NodeClass {name} has asked for work for {_SILENT.seconds} s. Start "
            "`tierbench-client join` again on one of them.",
        )
    update = (
        ConditionUpdate(reasons.CLASS_READY, True, reasons.MEMBERS_READY, f"{ready} of {len(listed)} members are here.")
        if problem is None
        else ConditionUpdate(reasons.CLASS_READY, False, problem.reason, problem.message)
    )
    return NodeClassStatus(
        observed_generation=node_class.metadata.generation,
        nodes=len(listed),
        ready_nodes=ready,
        architectures=",".join(sorted({one.architecture for one in listed})),
        members=listed,
        collector=collector,
        conditions=set_conditions(node_class, (update,), now),
    )


def _summary(name: str, member: Member, stored: Member | None, now: datetime) -> NodeSummary:
    """Returns a member for the status. The time changes once a minute, because each change is a write."""
    ready = member.busy or now - member.seen <= _SILENT
    same = stored is not None and stored.key == member.key and member.seen - stored.seen < _MINUTE
    seen = stored.seen if stored is not None and same else member.seen
    return NodeSummary(
        name=name,
        ready=ready,
        architecture=member.architecture,
        os=member.os,
        version=member.version,
        last_seen_time=format_time(seen),
        key=member.key,
    )


def assign_members(run: Run, node_class: NodeClass) -> NodeAssignment:
    """Returns the place of the members of a class. They are one place, because one of them measures at a time."""
    name = node_class.metadata.name
    problem = next(_refusals(run, name), None)
    ready = next((item for item in node_class.status.conditions if item.type == reasons.CLASS_READY), None)
    if problem is None and ready is not None and ready.status == "True":
        return NodeAssignment(node_class=name, nodes=(place_of(name),))
    if problem is None:
        message = f"No machine has joined NodeClass {name} yet. Run `kubectl tierbench join {name}`."
        problem = Problem(reasons.NO_MEMBER, message) if ready is None else Problem(ready.reason, ready.message)
    return NodeAssignment(node_class=name, reason=problem.reason, message=problem.message)


def _refusals(run: Run, name: str) -> Iterator[Problem]:
    """Yields why clients outside the cluster cannot measure this benchmark."""
    spec, kind = run.spec, run.observed.owner.kind
    if name in spec.servers.node_class_names:
        message = (
            f"NodeClass {name} is external, so it has no nodes for servers. Remove it from spec.servers.nodeClassNames."
        )
        yield Problem(reasons.NOT_FROM_OUTSIDE, message)
    refuses = kind_of(kind).not_from_outside
    if refuses is None:
        able = join_words([f"{one.model.KIND.kind}s" for one in kinds() if one.not_from_outside is not None])
        message = f"NodeClass {name} is external. Its members can measure {able}: name a class with nodes."
        yield Problem(reasons.NOT_FROM_OUTSIDE, message)
    elif refused := refuses(spec):
        yield Problem(reasons.NOT_FROM_OUTSIDE, f"NodeClass {name} is external. {refused}")
    if spec.access not in _REACHED:
        message = (
            f"Members of the external NodeClass {name} cannot reach servers by access: {spec.access.value}. Set "
            f"spec.access to {' or '.join(_REACHED)}."
        )
        yield Problem(reasons.NOT_FROM_OUTSIDE, message)
    if any(not link.is_direct for link in spec.links):
        message = f"The pod of a client imitates links, and members of the external NodeClass {name} have none. "
        yield Problem(reasons.NOT_FROM_OUTSIDE, f"{message}Remove spec.links, or name a class with nodes.")


def without_pairs(run: Run) -> ConditionUpdate | None:
    """Returns the condition of the preflight if all clients are outside the cluster: it measures between nodes."""
    names = run.spec.clients.node_class_names
    if not all(run.observed.is_external(name) for name in names):
        return None
    message = "The preflight measures between nodes, and the clients are outside the cluster."
    return ConditionUpdate(reasons.NETWORK_MEASURED, False, reasons.NOT_FROM_OUTSIDE, message)
