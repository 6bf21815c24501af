"""What an administrator's limits say to a run. Each names its value of the chart."""

from datetime import UTC, datetime, timedelta
from typing import Final

from tierbench.api.quantity import format_size
from tierbench.domain import reasons
from tierbench.domain.run import Run
from tierbench.domain.views import Problem

_OF_CHART: Final = "a value of the chart"
_NOT_YET: Final = datetime.max.replace(tzinfo=UTC)


def too_many_cases(run: Run) -> Problem | None:
    """That the run has more cases than it may."""
    cases, most = len(run.cases), run.observed.quotas.cases
    if cases <= most:
        return None
    message = (
        f"The matrix has {cases} cases, and limits.cases, {_OF_CHART}, lets a run have {most}: make several "
        "benchmarks, or have it raised and set spec.runPolicy.rerun."
    )
    return Problem(reasons.TOO_MANY_CASES, message)


def too_long(run: Run) -> Problem | None:
    """That the run has held its nodes for as long as it may."""
    if seconds_left(run) > 0:
        return None
    message = (
        f"The run has held its nodes for {run.observed.quotas.lease_seconds} s, which is limits.leaseSeconds, "
        f"{_OF_CHART}: take fewer cases, repetitions or seconds a trial, or have it raised."
    )
    return Problem(reasons.HELD_TOO_LONG, message)


def seconds_left(run: Run) -> int:
    """For how long it may go on holding them, or hold them if it does not yet."""
    held = max(run.now - _since(run, run.observed.holder), timedelta(0))
    return run.observed.quotas.lease_seconds - int(held.total_seconds())


def too_large(run: Run) -> Problem | None:
    """That what was measured, and will be kept, takes as much as it may."""
    gone, most = outdated(run, history(run)), run.observed.quotas.most_bytes
    results = [result for result in run.observed.known_results if result.name not in gone]
    stored = sum(result.stored_bytes for result in results)
    if stored < most:
        return None
    runs = len({result.run for result in results})
    message = (
        f"The results and traces of {runs} runs take {stored} bytes, and limits.resultBytes, {_OF_CHART}, is "
        f"{format_size(most)}: lower spec.runPolicy.history, take fewer cases, or have it raised."
    )
    return Problem(reasons.TOO_MANY_BYTES, message)


def storage_full(run: Run) -> Problem | None:
    """That the results and traces of all benchmarks take as much as they may."""
    stored, quotas = run.observed.stored_bytes, run.observed.quotas
    if stored < quotas.most_stored_bytes:
        return None
    message = (
        f"The results and traces of all benchmarks take {stored} bytes, and limits.storedBytes, {_OF_CHART}, is "
        f"{quotas.stored_bytes}. There is room once the oldest runs have gone, which are announced before "
        f"({reasons.EVICTION_PENDING}), or sooner if you delete benchmarks or have it raised."
    )
    return Problem(reasons.STORAGE_FULL, message)


def history(run: Run) -> int:
    """How many runs are kept."""
    return min(run.spec.run_policy.history, run.observed.quotas.history)


def outdated(run: Run, most: int) -> tuple[str, ...]:
    """The results that go when the run has ended, if so many runs are kept, by name."""
    oldest_kept, baseline = run.status.number - most + 1, run.spec.run_policy.baseline_run
    kept = run.observed.known_results
    return tuple(result.name for result in kept if result.run < oldest_kept and result.run != baseline)


def crowd(run: Run) -> Problem | None:
    """That as many other benchmarks of the namespace hold nodes as may at once. Two that took theirs at the same time
    see each other: the one that came first stays."""
    mine, most = run.observed.holder, run.observed.quotas.benchmarks_at_once
    namespace = f"{run.observed.owner.namespace}/"
    others = {lease.holder for lease in run.observed.leases.values() if lease.holder.startswith(namespace)} - {mine}
    since = {holder: _since(run, holder) for holder in (mine, *others)}
    before = [other for other in others if since[other] < _NOT_YET and (since[other], other) < (since[mine], mine)]
    if len(before) < most:
        return None
    message = (
        f"{len(before)} other benchmarks of this namespace hold nodes, and limits.benchmarksAtOnce, {_OF_CHART}, is "
        f"{most}. Goes on by itself when one of them has ended."
    )
    return Problem(reasons.TOO_MANY_AT_ONCE, message)


def _since(run: Run, holder: str) -> datetime:
    """When it took the nodes that it holds; if it holds none, not yet."""
    leases = run.observed.leases.values()
    held = (lease.acquired for lease in leases if lease.holder == holder and lease.expires > run.now)
    return min(held, default=_NOT_YET)
