"""What the operator notices of nodes while it works: clocks that are off, and logs that cannot be read.

A NodeClass has it as conditions, and a benchmark has those of its classes before it deploys anything.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from tierbench.api.node_class import NodeClass, ResultsPath
from tierbench.api.record import CollectedBy
from tierbench.domain import reasons
from tierbench.domain.collecting import likely_cause
from tierbench.domain.decision import PodLog
from tierbench.domain.run import Run
from tierbench.domain.status import ConditionUpdate
from tierbench.domain.views import PodView
from tierbench.kube.meta import Raw, parse_time

# A kubelet reports at least every five minutes, and the report takes a while to arrive.
_MOST_BEHIND: Final = timedelta(minutes=10)
_MOST_AHEAD: Final = timedelta(minutes=1)
_SAME: Final = timedelta(minutes=10)
_FOLLOWED: Final = frozenset({ResultsPath.AUTO, ResultsPath.LOGS})


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

        Similar skews are the same, because the first report that is seen may be some minutes old.
        """
        name, reported = node["metadata"]["name"], _reported(node)
        if reported is None or self._reports.get(name) == reported:
            return False
        self._reports[name] = reported
        skew, before = reported - now, self.skews.get(name)
        if -_MOST_BEHIND / 2 <= skew <= _MOST_AHEAD / 2:
            return self.skews.pop(name, None) is not None
        if -_MOST_BEHIND <= skew <= _MOST_AHEAD or (before is not None and abs(skew - before) < _SAME):
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
