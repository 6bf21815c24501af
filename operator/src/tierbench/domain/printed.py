"""The trials that clients have printed: how they get from logs into records."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from tierbench.api.contract import TrialLine
from tierbench.api.record import CollectedBy, RecordStatus
from tierbench.api.result import ResultSpec
from tierbench.domain.decision import Observed, PodLog
from tierbench.domain.views import JobView, PodView
from tierbench.results import aggregate
from tierbench.results.client_output import PartOutput, PrintedTrial, add_traces, merge_parts
from tierbench.workloads.workload import ROLE_CLIENT, Role

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


def running_clients(observed: Observed, run: int) -> list[list[PodView]]:
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


def with_printed_trials(
    spec: ResultSpec, record: RecordStatus, clients: Iterable[Sequence[PodView]], logs: Mapping[str, PodLog]
) -> RecordStatus:
    """Returns a record with every trial of its case in the logs of clients, and with their traces, for a case that ends
    early. The case ends whatever a client has printed."""
    if record.ended is not None:
        return record
    for pods in clients:
        with suppress(Exception):
            added = add_printed_trials(spec, record, pods, logs)
            record = add_traces(added, traced_trials(spec, pods, logs))
    return record
