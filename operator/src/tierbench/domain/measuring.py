"""Measures block after block: starts clients, writes their trials, ends cases, and refines the levels of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Final

from tierbench.advice.caveats import RefinementLevel, refinements
from tierbench.advice.tables import runs
from tierbench.api.benchmark import BenchmarkStatus, Phase, Refinement
from tierbench.api.contract import Engine, Outcome, TrialLine
from tierbench.api.result import Note, ResultPhase, ResultSpec, ResultStatus, TraceSpec, TraceStatus
from tierbench.api.run_policy import Refine
from tierbench.domain import reasons
from tierbench.domain.client import Client, ClientExit, exit_problem, follow_client, merge_trials, start_client
from tierbench.domain.decision import Action, Decision, DeleteJob, Event, SaveResult, SaveTrace
from tierbench.domain.run import Run
from tierbench.domain.servers import case_failed_event
from tierbench.domain.status import ConditionUpdate, build_status, describe_cases
from tierbench.domain.views import Problem
from tierbench.results import aggregate
from tierbench.results.aggregate import with_stored_bytes
from tierbench.results.client_output import check_seal, select_traces
from tierbench.workloads.plan import Block, Case, Factor, ScheduledTrial, ServerPlacement, schedule_trials
from tierbench.workloads.workload import RunningServer

_MAXIMUM_MESSAGE: Final = 1024
_MAXIMUM_ERROR: Final = 256
_MAXIMUM_ATTEMPTS: Final = 3


@dataclass(frozen=True)
class Measurement:
    """A case that has not ended. `stored` is the status of its result, `status` adds the trials in the logs since then.
    `trials` are the numbers of the trials of the pass, `traced` the trials with a trace of TCP. `error` says why the
    trials in the logs cannot be recorded."""

    name: str
    case: Case
    spec: ResultSpec
    trials: range
    stored: ResultStatus | None
    status: ResultStatus
    traced: tuple[TrialLine, ...] = ()
    error: str = ""

    @property
    def missing(self) -> tuple[int, ...]:
        """The numbers of the trials that are still missing in the pass."""
        return tuple(number for number in aggregate.missing_trials(self.spec, self.status) if number in self.trials)

    def without_new_trials(self) -> "Measurement":
        """Returns the measurement without the trials that are not stored."""
        return replace(self, status=self.stored or ResultStatus(), traced=())

    @cached_property
    def trace(self) -> TraceStatus:
        """The trace of TCP over time."""
        return select_traces(self.traced)

    def write(self, status: ResultStatus) -> SaveResult:
        """Writes this status of the result, with the size of result and trace."""
        return SaveResult(self.name, self.spec, with_stored_bytes(status, self.trace))

    def save(self) -> tuple[Action, ...]:
        """Writes the new trials, if there are any."""
        return () if self.status == self.stored else (self.write(self.status),)

    def save_trace(self) -> tuple[Action, ...]:
        """Writes the new trials and the trace, if there is a trace."""
        if not self.trace.traces:
            return ()
        spec = TraceSpec(benchmark=self.spec.benchmark, run=self.spec.run, case=self.spec.case)
        return (*self.save(), SaveTrace(self.name, spec, self.trace))


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
        return build_status(self.run, Phase.RUNNING, ready, current=tuple(one.case for one in self.due))


def measure_block(run: Run, block: Block, servers: Mapping[ServerPlacement, RunningServer]) -> Decision:
    """Returns the next step of a block whose servers are ready."""
    running = _running_block(run, block, servers)
    for one in running.due:
        rejected = run.observed.rejected_results.get(one.name)
        if rejected is not None:
            problem = Problem(reasons.RESULT_REFUSED, f"The API server rejects the trials of the case: {rejected}")
            return _fail_cases(running, [one.without_new_trials()], problem)
        if one.error:
            return _fail_cases(running, [one], _unreadable(one))
    if running.client.is_startable:
        return _start(running, running.client.delete_others())
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
    known = max((aggregate.newest_attempt(one.status.trials, block.trials) for one in due), default=0)
    return RunningBlock(block, replace(client, known_attempts=known), servers, due)


def _measurement(client: Client, block: Block, case: Case) -> Measurement:
    """Returns the case with every trial that its clients have printed. Each trial counts once."""
    run, result = client.run, client.run.result(case)
    spec = run.result_spec(case) if result is None else result.spec
    stored = None if result is None else result.status
    measurement = Measurement(run.result_name(case), case, spec, block.trials, stored, stored or ResultStatus())
    try:
        return _with_printed_trials(client, measurement)
    except Exception as error:  # whatever a client prints, its benchmark continues
        return replace(measurement, error=f"{type(error).__name__}: {error}"[:_MAXIMUM_ERROR])


def _with_printed_trials(client: Client, one: Measurement) -> Measurement:
    status, recorded = one.status, {(trial.warmup, trial.trial) for trial in one.status.trials}
    for attempt, trials in merge_trials(client, one.case, lambda trial: trial.key not in recorded):
        status = aggregate.add_trials(one.spec, status, trials, attempt)
    traced = {trial.key for pod in client.pods for trial in client.log(pod).output.printed if trial.traced}
    found = merge_trials(client, one.case, lambda trial: trial.key in traced)
    return replace(one, status=status, traced=tuple(line for _, trials in found for line in trials))


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
    """Starts a client for the missing trials, and deletes stale Jobs by the actions of `stale`."""
    schedule = _schedule(running)
    if not schedule:
        return _finish_block(running, stale)
    nodes = running.run.client_nodes(running.due[0].case)
    started = nodes if isinstance(nodes, Problem) else start_client(running.client, running.servers, nodes, schedule)
    if isinstance(started, Problem):
        return _fail_cases(running, running.due, started)
    return Decision(running.build_status(), (*started, *running.save(), *stale), events)


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
    if client_exit.job.timed_out or not retriable or _attempts_used_up(running, problem):
        return _fail_cases(running, left, problem)
    cases = describe_cases(*(one.case for one in left))
    message = f"{cases}: {problem.message} A new client continues with trial {_schedule(running)[0].trial}."
    return _start(running, _stop_rest(client), Event(problem.reason, message, warning=True))


def _attempts_used_up(running: RunningBlock, problem: Problem) -> bool:
    """Whether no other client may start. After one whose log was too large, another one continues if that one has
    measured anything."""
    newest = max(aggregate.newest_attempt(one.status.trials, one.trials) for one in running.due)
    if problem.reason == reasons.CLIENT_UNREADABLE and newest == running.client.attempts:
        return False
    return running.client.attempts >= _MAXIMUM_ATTEMPTS + len(running.block.cases) - len(running.due)


def _stop_rest(client: Client) -> tuple[Action, ...]:
    """Deletes the parts of a client that wait for a lost part."""
    waiting = [job for job, pod in client.newest if not job.finished and (pod is None or pod.terminated is None)]
    return tuple(DeleteJob(job.name) for job in waiting if not job.deleting)


def _finish_block(running: RunningBlock, stale: tuple[Action, ...] = ()) -> Decision:
    """Ends a block whose trials are all run. Its cases end with it in the last pass."""
    if not running.block.last:
        saved = (action for one in running.due for action in one.save_trace() or one.save())
        return Decision(running.build_status(), (*saved, *stale, *running.client.delete()), requeue_after=0)
    total, before = len(running.run.cases), len(running.run.cases) - len(running.run.due)
    ended = []
    for number, one in enumerate(running.due, start=before + 1):
        final = _conclude(running, one)
        ended.append((one, final, _case_ended_event(one.case, final, f"{number}/{total}")))
    return _end_cases(running, ended, stale)


def _case_ended_event(case: Case, final: ResultStatus, progress: str) -> Event:
    measured, display = final.phase is ResultPhase.MEASURED, final.display
    outcome = (
        f"mean {display.mean}, {display.throughput}, {final.counts.retries} retries" if measured else final.message
    )
    reason = reasons.CASE_MEASURED if measured else reasons.CASE_FAILED
    return Event(reason, f"{progress} {describe_cases(case)}: {outcome}", warning=not measured)


def _fail_cases(running: RunningBlock, lost: Sequence[Measurement], problem: Problem) -> Decision:
    """Ends some cases early: as measured with a note if a case has a good trial, else as failed."""
    ended = []
    for one in lost:
        good = any(trial.outcome is Outcome.COMPLETED and not trial.warmup for trial in one.status.trials)
        failed = aggregate.fail(one.spec, one.status, running.run.now, problem.reason, problem.message)
        ended.append((one, _conclude(running, one, problem) if good else failed, case_failed_event(one.case, problem)))
    return _end_cases(running, ended)


def _conclude(running: RunningBlock, one: Measurement, problem: Problem | None = None) -> ResultStatus:
    note = None if problem is None else Note(reason=problem.reason, message=problem.message[:512])
    return aggregate.conclude(one.spec, one.status, running.run.now, _engine(running.client), note)


def _end_cases(
    running: RunningBlock, ended: Sequence[tuple[Measurement, ResultStatus, Event]], stale: tuple[Action, ...] = ()
) -> Decision:
    """Writes the final results. The Jobs are deleted only once every result of the block is written."""
    actions: list[Action] = []
    for one, final, _ in ended:
        actions += (*one.save_trace(), one.write(final))
    names = {one.name for one, _, _ in ended}
    others = [one for one in running.due if one.name not in names]
    actions += [action for one in others for action in one.save()]
    actions += (*stale, *(() if others else running.client.delete()))
    return Decision(running.build_status(), tuple(actions), tuple(event for _, _, event in ended), requeue_after=0)


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
    """Returns the first levels that `refine.maximumCases` and the quota of cases allow. Every server of its levels
    measures a level."""
    server_placements = run.observed.workload.server_placements()

    def cases(levels: Mapping[str, str]) -> int:
        return sum(placement.serves(levels) for placement in server_placements)

    already = sum(cases(one.levels) for one in run.status.refinements)
    room = min(asked.maximum_cases - already, run.observed.quotas.cases - len(run.cases))
    totals = accumulate(cases(one.levels) for one in found)
    return [one for one, total in zip(found, totals, strict=True) if total <= room]
