"""The trials that clients have printed: how they get from logs into records, and what if a log cannot be read."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

from tierbench.api.contract import TrialLine
from tierbench.api.measurements import Outage
from tierbench.api.record import CollectedBy, RecordStatus
from tierbench.api.result import ResultSpec
from tierbench.domain import reasons
from tierbench.domain.decision import Event, Observed, PodLog
from tierbench.domain.outages import interruption, undisturbed_since
from tierbench.domain.run import Run
from tierbench.domain.status import ConditionUpdate
from tierbench.domain.views import JobView, PodView, Problem
from tierbench.results import aggregate
from tierbench.results.client_output import (
    PartOutput,
    PrintedTrial,
    SealState,
    add_traces,
    check_seal,
    merge_parts,
)
from tierbench.workloads.workload import ROLE_CLIENT, Role

TrialFilter = Callable[[PrintedTrial], bool]
_LONGEST_ERROR: Final = 300
_CAUSES: Final = (
    (
        ("results: status",),
        "its node class has results: Status, and the status of a pod does not hold so many trials. Set results: Auto",
    ),
    (
        ("refused",),
        "nothing listens at the port of its kubelet. KubeEdge needs cloudStream and edgeStream, or iptables rules for "
        "its tunnel",
    ),
    (
        ("timeout", "timed out", "deadline", "no route", "unreachable"),
        "the API server cannot reach the port of its kubelet, as behind NAT or a firewall. Open port 10250 from the "
        "API server to the node",
    ),
    (("x509", "certificate", "tls:"), "the API server does not trust the certificate of its kubelet"),
    (("unauthorized", "forbidden"), "its kubelet refuses the credentials of the API server"),
    (("not found", "could not find", "empty"), "its kubelet has no log of the container any more"),
    (
        ("gateway", "tunnel", "agent", "proxy", "websocket", "dialer", "unavailable", "eof", "payload"),
        "the tunnel or proxy between the API server and the node is interrupted",
    ),
)
"""Words of errors, and what they mean. The first that fits counts."""


def merge_trials(
    pods: Sequence[PodView], logs: Mapping[str, PodLog], case: int, wanted: TrialFilter = lambda _: True
) -> Iterator[tuple[int, tuple[TrialLine, ...]]]:
    """Yields per attempt of a client the wanted trials of a case that all parts have printed, merged into one line per
    trial."""
    for attempt in sorted({pod.attempt for pod in pods}):
        parts = {pod.part: pod for pod in pods if pod.attempt == attempt}
        ordered = [parts[part] for part in sorted(parts)]
        if len(parts) == ordered[0].parts:
            outputs = [(pod, logs.get(pod.uid, PodLog())) for pod in ordered]
            printed = _printed_by_all(outputs, case)
            yield attempt, merge_parts([_output_of(*output, case, printed, wanted) for output in outputs])


def _printed_by_all(outputs: Iterable[tuple[PodView, PodLog]], case: int) -> frozenset[tuple[bool, int]]:
    """Returns the trials that all parts have printed except those that are lost. Only these are worth parsing."""
    keys = [{trial.key for trial in trials_of(pod, log, case)} for pod, log in outputs if not _is_lost(pod, log)]
    return frozenset[tuple[bool, int]]().union(*keys[:1]).intersection(*keys)


def _output_of(
    pod: PodView, log: PodLog, case: int, printed: Collection[tuple[bool, int]], wanted: TrialFilter
) -> PartOutput:
    """Returns what a part has printed of the trials of a case that all parts have printed."""
    trials = (trial for trial in trials_of(pod, log, case) if trial.key in printed and wanted(trial))
    return PartOutput(tuple(trial.line for trial in trials), echo=pod.part_role is Role.ECHO, lost=_is_lost(pod, log))


def _is_lost(pod: PodView, log: PodLog) -> bool:
    """Whether a part with the role SHARE has failed, and its log is complete."""
    failed = pod.terminated is not None and pod.terminated.exit_code != 0 and log.complete
    return pod.part_role is Role.SHARE and failed


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
    spec: ResultSpec,
    record: RecordStatus,
    pods: Sequence[PodView],
    logs: Mapping[str, PodLog],
    outages: Sequence[Outage] = (),
) -> RecordStatus:
    """Returns a record with every trial of its case that the pods of a client have printed. Each trial counts once, and
    none that `outages` of its nodes have interrupted."""
    clocks = _clocks(pods) if outages else {}
    for attempt, ahead in clocks.items():
        record = aggregate.set_aside(record, attempt, interruption(outages, ahead))
    recorded = {(trial.warmup, trial.trial) for trial in record.trials if not trial.interrupted}
    for attempt, trials in merge_trials(pods, logs, spec.case, lambda trial: trial.key not in recorded):
        collected = _collected(pods, logs, spec.case, attempt)
        interrupted = interruption(outages, clocks.get(attempt, timedelta(0)))
        record = aggregate.add_trials(spec, record, trials, attempt, collected, interrupted)
    return record


def _clocks(pods: Iterable[PodView]) -> dict[int, timedelta]:
    """Returns how far the clocks are ahead that trials have, by attempt: each that of the first sender."""
    senders = (pod for pod in pods if pod.part_role is not Role.ECHO)
    return {pod.attempt: pod.clock_ahead for pod in sorted(senders, key=lambda pod: -pod.part)}


def traced_trials(
    spec: ResultSpec, record: RecordStatus, pods: Sequence[PodView], logs: Mapping[str, PodLog]
) -> tuple[TrialLine, ...]:
    """Returns the trials of a record that have a trace of TCP."""
    traced = {trial.key for pod in pods for trial in logs.get(pod.uid, PodLog()).output.traced}
    counted = {(trial.warmup, trial.trial, trial.attempt) for trial in record.trials if not trial.interrupted}
    found = merge_trials(pods, logs, spec.case, lambda trial: trial.key in traced)
    return tuple(line for attempt, trials in found for line in trials if (line.warmup, line.trial, attempt) in counted)


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
            record = add_traces(added, traced_trials(spec, added, pods, logs))
    return record


def has_waited(run: Run, pod: PodView, log: PodLog) -> bool:
    """Whether a log could not be read for `timeouts.nodeNotReadySeconds`, although its node was Ready."""
    if log.error is None:
        return False
    since = undisturbed_since(run.status.outages, {pod.node}, log.error.since, run.now)
    return run.now - since > run.longest_outage or run.node_problem(pod.node) is not None


def log_problem(run: Run, pod: PodView, log: PodLog) -> Problem | None:
    """Returns a problem if the log of a pod that has ended did not arrive in time.

    There is none if the termination message has all trials.
    """
    if log.error is None or pod.terminated is None or log.complete or not has_waited(run, pod, log):
        return None
    check = check_seal(log.output, pod.terminated.message)
    if check.state is SealState.COMPLETE:
        return None
    arrived = "" if check.seal is None else f" {len(log.output.printed)} of {check.seal.trials} trials have arrived."
    message = (
        f"The client has ended, but its log on node {pod.node} could not be read for "
        f"{run.spec.timeouts.node_not_ready_seconds} s: {likely_cause(log.error.message)}.{arrived} They are not "
        f"measured again, because the operator could not read them either. See `kubectl logs {pod.name}` "
        f"({log.error.message[:_LONGEST_ERROR]})."
    )
    return Problem(reasons.LOGS_UNREACHABLE, message)


def likely_cause(error: str) -> str:
    """Returns what an error of the API server probably means for the log of a node."""
    text = error.lower()
    causes = (cause for words, cause in _CAUSES if any(word in text for word in words))
    return next(causes, "the API server cannot read it from its kubelet")


def logs_update(run: Run, pods: Iterable[PodView]) -> tuple[ConditionUpdate, ...]:
    """Returns the condition LogsReachable. A benchmark has it as soon as the log of an ended client is unreachable."""
    ended = [(pod, run.observed.logs.get(pod.uid, PodLog())) for pod in pods if pod.terminated is not None]
    unreachable = [(pod, log.error.message) for pod, log in ended if log.error is not None]
    if unreachable:
        pod, error = unreachable[0]
        message = f"The log of a client on node {pod.node} cannot be read: {likely_cause(error)}."
        return (ConditionUpdate(reasons.LOGS_REACHABLE, False, reasons.LOGS_UNREACHABLE, message),)
    was_unreachable = any(item.type == reasons.LOGS_REACHABLE for item in run.observed.benchmark.status.conditions)
    if was_unreachable and any(log.complete for _, log in ended):
        message = f"The log of the last client on node {ended[-1][0].node} was read to its end."
        return (ConditionUpdate(reasons.LOGS_REACHABLE, True, reasons.LOGS_READ, message),)
    return ()


def logs_events(run: Run, updates: Iterable[ConditionUpdate]) -> tuple[Event, ...]:
    """Returns a warning if the log of a client has become unreachable, or is so for another cause."""
    known = {(item.type, item.status, item.message) for item in run.observed.benchmark.status.conditions}
    return tuple(
        Event(update.reason, update.message, warning=True)
        for update in updates
        if not update.status and (update.type, str(update.status), update.message) not in known
    )
