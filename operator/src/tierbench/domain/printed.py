"""The trials that clients have printed: how they get from logs into records, also when a run ends early."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from tierbench.api.benchmark import BenchmarkStatus, RunStatus
from tierbench.api.contract import TrialLine
from tierbench.api.record import CollectedBy, RecordStatus
from tierbench.api.result import BenchmarkResult, ResultPhase, ResultSpec
from tierbench.domain.cleanup import CleanupStep
from tierbench.domain.decision import Decision, Observed, PodLog
from tierbench.domain.servers import save_record
from tierbench.domain.views import JobView, PodView
from tierbench.results import aggregate
from tierbench.results.client_output import PartOutput, PrintedTrial, add_traces, merge_parts
from tierbench.workloads.workload import ROLE_CLIENT, Role

_LOG_SECONDS: Final = 1.0

TrialFilter = Callable[[PrintedTrial], bool]


def merge_trials(
    pods: Sequence[PodView], logs: Mapping[str, PodLog], case: int, wanted: TrialFilter = lambda _: True
) -> Iterator[tuple[int, tuple[TrialLine, ...]]]:
    """Yields per attempt of a client the wanted trials of a case that all parts have printed, merged into one line per
    trial."""
    for attempt in sorted({pod.attempt for pod in pods}):
        parts = {pod.part: pod for pod in pods if pod.attempt == attempt}
        ordered = [parts[part] for part in sorted(parts)]
        if len(parts) == ordered[0].parts:
            outputs = [_output_of(pod, logs.get(pod.uid, PodLog()), case, wanted) for pod in ordered]
            yield attempt, merge_parts(outputs)


def _output_of(pod: PodView, log: PodLog, case: int, wanted: TrialFilter) -> PartOutput:
    """Returns what a part has printed of a case. A part with the role SHARE is lost once it has failed and its log is
    complete."""
    failed = pod.terminated is not None and pod.terminated.exit_code != 0 and log.complete
    return PartOutput(
        tuple(trial.line for trial in trials_of(pod, log, case) if wanted(trial)),
        echo=pod.part_role is Role.ECHO,
        lost=pod.part_role is Role.SHARE and failed,
    )


def trials_of(pod: PodView, log: PodLog, case: int) -> Iterator[PrintedTrial]:
    """Yields the trials of a case that a pod has printed. Lines without a case number belong to the first case of its
    client."""
    return (trial for trial in log.output.printed if (trial.case or pod.case) == case)


def _collected(
    pods: Sequence[PodView], logs: Mapping[str, PodLog], case: int, attempt: int
) -> dict[tuple[bool, int], CollectedBy]:
    """Returns how the trials of an attempt came that did not come by its logs."""
    return {
        trial.key: trial.collected_by
        for pod in pods
        if pod.attempt == attempt
        for trial in trials_of(pod, logs.get(pod.uid, PodLog()), case)
        if trial.collected_by is not CollectedBy.LOGS
    }


def add_printed_trials(
    spec: ResultSpec, record: RecordStatus, pods: Sequence[PodView], logs: Mapping[str, PodLog]
) -> RecordStatus:
    """Returns a record with every trial of its case that the pods of a client have printed. Each trial counts once."""
    known, recorded = record, {(trial.warmup, trial.trial) for trial in record.trials}
    for attempt, trials in merge_trials(pods, logs, spec.case, lambda trial: trial.key not in recorded):
        collected = _collected(pods, logs, spec.case, attempt)
        record = aggregate.add_trials(spec, record, trials, attempt, collected)
    if record is not known:
        aggregate.summarize(spec, record)  # what has no statistics is not recorded
    return record


def traced_trials(spec: ResultSpec, pods: Sequence[PodView], logs: Mapping[str, PodLog]) -> tuple[TrialLine, ...]:
    """Returns the trials of a case that have a trace of TCP."""
    traced = {trial.key for pod in pods for trial in logs.get(pod.uid, PodLog()).output.traced}
    found = merge_trials(pods, logs, spec.case, lambda trial: trial.key in traced)
    return tuple(line for _, trials in found for line in trials)


def end_clients(
    observed: Observed, run: RunStatus, status: BenchmarkStatus, step: CleanupStep, now: datetime
) -> Decision:
    """Carries out a step of the cleanup of a run in progress. Before that deletes clients, their logs are read up to
    now, and the trials in them are saved.

    The spec may have changed, so what was asked for is taken from the results.
    """
    clients = _running_clients(observed, run.number)
    unread = [pod for client in clients for pod in client if _is_unread(observed, pod, now)]
    if unread:
        failed = any(observed.logs.get(pod.uid, PodLog()).error is not None for pod in unread)
        return Decision(status, requeue_after=_LOG_SECONDS if failed else 0, reads_logs=True)
    cases = [(result, client) for client in clients for result in _cases_of(observed, client)]
    names = tuple(dict.fromkeys(result.metadata.name for result, _ in cases))
    if any(name not in observed.records for name in names):
        return Decision(status, requeue_after=0, reads_records=names, reads_logs=True)
    found = {name: RecordStatus() if (one := observed.records[name]) is None else one.status for name in names}
    saved = dict(found)
    for result, client in cases:
        name = result.metadata.name
        saved[name] = _with_printed_trials(result.spec, saved[name], client, observed.logs)
    specs = {result.metadata.name: result.spec for result, _ in cases}
    writes = (save_record(name, specs[name], record) for name, record in saved.items() if record != found[name])
    return Decision(status, (*writes, *step.actions), requeue_after=step.requeue_after)


def _running_clients(observed: Observed, run: int) -> list[list[PodView]]:
    """Returns the pods of each client that has all of its Jobs. Once one is deleted, a part may look as if it was
    lost."""
    jobs = Counter(_key(job) for job in observed.jobs if not job.deleting)
    clients: dict[tuple[int, ...], list[PodView]] = {}
    for pod in observed.pods:
        if pod.role == ROLE_CLIENT and pod.run == run and jobs[_key(pod)] == pod.parts:
            clients.setdefault(_key(pod), []).append(pod)
    return list(clients.values())


def _key(view: JobView | PodView) -> tuple[int, ...]:
    return view.run, view.case, view.pass_number, view.attempt


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


def _with_printed_trials(
    spec: ResultSpec, record: RecordStatus, pods: Sequence[PodView], logs: Mapping[str, PodLog]
) -> RecordStatus:
    if record.ended is not None:
        return record
    try:
        return add_traces(add_printed_trials(spec, record, pods, logs), traced_trials(spec, pods, logs))
    except Exception:  # whatever a client has printed, the run ends
        return record
