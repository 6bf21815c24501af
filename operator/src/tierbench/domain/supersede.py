"""Changes of a spec: the run in progress ends as superseded, and the next run measures the new spec."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from tierbench.api.benchmark import Benchmark, Phase, RunStatus
from tierbench.api.canonical import spec_hash
from tierbench.api.record import RecordEnd, RecordStatus
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.domain import reasons
from tierbench.domain.cleanup import cleanup, end_clients
from tierbench.domain.decision import Action, Decision, Event, MarkSuperseded, Observed
from tierbench.domain.provided import ProviderApi
from tierbench.domain.servers import RECORDS_AT_ONCE, apis, apis_of, early_end, end_case
from tierbench.domain.views import Problem
from tierbench.kube.meta import format_time
from tierbench.workloads.workload import Workload


def is_outdated(benchmark: Benchmark) -> bool:
    """Whether the spec has changed since the last run began, apart from its run policy.

    Only a new generation is compared: another version of the operator may compute another hash.
    """
    run = benchmark.status.run
    if run is None or run.spec_hash is None or run.observed_generation == benchmark.metadata.generation:
        return False
    return run.spec_hash != spec_hash(benchmark.spec)


def with_observed_generation(observed: Observed) -> Observed:
    """Returns what is observed, with the generation of the spec in the status of the last run if that measures it."""
    benchmark = observed.benchmark
    run, generation = benchmark.status.run, benchmark.metadata.generation
    if run is None or run.observed_generation == generation or is_outdated(benchmark):
        return observed
    known = run.model_copy(update={"observed_generation": generation, "spec_hash": spec_hash(benchmark.spec)})
    status = benchmark.status.model_copy(update={"run": known})
    return replace(observed, benchmark=benchmark.model_copy(update={"status": status}))


def has_to_end(observed: Observed, run: RunStatus) -> bool:
    """Whether a run in progress is of another spec, or its end has begun: then results of it are marked."""
    return is_outdated(observed.benchmark) or any(result.superseded for result in _results(observed, run))


def _results(observed: Observed, run: RunStatus) -> tuple[BenchmarkResult, ...]:
    return tuple(result for result in observed.results.values() if result.spec.run == run.number)


def used_apis(benchmark: Benchmark, workload: Workload) -> tuple[ProviderApi, ...]:
    """Returns the APIs of other operators whose objects have to be observed. Servers of the earlier spec may be of any
    provider of the kind."""
    return apis_of(benchmark.KIND.kind) if is_outdated(benchmark) else apis(workload.server_placements())


def new_run(benchmark: Benchmark, number: int, now: datetime) -> RunStatus:
    """Returns a run that starts now and measures the current spec."""
    last = benchmark.status.run
    return RunStatus(
        number=number,
        rerun=benchmark.spec.run_policy.rerun,
        start_time=format_time(now),
        spec_hash=spec_hash(benchmark.spec),
        observed_generation=benchmark.metadata.generation,
        previous=last.newest_ended if last is not None and last.superseded else None,
    )


def supersede(observed: Observed, run: RunStatus, cause: str, now: datetime) -> Decision:
    """Ends a run that does not measure the current spec. It saves what clients have printed, stops them and their
    servers, releases the nodes, and ends and marks the results.

    The run counts as ended when nothing is left to do. If the old spec comes back before a result is marked, the run
    continues.
    """
    status = observed.benchmark.status
    step = cleanup(observed, now)
    if step is not None:
        return end_clients(observed, run, status, step, now)
    message = f"{cause}: run {run.number} ends, and run {run.number + 1} measures the current spec."
    results = _results(observed, run)
    marks = tuple(MarkSuperseded(result.metadata.name) for result in results if not result.superseded)
    lost = observed.permanently_rejected | observed.unreadable
    still_open = [one for one in results if one.status.phase is ResultPhase.RUNNING and one.metadata.name not in lost]
    if marks or still_open:
        return _end_cases(observed, still_open, marks, early_end(now, Problem(reasons.SUPERSEDED, message)))
    ended = run.model_copy(update={"completion_time": format_time(now), "superseded": True})
    changes = {"run": ended, "phase": Phase.PENDING, "current": None, "remaining_seconds": None}
    return Decision(status.model_copy(update=changes), events=(Event(reasons.SUPERSEDED, message),), requeue_after=0)


def _end_cases(
    observed: Observed, results: Sequence[BenchmarkResult], marks: tuple[Action, ...], end: RecordEnd
) -> Decision:
    """Ends the cases of results whose records were read, and reads some more."""
    by_name = {result.metadata.name: result for result in results}
    unread = tuple(name for name in by_name if name not in observed.records)
    read = {name: record for name, record in observed.records.items() if name in by_name}
    actions = (
        action
        for name, record in read.items()
        for action in end_case(name, by_name[name].spec, RecordStatus() if record is None else record.status, end)
    )
    return Decision(
        observed.benchmark.status, (*marks, *actions), requeue_after=0, reads_records=unread[:RECORDS_AT_ONCE]
    )
