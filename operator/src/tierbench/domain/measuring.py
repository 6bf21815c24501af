"""Measures block after block: starts clients, writes their trials, ends cases, and refines the levels of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from tierbench.advice.caveats import RefinementLevel, refinements
from tierbench.advice.tables import runs
from tierbench.api.benchmark import BenchmarkStatus, Phase, Refinement
from tierbench.api.contract import Engine, TrialLine
from tierbench.api.record import RecordEnd, RecordStatus
from tierbench.api.result import ResultPhase, ResultSpec, ResultStatus
from tierbench.api.run_policy import Refine
from tierbench.domain import reasons
from tierbench.domain.client import NOTICE_SECONDS, Client, ClientExit, exit_problem, follow_client, start_client
from tierbench.domain.collecting import (
    add_printed_trials,
    has_waited,
    logs_events,
    logs_update,
    traced_trials,
    trials_of,
)
from tierbench.domain.decision import Action, Decision, DeleteJob, Event, SaveResult
from tierbench.domain.outages import last_failures
from tierbench.domain.run import Run
from tierbench.domain.servers import case_failed_event, early_end, end_case, save_record, save_result
from tierbench.domain.status import ConditionUpdate, build_status, describe_cases
from tierbench.domain.views import PodView, Problem
from tierbench.kube.meta import format_time
from tierbench.results import aggregate
from tierbench.results.client_output import add_traces, check_seal
from tierbench.results.quantities import counted_trials
from tierbench.workloads.plan import Block, Case, Factor, ScheduledTrial, ServerPlacement, schedule_trials
from tierbench.workloads.workload import RunningServer

_MAXIMUM_MESSAGE: Final = 1024
_MAXIMUM_ERROR: Final = 256
_MAXIMUM_ATTEMPTS: Final = 3
_MAXIMUM_OUTAGES: Final = 8


@dataclass(frozen=True)
class Measurement:
    """A case that has not ended. `stored` is its record as it is stored, `record` adds the trials in the logs since
    then. `trials` are the numbers of the trials of the pass, `traced` the trials with a trace of TCP. `error` says why
    the trials in the logs cannot be recorded."""

    name: str
    case: Case
    spec: ResultSpec
    trials: range
    result: ResultStatus | None
    stored: RecordStatus
    record: RecordStatus
    traced: tuple[TrialLine, ...] = ()
    error: str = ""

    @property
    def missing(self) -> tuple[int, ...]:
        """The numbers of the trials that are still missing in the pass."""
        return tuple(number for number in aggregate.missing_trials(self.spec, self.record) if number in self.trials)

    def without_new_trials(self) -> "Measurement":
        """Returns the measurement without the trials that are not stored."""
        return replace(self, record=self.stored, traced=())

    def save(self) -> tuple[Action, ...]:
        """Writes the new trials, if there are any. The result exists before them."""
        return self._save(self.record)

    def _save(self, record: RecordStatus) -> tuple[Action, ...]:
        saved = () if record == self.stored else (save_record(self.name, self.spec, record),)
        return (*self._create(), *saved)

    def _create(self) -> tuple[Action, ...]:
        """Creates the result, which owns the record."""
        if self.result is not None:
            return ()
        return (save_result(self.name, self.spec, aggregate.summarize(self.spec, RecordStatus()), RecordStatus()),)

    def finish_pass(self, number: int) -> tuple[Action, ...]:
        """Writes what was measured up to the end of a pass, with the traces, unless it is written."""
        if self.result is not None and self.result.passes_done >= number:
            return ()
        record = add_traces(self.record, self.traced)
        status = aggregate.summarize(self.spec, record).model_copy(update={"passes_done": number})
        return (*self._save(record), save_result(self.name, self.spec, status, record))

    def finish(self, end: RecordEnd) -> tuple[Action, ...]:
        """Ends the case, with the traces."""
        record = self.record if self.record.ended is not None else add_traces(self.record, self.traced)
        return (*(self._create() if record.trials else ()), *end_case(self.name, self.spec, record, end))


@dataclass(frozen=True)
class RunningBlock:
    """A block whose servers are ready, with its client and its cases that have not ended."""

    block: Block
    client: Client
    servers: Mapping[ServerPlacement, RunningServer]
    due: tuple[Measurement, ...]

    @property
    def run(self) -> Run:
        """The run of the block."""
        return self.client.run

    def save(self) -> tuple[Action, ...]:
        """Writes the new trials of all cases."""
        return tuple(action for one in self.due for action in one.save())

    def build_status(self) -> BenchmarkStatus:
        """Returns the status of the benchmark while the block is measured."""
        places = "; ".join(
            f"{server.instance.name} is ready on {server.instance.node}" for server in self.servers.values()
        )
        ready = ConditionUpdate(reasons.SERVER_READY, True, reasons.READY, f"{places}."[:_MAXIMUM_MESSAGE])
        current = tuple(one.case for one in self.due)
        finished = sum(len(counted_trials(one.record.trials)) for one in self.due)
        return build_status(self.run, Phase.RUNNING, ready, *self.logs, current=current, finished_trials=finished)

    @property
    def needs_no_log(self) -> bool:
        """Whether all trials have arrived, and no log that cannot be read has more. Traces are waited for."""
        pods = [pod for _, pod in self.client.newest]
        if any(one.missing for one in self.due) or any(pod is None or pod.terminated is None for pod in pods):
            return False
        logs = [(pod, self.client.log(pod)) for pod in pods if pod is not None]
        return all(
            has_waited(self.run, pod, log) or (log.error is not None and not log.output.traced) for pod, log in logs
        )

    @property
    def may_be_cut_off(self) -> bool:
        """Whether the client has just failed as it fails if a node is away, which may not have been noticed yet."""
        trials = [trial for one in self.due for trial in one.record.trials if trial.attempt == self.client.attempts]
        return self.client.may_be_cut_off(last_failures(trials))

    @property
    def recorded(self) -> tuple[str, ...]:
        """The pods of the newest client whose trials are all in the records."""
        pods = (pod for _, pod in self.client.newest if pod is not None)
        return tuple(pod.uid for pod in pods if all(self._has_recorded(one, pod) for one in self.due))

    def _has_recorded(self, one: Measurement, pod: PodView) -> bool:
        recorded = {
            (trial.warmup, trial.trial)
            for trial in one.record.trials
            if not trial.interrupted or trial.attempt == pod.attempt
        }
        return all(trial.key in recorded for trial in trials_of(pod, self.client.log(pod), one.case.number))

    @property
    def logs(self) -> tuple[ConditionUpdate, ...]:
        """The condition that says whether the logs of the newest client can be read."""
        return logs_update(self.run, (pod for _, pod in self.client.newest if pod is not None))


def measure_block(run: Run, block: Block, servers: Mapping[ServerPlacement, RunningServer]) -> Decision:
    """Returns the next step of a block whose servers are ready."""
    due = [case for case in block.cases if not run.ended(case)]
    names = tuple(map(run.result_name, due))
    if any(map(run.lacks_record, due)):
        return Decision(build_status(run, Phase.RUNNING), requeue_after=0, reads_records=names)
    running = _running_block(run, block, servers)
    decision = _measure(running)
    events = (*logs_events(run, running.logs), *decision.events)
    return replace(decision, reads_records=names, events=events, recorded=running.recorded)


def _measure(running: RunningBlock) -> Decision:
    run = running.run
    sealed = [one for one in running.due if one.record.ended is not None]
    if sealed:  # the operator was killed before it wrote the result
        return _end_cases(running, [(one, _end(running)) for one in sealed])
    for one in running.due:
        rejected = run.observed.rejected_results.get(one.name)
        if rejected is not None:
            problem = Problem(reasons.RESULT_REFUSED, f"The API server rejects the trials of the case: {rejected}")
            return _fail_cases(running, [one.without_new_trials()], problem)
        if one.error:
            return _fail_cases(running, [one], _unreadable(one))
    if running.client.is_startable:
        return _start(running, running.client.delete_others())
    if running.may_be_cut_off:
        return Decision(running.build_status(), running.save(), requeue_after=NOTICE_SECONDS)
    if running.needs_no_log:
        return _finish_block(running)
    match follow_client(running.client):
        case ClientExit() as client_exit:
            return _handle_exit(running, client_exit)
        case Problem() as problem:
            return _fail_cases(running, running.due, problem)
        case seconds:
            return Decision(running.build_status(), running.save(), requeue_after=seconds)


def _running_block(run: Run, block: Block, servers: Mapping[ServerPlacement, RunningServer]) -> RunningBlock:
    client = Client(run, run.observed.workload, block.cases, block.pass_number)
    due = tuple(_measurement(client, block, case) for case in block.cases if not run.ended(case))
    known = max((aggregate.newest_attempt(one.record.trials, block.trials) for one in due), default=0)
    return RunningBlock(block, replace(client, known_attempts=known), servers, due)


def _measurement(client: Client, block: Block, case: Case) -> Measurement:
    """Returns the case with every trial that its clients have printed. Each trial counts once."""
    run, result = client.run, client.run.result(case)
    spec = run.result_spec(case) if result is None else result.spec
    status = None if result is None else result.status
    stored = run.record(case)
    measurement = Measurement(run.result_name(case), case, spec, block.trials, status, stored, stored)
    if stored.ended is not None:
        return measurement
    try:
        return _with_printed_trials(client, measurement)
    except Exception as error:  # whatever a client prints, its benchmark continues
        return replace(measurement, error=f"{type(error).__name__}: {error}"[:_MAXIMUM_ERROR])


def _with_printed_trials(client: Client, one: Measurement) -> Measurement:
    logs = client.run.observed.logs
    outages = client.outages(client.created)
    record = add_printed_trials(one.spec, one.record, client.pods, logs, outages)
    return replace(one, record=record, traced=traced_trials(one.spec, record, client.pods, logs))


def _unreadable(one: Measurement) -> Problem:
    message = (
        f"The trials that the client printed cannot be recorded ({one.error}). What was recorded before is kept. "
        "Install the client image and the operator from the same release."
    )
    return Problem(reasons.CLIENT_UNREADABLE, message)


def _schedule(running: RunningBlock) -> tuple[ScheduledTrial, ...]:
    """Returns the missing trials, in the order in which the block runs them."""
    run, missing = running.run, {(one.case.number, trial) for one in running.due for trial in one.missing}
    schedule = schedule_trials(running.block, run.spec.repetitions, run.spec.order.seed, run.status.number)
    return tuple(scheduled for scheduled in schedule if (scheduled.case, scheduled.trial) in missing)


def _start(running: RunningBlock, stale: tuple[Action, ...], *events: Event) -> Decision:
    """Starts a client for the missing trials, and deletes stale Jobs by the actions of `stale`. The results exist
    before the client: what it prints can be saved even if the spec has changed meanwhile. The records are created
    while it starts, so that a trial needs one write."""
    schedule = _schedule(running)
    if not schedule:
        return _finish_block(running, stale)
    nodes = running.run.client_nodes(running.due[0].case)
    started = nodes if isinstance(nodes, Problem) else start_client(running.client, running.servers, nodes, schedule)
    if isinstance(started, Problem):
        return _fail_cases(running, running.due, started)
    if running.client.is_cut_off:
        return Decision(running.build_status(), (*running.save(), *stale), requeue_after=NOTICE_SECONDS)
    records = (save_record(one.name, one.spec, one.record) for one in running.due if one.result is None)
    return Decision(running.build_status(), (*running.save(), *started, *stale, *records), events)


def _handle_exit(running: RunningBlock, client_exit: ClientExit) -> Decision:
    """Handles the end of a client. A problem of one case ends that case. After other problems, a new client runs the
    missing trials, or the cases end if the problem is permanent or the attempts are used up."""
    client, left = running.client, [one for one in running.due if one.missing]
    if not left:
        return _finish_block(running)
    problem = exit_problem(client, client_exit)
    blamed = [one for one in left if one.case.number == problem.case]
    if blamed:
        return _fail_cases(running, blamed, problem)
    retriable = problem.transient or problem.case != 0
    if not retriable or _attempts_used_up(running, problem):
        return _fail_cases(running, left, problem)
    cases = describe_cases(*(one.case for one in left))
    message = f"{cases}: {problem.message} A new client continues with trial {_schedule(running)[0].trial}."
    return _start(running, _stop_rest(client), Event(problem.reason, message, warning=True))


def _attempts_used_up(running: RunningBlock, problem: Problem) -> bool:
    """Whether no other client may start. After one whose log was too large, or a member that was interrupted, another
    one continues if that one has measured anything. Each outage of a node allows another one."""
    newest = max(aggregate.newest_attempt(one.record.trials, one.trials) for one in running.due)
    external = running.run.observed.is_external(running.client.parts[0].node_class)
    may_repeat = problem.reason == reasons.CLIENT_UNREADABLE or (external and problem.reason == "Interrupted")
    if may_repeat and newest == running.client.attempts:
        return False
    outages = min(len(running.client.outages(running.client.created)), _MAXIMUM_OUTAGES)
    return running.client.attempts >= _MAXIMUM_ATTEMPTS + outages + len(running.block.cases) - len(running.due)


def _stop_rest(client: Client) -> tuple[Action, ...]:
    """Deletes the parts of a client that wait for a lost part."""
    waiting = [job for job, pod in client.newest if not job.finished and (pod is None or pod.terminated is None)]
    return tuple(DeleteJob(job.name) for job in waiting if not job.deleting)


def _finish_block(running: RunningBlock, stale: tuple[Action, ...] = ()) -> Decision:
    """Ends a block whose trials are all run. Its cases end with it in the last pass."""
    if not running.block.last:
        saved = (action for one in running.due for action in one.finish_pass(running.block.pass_number))
        return Decision(running.build_status(), (*saved, *stale, *running.client.delete()), requeue_after=0)
    return _end_cases(running, [(one, _end(running)) for one in running.due], stale)


def _fail_cases(running: RunningBlock, lost: Sequence[Measurement], problem: Problem) -> Decision:
    """Ends some cases early: as measured with a note if a case has a good trial, else as failed."""
    end = early_end(running.run.now, problem, _engine(running.client))
    return _end_cases(running, [(one, end) for one in lost])


def _end(running: RunningBlock) -> RecordEnd:
    return RecordEnd(time=format_time(running.run.now), engine=_engine(running.client))


def _end_cases(
    running: RunningBlock, ended: Sequence[tuple[Measurement, RecordEnd]], stale: tuple[Action, ...] = ()
) -> Decision:
    """Writes the final records and results. The Jobs are deleted only once every result of the block is written."""
    actions: list[Action] = [action for one, end in ended for action in one.finish(end)]
    finals = {action.name: action.status for action in actions if isinstance(action, SaveResult)}
    others = [one for one in running.due if one.name not in finals]
    actions += [action for one in others for action in one.save()]
    actions += (*stale, *(() if others else running.client.delete()))
    total, before = len(running.run.cases), len(running.run.cases) - len(running.run.due)
    events = tuple(
        _case_ended_event(one.case, finals[one.name], f"{number}/{total}", one.record.ended or end)
        for number, (one, end) in enumerate(ended, start=before + 1)
    )
    return Decision(running.build_status(), tuple(actions), events, requeue_after=0)


def _case_ended_event(case: Case, final: ResultStatus, progress: str, end: RecordEnd) -> Event:
    if end.reason:
        return case_failed_event(case, Problem(end.reason, end.message))
    measured, display = final.phase is ResultPhase.COMPLETE, final.display
    outcome = (
        f"mean {display.mean}, {display.throughput}, {final.counts.retries} retries" if measured else final.message
    )
    reason = reasons.CASE_MEASURED if measured else reasons.CASE_FAILED
    return Event(reason, f"{progress} {describe_cases(case)}: {outcome}", warning=not measured)


def _engine(client: Client) -> Engine | None:
    for _, pod in client.newest:
        if pod is not None and pod.terminated is not None:
            seal = check_seal(client.log(pod).output, pod.terminated.message).seal
            if seal is not None:
                return seal.engine
    return None


def refine(run: Run) -> Decision | None:
    """Adds the levels of the next round of refinement to a run that has measured all cases. Returns None if every
    bracket is as narrow as `runPolicy.refine` asks, or cannot become narrower."""
    asked, factor = run.spec.run_policy.refine, run.refinable
    if asked is None or factor is None:
        return None
    added = _within_bounds(run, asked, _refinement_levels(run, asked, factor))
    if not added:
        return None
    number = run.refinement + 1
    further = (Refinement(round=number, client_class=one.client_class, levels=dict(one.levels)) for one in added)
    refined = run.with_status(refinements=(*run.status.refinements, *further))
    events = tuple(Event(reasons.REFINED, str(one)) for one in added)
    return Decision(build_status(refined, Phase.RUNNING), events=events, requeue_after=0)


def _refinement_levels(run: Run, asked: Refine, factor: Factor) -> tuple[RefinementLevel, ...]:
    within = asked.within_percent / 100
    return tuple(level for found in runs(run.results) for level in refinements(found, factor.name, within))


def _within_bounds(run: Run, asked: Refine, found: Sequence[RefinementLevel]) -> Sequence[RefinementLevel]:
    """Returns the first levels that `refine.maxCases` and the quotas of cases and trials allow. Every server of its
    levels measures a level."""
    server_placements = run.observed.workload.server_placements()

    def cases(levels: Mapping[str, str]) -> int:
        return sum(placement.serves(levels) for placement in server_placements)

    already = sum(cases(one.levels) for one in run.status.refinements)
    quotas = run.observed.quotas
    most = min(quotas.cases, quotas.trials // run.spec.repetitions)
    room = min(asked.max_cases - already, most - len(run.cases))
    totals = accumulate(cases(one.levels) for one in found)
    return [one for one, total in zip(found, totals, strict=True) if total <= room]
