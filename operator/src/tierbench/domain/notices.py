"""What is said of runs that go for want of room: events, and a condition of their benchmark. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from tierbench.api.model import format_time, parse_time
from tierbench.api.policy import Quotas
from tierbench.domain import reasons
from tierbench.domain.actions import Event
from tierbench.domain.conditions import Said
from tierbench.domain.eviction import Change
from tierbench.domain.results import BenchmarkKey
from tierbench.kinds.registry import BENCHMARKS


def events(change: Change, total: int, quotas: Quotas, now: datetime) -> Iterator[Event]:
    """A warning for runs that are announced, and one for those that go."""
    if change.announced:
        words = _announcement(change.benchmark, [run.key[1] for run in change.announced], format_time(now), quotas)
        size = sum(run.size for run in change.announced)
        message = f"{_taken(total, quotas)}. {words} They take {size} bytes."
        yield Event(reasons.EVICTION_PENDING, message, warning=True)
    if change.begun:
        runs, size = _named([run.key[1] for run in change.begun]), sum(run.size for run in change.begun)
        message = f"{_taken(total, quotas)}. Results and traces of {runs} are deleted, as announced: {size} bytes."
        yield Event(reasons.EVICTED, message, warning=True)


def condition(change: Change, total: int, quotas: Quotas) -> Said:
    """What is pending, as long as it is."""
    pending = [eviction for eviction in change.evictions if not eviction.begun]
    if not pending:
        message = f"{_taken(total, quotas)}. No run of this benchmark is about to go."
        return Said(reasons.EVICTION_PENDING, False, reasons.STORAGE_FREE, message)
    first = min(eviction.notice_time for eviction in pending)
    words = _announcement(change.benchmark, [eviction.run for eviction in pending], first, quotas)
    return Said(reasons.EVICTION_PENDING, True, reasons.STORAGE_NEARLY_FULL, f"{_taken(total, quotas)}. {words}")


def _taken(total: int, quotas: Quotas) -> str:
    return (
        f"The results and traces of all benchmarks take {total} bytes, and limits.storedBytes, a value of the chart, "
        f"is {quotas.stored_bytes}"
    )


def _announcement(benchmark: BenchmarkKey, runs: Sequence[int], notice_time: str, quotas: Quotas) -> str:
    """That runs go, when, and how they are kept."""
    kind, namespace, name = benchmark
    when = format_time(parse_time(notice_time) + timedelta(seconds=quotas.eviction_notice_seconds))
    export = (
        f"kubectl tierbench export {BENCHMARKS[kind].KIND.singular}/{name} --namespace {namespace} --run {runs[0]} "
        f"--format json --output {name}-run-{runs[0]}.json"
    )
    each = ", and each of the others likewise" if len(runs) > 1 else ""
    return (
        f"When that is reached, {_named(runs)} of this benchmark may be deleted from {when} on. Keep what you need: "
        f"{export}{each}."
    )


def _named(runs: Sequence[int]) -> str:
    return f"run{'s' if len(runs) > 1 else ''} {', '.join(map(str, runs))}"
