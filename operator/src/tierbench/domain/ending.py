"""The end of a run: its clients and servers are deleted, then its nodes are released.

If the spec changes, the run in progress ends as superseded, and the next run measures the new spec. What clients have
printed is saved first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from tierbench.api.benchmark import Benchmark, BenchmarkStatus, Phase, RunStatus
from tierbench.api.canonical import spec_hash
from tierbench.api.record import RecordEnd, RecordStatus
from tierbench.api.result import BenchmarkResult, ResultPhase, ResultSpec
from tierbench.domain import reasons
from tierbench.domain.collecting import running_clients, with_printed_trials
from tierbench.domain.decision import (
    Action,
    ClusterState,
    Decision,
    DeleteJob,
    Event,
    MarkSuperseded,
    Observed,
    PodLog,
    ProviderApi,
    ReleaseLeases,
    is_unreachable,
)
from tierbench.domain.servers import RECORDS_AT_ONCE, apis, apis_of, early_end, end_case, save_record, teardown
from tierbench.domain.views import PodView, Problem
from tierbench.kube.meta import format_time
from tierbench.workloads.workload import Workload

_LOG_SECONDS: Final = 1.0


@dataclass(frozen=True)
class CleanupStep:
    """The next actions of a cleanup, and after how many seconds to reconcile again."""

    actions: tuple[Action, ...]
    requeue_after: float


def cleanup(state: ClusterState, now: datetime) -> CleanupStep | None:
    """Deletes clients and servers, waits until they are gone, then releases the nodes. Returns None after that."""
    jobs = (DeleteJob(job.name) for job in state.jobs if not job.deleting)
    actions = (*jobs, *teardown(state, now))
    if any(provider.objects for provider in state.provider_states.values()):
        return CleanupStep(actions, 1)
    if actions or state.jobs or any(not is_unreachable(state, pod) for pod in state.pods):
        return CleanupStep(actions, 5)
    held = tuple(node for node, lease in sorted(state.leases.items()) if lease.holder == state.holder)
    return CleanupStep((ReleaseLeases(held),), 0) if held else None


def end_clients(
    observed: Observed, run: RunStatus, status: BenchmarkStatus, step: CleanupStep, now: datetime
) -> Decision:
    """Carries out a step of the cleanup of a run in progress. Before that deletes clients, their logs are read up to
    now, and the trials in them are saved.

    The spec may have changed, so what was asked for is taken from the results.
    """
    clients = running_clients(observed, run.number)
    unread = [pod for client in clients for pod in client if _is_unread(observed, pod, now)]
    if unread:
        failed = any(observed.logs.get(pod.uid, PodLog()).error is not None for pod in unread)
        return Decision(status, requeue_after=_LOG_SECONDS if failed else 0, reads_logs=True)
    results = {result.metadata.name: result for client in clients for result in _cases_of(observed, client)}
    if any(name not in observed.records for name in results):
        return Decision(status, requeue_after=0, reads_records=tuple(results), reads_logs=True)
    writes = []
    for name, result in results.items():
        known = RecordStatus() if (one := observed.records[name]) is None else one.status
        record = with_printed_trials(result.spec, known, clients, observed.logs)
        writes += [save_record(name, result.spec, record)] if record != known else []
    return Decision(status, (*writes, *step.actions), requeue_after=step.requeue_after)


def _is_unread(observed: Observed, pod: PodView, now: datetime) -> bool:
    """Whether a log has to be read first. One that could not be read for `timeouts.nodeNotReadySeconds` is given up."""
    log = observed.logs.get(pod.uid, PodLog())
    limit = timedelta(seconds=observed.benchmark.spec.timeouts.node_not_ready_seconds)
    given_up = log.error is not None and now - log.error.since > limit
    return pod.started and not log.current and not given_up


def _cases_of(observed: Observed, client: Sequence[PodView]) -> list[BenchmarkResult]:
    """Returns the results of the cases of a client that have not ended: they differ only in their server."""
    results = [result for result in observed.results.values() if result.spec.run == client[0].run]
    first = next((result.spec for result in results if result.spec.case == client[0].case), None)
    lost = observed.unreadable.union(observed.rejected_results, observed.permanently_rejected)
    return [
        result
        for result in results
        if first is not None
        and _seat(result.spec) == _seat(first)
        and result.status.phase is ResultPhase.RUNNING
        and result.metadata.name not in lost
    ]


def _seat(spec: ResultSpec) -> tuple[object, ...]:
    return dict(spec.levels), spec.client.node_class, spec.client.node


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
