"""The cleanup after a run: its clients and servers are deleted, then its nodes are released. Of a run in progress, what
clients have printed is saved first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tierbench.api.benchmark import BenchmarkStatus, RunStatus
from tierbench.api.record import RecordStatus
from tierbench.api.result import BenchmarkResult, ResultPhase, ResultSpec
from tierbench.domain.collecting import running_clients, with_printed_trials
from tierbench.domain.decision import (
    Action,
    ClusterState,
    Decision,
    DeleteJob,
    Observed,
    PodLog,
    ReleaseLeases,
    is_unreachable,
)
from tierbench.domain.servers import save_record, teardown
from tierbench.domain.views import PodView

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
