"""The administrator's limits on one run, which the chart sets as `limits`. Each message names its chart value."""

from datetime import UTC, datetime, timedelta
from typing import Final

from tierbench.api.quantity import format_size
from tierbench.domain import reasons
from tierbench.domain.run import Run
from tierbench.domain.views import Problem
from tierbench.workloads.workload import LABEL_BENCHMARK, LABEL_KIND, LABEL_RUN

_LISTED_RUNS: Final = 3
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def too_many_cases(run: Run) -> Problem | None:
    """Returns a problem if the run has more cases than `limits.cases` allows."""
    cases, most = len(run.cases), run.observed.quotas.cases
    if cases <= most:
        return None
    message = (
        f"The run has {cases} cases, but limits.cases allows {most}. Split the benchmark, or "
        f"{_raise('limits.cases')} and set spec.runPolicy.rerun."
    )
    return Problem(reasons.TOO_MANY_CASES, message)


def held_too_long(run: Run) -> Problem | None:
    """Returns a problem if the run has held its nodes for `limits.leaseSeconds`."""
    if seconds_left(run) > 0:
        return None
    message = (
        f"The run has held its nodes for {run.observed.quotas.lease_seconds} s, as long as limits.leaseSeconds allows. "
        f"Use fewer cases, fewer repetitions or shorter trials, or {_raise('limits.leaseSeconds')}."
    )
    return Problem(reasons.HELD_TOO_LONG, message)


def seconds_left(run: Run) -> int:
    """Returns for how many seconds the run may still hold its nodes."""
    held = max(run.now - _holds_since(run, run.observed.holder), timedelta(0))
    return run.observed.quotas.lease_seconds - int(held.total_seconds())


def results_too_large(run: Run) -> Problem | None:
    """Returns a problem if the results that the benchmark keeps take `limits.resultBytes`."""
    outdated, most = outdated_results(run, kept_runs(run)), run.observed.quotas.most_bytes
    results = [result for result in run.observed.known_results if result.name not in outdated]
    stored = sum(result.stored_bytes for result in results)
    if stored < most:
        return None
    runs = len({result.run for result in results})
    message = (
        f"The results and traces of {runs} runs take {stored} bytes; limits.resultBytes is {format_size(most)}. Lower "
        f"spec.runPolicy.history, use fewer cases, or {_raise('limits.resultBytes')}."
    )
    return Problem(reasons.TOO_MANY_BYTES, message)


def storage_full(run: Run) -> Problem | None:
    """Returns a problem if the results and traces of all benchmarks take `limits.storedBytes`."""
    stored, quotas = run.observed.stored_bytes, run.observed.quotas
    if stored < quotas.most_stored_bytes:
        return None
    message = (
        f"The results and traces of all benchmarks take {stored} bytes; limits.storedBytes is {quotas.stored_bytes}. "
        f"Delete results, or {_raise('limits.storedBytes')}."
    )
    return Problem(reasons.STORAGE_FULL, message)


def runs_to_delete(run: Run) -> str:
    """Returns which runs of the namespace take most, and the command that deletes the largest one."""
    namespace, runs = run.observed.owner.namespace, run.observed.deletable_runs
    if not runs:
        return f"In namespace {namespace}, all results are of newest runs or of baselines."
    listed = ", ".join(
        f"run {one.number} of {one.kind} {one.benchmark} ({one.size} bytes)" for one in runs[:_LISTED_RUNS]
    )
    labels = {LABEL_KIND: runs[0].kind, LABEL_BENCHMARK: runs[0].benchmark, LABEL_RUN: runs[0].number}
    selector = ",".join(f"{label}={value}" for label, value in labels.items())
    return (
        f"The largest older runs of namespace {namespace} are {listed}. To delete the first one, run "
        f"`kubectl delete benchmarkresults --namespace {namespace} --selector {selector}`."
    )


def kept_runs(run: Run) -> int:
    """Returns how many runs of the benchmark are kept: `runPolicy.history`, at most `limits.history`."""
    return min(run.spec.run_policy.history, run.observed.quotas.history)


def outdated_results(run: Run, kept: int) -> tuple[str, ...]:
    """Returns the names of the results to delete at the end of the run if `kept` runs and the baseline are kept."""
    oldest_kept, baseline = run.status.number - kept + 1, run.spec.run_policy.baseline_run
    known = run.observed.known_results
    return tuple(result.name for result in known if result.run < oldest_kept and result.run != baseline)


def too_many_at_once(run: Run) -> Problem | None:
    """Returns a problem if `limits.benchmarksAtOnce` other benchmarks of the namespace hold nodes. If two acquired
    their Leases at the same time, only the later one has the problem."""
    mine, most = run.observed.holder, run.observed.quotas.benchmarks_at_once
    namespace = run.observed.owner.namespace
    leases = run.observed.leases.values()
    others = {lease.holder for lease in leases if lease.holder.startswith(f"{namespace}/")} - {mine}
    since = {holder: _holds_since(run, holder) for holder in (mine, *others)}
    before = [other for other in others if since[other] < _NEVER and (since[other], other) < (since[mine], mine)]
    if len(before) < most:
        return None
    message = (
        f"{len(before)} other benchmarks of namespace {namespace} hold nodes; limits.benchmarksAtOnce is {most}. This "
        "benchmark continues when one of them ends."
    )
    return Problem(reasons.TOO_MANY_AT_ONCE, message)


def _holds_since(run: Run, holder: str) -> datetime:
    leases = run.observed.leases.values()
    held = (lease.acquired for lease in leases if lease.holder == holder and lease.expires > run.now)
    return min(held, default=_NEVER)


def _raise(name: str) -> str:
    return f"ask an administrator to raise {name} in the chart"
