"""Outages: the times for which nodes of a run were not Ready, and what they mean for its deadlines and trials.

The status of the run keeps them by the clocks of the API server and its controllers. A restarted operator continues
with them, and the clock of a node does not matter.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from tierbench.api.benchmark import RunStatus
from tierbench.api.contract import Outcome, TrialFields
from tierbench.api.measurements import MAXIMUM_OUTAGES, Outage
from tierbench.domain import reasons
from tierbench.domain.views import NodeView, Problem
from tierbench.kinds.registry import kinds
from tierbench.kube.meta import format_time, parse_time

UNNOTICED: Final = timedelta(seconds=60)
"""Kubernetes notices after 40 to 50 s that a node is away, and up to a minute late that it is back."""

Interruption = Callable[[TrialFields], str]
"""Returns how an outage has interrupted a trial, or an empty text."""


def with_outages(status: RunStatus, nodes: Mapping[str, NodeView], now: datetime) -> RunStatus:
    """Returns the status of a run with the outages that end or begin now. A node that is gone has none."""
    found = [_until_now(outage, nodes.get(outage.node), now) for outage in status.outages]
    known = {outage.node for outage in found if outage.end_time is None}
    for name in dict.fromkeys(name for assignment in status.assignments for name in assignment.nodes):
        node = nodes.get(name)
        if node is not None and not node.ready and name not in known:
            since = min(node.unready_since or now, now)
            found.append(Outage(node=name, start_time=format_time(since)))
    ended = [outage for outage in found if outage.end_time is not None]
    for outage in ended[: max(len(found) - MAXIMUM_OUTAGES, 0)]:
        found.remove(outage)
    return status.model_copy(update={"outages": tuple(found[:MAXIMUM_OUTAGES])})


def _until_now(outage: Outage, node: NodeView | None, now: datetime) -> Outage:
    if outage.end_time is not None or (node is not None and not node.ready):
        return outage
    return outage.model_copy(update={"end_time": format_time(now)})


def of_nodes(outages: Iterable[Outage], nodes: Collection[str], since: datetime) -> tuple[Outage, ...]:
    """Returns the outages of these nodes that have not ended before a time."""
    return tuple(
        outage
        for outage in outages
        if outage.node in nodes and (outage.end_time is None or parse_time(outage.end_time) > since)
    )


def open_outage(outages: Iterable[Outage], nodes: Collection[str]) -> Outage | None:
    """Returns an outage of these nodes that has not ended."""
    return next((outage for outage in outages if outage.node in nodes and outage.end_time is None), None)


def node_problem(
    name: str, nodes: Collection[str], outages: Iterable[Outage], now: datetime, longest: timedelta
) -> Problem | None:
    """Returns a problem if a node is gone, or has been away longer than it can be."""
    if name not in nodes:
        return Problem(reasons.NODE_NOT_READY, f"Node {name} is no longer in the cluster.")
    outage = open_outage(outages, {name})
    if outage is not None and now - parse_time(outage.start_time) > longest:
        seconds = longest.total_seconds()
        return Problem(reasons.NODE_NOT_READY, f"Node {name} has not been Ready for {seconds:.0f} s.")
    return None


def time_away(outages: Iterable[Outage], since: datetime, now: datetime, longest: timedelta) -> timedelta:
    """Returns for how long any of the nodes was away since a time. An outage counts `longest` at most."""
    total, until = timedelta(0), since
    for outage in sorted(outages, key=lambda outage: outage.start_time):
        begin = parse_time(outage.start_time)
        end = min(_end(outage, now), begin + longest)
        total += max(end - max(begin, until), timedelta(0))
        until = max(until, end)
    return total


def undisturbed_since(outages: Iterable[Outage], nodes: Collection[str], since: datetime, now: datetime) -> datetime:
    """Returns since when all of these nodes have been there, at the earliest since a time."""
    return max((since, *(_end(outage, now) for outage in outages if outage.node in nodes)))


def _end(outage: Outage, now: datetime) -> datetime:
    return now if outage.end_time is None else parse_time(outage.end_time)


def explains(reason: str) -> bool:
    """Whether clients fail for this reason if a node is away."""
    return any(reason in each.unreachable for each in (reasons.OF_ANY_RESULT, *(kind.reasons for kind in kinds())))


def last_failures(trials: Iterable[TrialFields]) -> set[str]:
    """Returns why trials have failed that ended less than a minute before the last one, and so maybe in an outage."""
    ends = [(_span(trial)[1], trial) for trial in trials]
    last = max((end for end, _ in ends), default=None)
    return {
        trial.failure.reason
        for end, trial in ends
        if last is not None and trial.failure is not None and last - end < UNNOTICED
    }


def _span(trial: TrialFields) -> tuple[datetime, datetime]:
    begin = parse_time(trial.start_time)
    return begin, begin + timedelta(microseconds=trial.duration_nanoseconds / 1000)


def interruption(outages: Iterable[Outage], ahead: timedelta) -> Interruption:
    """Returns which trials these outages have interrupted. The clock of the trials is `ahead` of the API server's.

    A trial that ended well while a node was away did not need the connection. One that ended well around the return may
    have waited for it.
    """
    known = tuple(outages)

    def interrupted(trial: TrialFields) -> str:
        if trial.warmup or not known:
            return ""
        begin, end = (time - ahead for time in _span(trial))
        failed = trial.outcome is Outcome.FAILED and trial.failure is not None
        if failed and trial.failure is not None and not explains(trial.failure.reason):
            return ""
        found = (outage for outage in known if _disturbs(outage, begin, end, failed=failed))
        return next((f"{describe(outage)} during the trial." for outage in found), "")

    return interrupted


def _disturbs(outage: Outage, begin: datetime, end: datetime, *, failed: bool) -> bool:
    start = parse_time(outage.start_time)
    if outage.end_time is None:
        return failed and end > start - UNNOTICED
    stop = parse_time(outage.end_time)
    if failed:
        return end > start - UNNOTICED and begin < stop
    return begin < stop and end > max(start, stop - UNNOTICED)


def describe(outage: Outage) -> str:
    """Returns an outage in words."""
    if outage.end_time is None:
        return f"Node {outage.node} has not been Ready since {outage.start_time}"
    seconds = (parse_time(outage.end_time) - parse_time(outage.start_time)).total_seconds()
    return f"Node {outage.node} was not Ready for {seconds:.0f} s"
