"""Measures block after block: starts the next client, writes trials as they come, ends cases, adds levels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Final

from tierbench.advice.leaders import RefinementLevel, refinements
from tierbench.advice.tables import runs
from tierbench.api.benchmark import BenchmarkStatus, Phase, Refinement
from tierbench.api.contract import Engine, Outcome, TrialLine
from tierbench.api.result import Note, ResultPhase, ResultSpec, ResultStatus, TraceSpec, TraceStatus
from tierbench.api.run_policy import Refine
from tierbench.domain import reasons
from tierbench.domain.actions import Action, Decision, DeleteJob, Event, SaveResult, SaveTrace
from tierbench.domain.client import Client, Over, fold, follow, start, why_over
from tierbench.domain.run import Run
from tierbench.domain.servers import refusal_event
from tierbench.domain.status import ConditionUpdate, build_status, case_words, cases_words
from tierbench.domain.views import Problem
from tierbench.results import record
from tierbench.results.output import check_seal
from tierbench.results.sizes import sized
from tierbench.results.traces import collect
from tierbench.workloads.plan import Block, Case, Factor, ScheduledTrial, ServerPlacement, schedule_trials
from tierbench.workloads.workload import RunningServer

_MAXIMUM_MESSAGE: Final = 1024
_MAXIMUM_ATTEMPTS: Final = 3


@dataclass(frozen=True)
class Measurement:
    """A case that has not ended, and all that its clients have said of it so far. `share` are the pass's trials,
    `traced` those of which TCP was followed over time."""

    name: str
    case: Case
    spec: ResultSpec
    share: range
    before: ResultStatus | None
    status: ResultStatus
    traced: tuple[TrialLine, ...] = ()

    @property
    def missing(self) -> tuple[int, ...]:
        """The numbers of the trials that are still to be run in the pass."""
        return tuple(number for number in record.due(self.spec, self.status) if number in self.share)

    def as_written(self) -> "Measurement":
        """Without what has come since."""
        return replace(self, status=self.before or ResultStatus(), traced=())

    @cached_property
    def trace(self) -> TraceStatus:
        """What TCP did over time."""
        return collect(self.traced)

    def write(self, status: ResultStatus) -> SaveResult:
        """Writes a status of the result, and how much it takes."""
        return SaveResult(self.name, self.spec, sized(status, self.trace))

    def save(self) -> tuple[Action, ...]:
        """Writes the trials that have come since."""
        return () if self.status == self.before else (self.write(self.status),)

    def save_trace(self) -> tuple[Action, ...]:
        """Writes what TCP did over time, where that was traced."""
        if not self.trace.traces:
            return ()
        spec = TraceSpec(benchmark=self.spec.benchmark, run=self.spec.run, case=self.spec.case)
        return (*self.save(), SaveTrace(self.name, spec, self.trace))


@dataclass(frozen=True)
class Underway:
    """A block with its servers ready, its client, and its cases that have not ended."""

    block: Block
    client: Client
    servers: Mapping[ServerPlacement, RunningServer]
    due: tuple[Measurement, ...]

    @property
    def run(self) -> Run:
        """The run that it is of."""
        return self.client.run

    def save(self) -> tuple[Action, ...]:
        """Writes the trials that have come since."""
        return tuple(action for one in self.due for action in one.save())

    def build_status(self) -> BenchmarkStatus:
        """The status of the benchmark while these are measured."""
        places = "; ".join(
            f"{server.instance.name} is ready on {server.instance.node}" for server in self.servers.values()
        )
        said = ConditionUpdate(reasons.SERVER_READY, True, reasons.READY, f"{places}."[:_MAXIMUM_MESSAGE])
        return build_status(self.run, Phase.RUNNING, said, current=tuple(one.case for one in self.due))


def measure(run: Run, block: Block, servers: Mapping[ServerPlacement, RunningServer]) -> Decision:
    """The next step of one block."""
    at = _underway(run, block, servers)
    for one in at.due:
        refused = run.observed.rejected_results.get(one.name)
        if refused is not None:
            problem = Problem(reasons.RESULT_REFUSED, f"The API server did not take what was measured: {refused}")
            return give_up(at, [one.as_written()], problem)
    if at.client.is_to_start:
        return _start(at, at.client.delete_others())
    match follow(at.client):
        case Over() as over:
            return _over(at, over)
        case Problem() as problem:
            return give_up(at, at.due, problem)
        case seconds:
            return Decision(at.build_status(), at.save(), requeue_after=seconds)


def _underway(run: Run, block: Block, servers: Mapping[ServerPlacement, RunningServer]) -> Underway:
    client = Client(run, run.observed.workload, block.cases, block.pass_number)
    due = tuple(_measurement(client, block, case) for case in block.cases if not run.ended(case))
    known = max((record.newest_attempt(one.status.trials, block.trials) for one in due), default=0)
    return Underway(block, replace(client, known_attempts=known), servers, due)


def _measurement(client: Client, block: Block, case: Case) -> Measurement:
    """The case with every trial that its clients have printed; none is counted twice."""
    run, result = client.run, client.run.result(case)
    spec = run.result_spec(case) if result is None else result.spec
    before = None if result is None else result.status
    status = before or ResultStatus()
    recorded = {(trial.warmup, trial.trial) for trial in status.trials}
    for attempt, trials in fold(client, case, lambda trial: trial.key not in recorded):
        status = record.record(spec, status, trials, attempt)
    traced = {trial.key for pod in client.pods for trial in client.log(pod).output.printed if trial.traced}
    lines = tuple(line for _, trials in fold(client, case, lambda trial: trial.key in traced) for line in trials)
    return Measurement(run.result_name(case), case, spec, block.trials, before, status, lines)


def _schedule(at: Underway) -> tuple[ScheduledTrial, ...]:
    """The trials that are missing, in the order in which the block runs them."""
    missing = {(one.case.number, trial) for one in at.due for trial in one.missing}
    schedule = schedule_trials(at.block, at.run.spec.repetitions, at.run.spec.order.seed, at.run.status.number)
    return tuple(scheduled for scheduled in schedule if (scheduled.case, scheduled.trial) in missing)


def _start(at: Underway, strays: tuple[Action, ...], *events: Event) -> Decision:
    """Starts a client for the trials that are missing."""
    schedule = _schedule(at)
    if not schedule:
        return conclude(at, strays)
    nodes = at.run.client_nodes(at.due[0].case)
    begin = nodes if isinstance(nodes, Problem) else start(at.client, at.servers, nodes, schedule)
    if isinstance(begin, Problem):
        return give_up(at, at.due, begin)
    return Decision(at.build_status(), (*begin, *at.save(), *strays), events)


def _over(at: Underway, over: Over) -> Decision:
    """A client is over: by itself, or a part was lost. What is only one case's fault ends that case; else a new client
    goes on with the missing trials, or the cases are concluded."""
    client, left = at.client, [one for one in at.due if one.missing]
    if not left:
        return conclude(at)
    problem = why_over(client, over)
    blamed = [one for one in left if one.case.number == problem.case]
    if blamed:
        return give_up(at, blamed, problem)
    others_fault = problem.case != 0
    most = _MAXIMUM_ATTEMPTS + len(at.block.cases) - len(at.due)
    if over.job.timed_out or not (problem.transient or others_fault) or client.attempts >= most:
        return give_up(at, left, problem)
    cases = cases_words([one.case for one in left])
    message = f"{cases}: {problem.message} A new client goes on with trial {_schedule(at)[0].trial}."
    return _start(at, _stop_rest(client), Event(problem.reason, message, warning=True))


def _stop_rest(client: Client) -> tuple[Action, ...]:
    """Removes the parts of a client that wait for one that was lost."""
    waiting = [job for job, pod in client.newest if not job.finished and (pod is None or pod.terminated is None)]
    return tuple(DeleteJob(job.name) for job in waiting if not job.deleting)


def conclude(at: Underway, strays: tuple[Action, ...] = ()) -> Decision:
    """Ends the block. In the last pass its cases end with what was measured, before that they go on in the next one."""
    if not at.block.last:
        saved = (action for one in at.due for action in one.save_trace() or one.save())
        return Decision(at.build_status(), (*saved, *strays, *at.client.delete()), requeue_after=0)
    total, number = len(at.run.cases), len(at.run.cases) - len(at.run.due)
    ended = []
    for place, one in enumerate(at.due, start=number + 1):
        final = _concluded(at, one)
        measured = final.phase is ResultPhase.MEASURED
        display = final.display
        words = (
            f"mean {display.mean}, {display.throughput}, {final.counts.retries} retries" if measured else final.message
        )
        event = Event(
            reasons.CASE_MEASURED if measured else reasons.CASE_FAILED,
            f"{place}/{total} {case_words(one.case)}: {words}",
            warning=not measured,
        )
        ended.append((one, final, event))
    return _end(at, ended, strays)


def give_up(at: Underway, lost: Sequence[Measurement], problem: Problem) -> Decision:
    """Ends some cases early: Measured with a note if a trial was good, else Failed. The others go on."""
    ended = []
    for one in lost:
        good = any(trial.outcome is Outcome.COMPLETED and not trial.warmup for trial in one.status.trials)
        failed = record.fail(one.spec, one.status, at.run.now, problem.reason, problem.message)
        ended.append((one, _concluded(at, one, problem) if good else failed, refusal_event(one.case, problem)))
    return _end(at, ended)


def _concluded(at: Underway, one: Measurement, problem: Problem | None = None) -> ResultStatus:
    """What comes of a case, and of a problem that ended it early."""
    why = None if problem is None else Note(reason=problem.reason, message=problem.message[:512])
    return record.conclude(one.spec, one.status, at.run.now, _engine(at.client), why)


def _end(
    at: Underway, ended: Sequence[tuple[Measurement, ResultStatus, Event]], strays: tuple[Action, ...] = ()
) -> Decision:
    """The Jobs go only once every result of the block is written."""
    actions: list[Action] = []
    for one, final, _ in ended:
        actions += (*one.save_trace(), one.write(final))
    names = {one.name for one, _, _ in ended}
    others = [one for one in at.due if one.name not in names]
    actions += [action for one in others for action in one.save()]
    actions += (*strays, *(() if others else at.client.delete()))
    return Decision(at.build_status(), tuple(actions), tuple(event for _, _, event in ended), requeue_after=0)


def _engine(client: Client) -> Engine | None:
    for _, pod in client.newest:
        if pod is not None and pod.terminated is not None:
            seal = check_seal(client.log(pod).output, pod.terminated.message).seal
            if seal is not None:
                return seal.engine
    return None


def refine(run: Run) -> Decision | None:
    """The next round; None when every bracket is as narrow as asked, or can be no narrower."""
    asked, factor = run.spec.run_policy.refine, run.refinable
    if asked is None or factor is None:
        return None
    added = _fitting(run, asked, _found(run, asked, factor))
    if not added:
        return None
    number = run.refinement + 1
    further = (Refinement(round=number, client_class=one.client_class, levels=dict(one.levels)) for one in added)
    refinements = (*run.status.refinements, *further)
    status = run.status.model_copy(update={"refinements": refinements})
    events = tuple(Event(reasons.REFINED, str(one)) for one in added)
    return Decision(build_status(Run(run.observed, status, run.now), Phase.RUNNING), events=events, requeue_after=0)


def _found(run: Run, asked: Refine, factor: Factor) -> tuple[RefinementLevel, ...]:
    results = [result for case in run.cases if (result := run.result(case)) is not None]
    within = asked.within_percent / 100
    return tuple(middle for found in runs(results) for middle in refinements(found, factor.name, within))


def _fitting(run: Run, asked: Refine, found: Sequence[RefinementLevel]) -> Sequence[RefinementLevel]:
    """As many as the bounds leave room for; each is measured with every server of its levels."""
    server_placements = run.observed.workload.server_placements()

    def cases(levels: Mapping[str, str]) -> int:
        return sum(placement.serves(levels) for placement in server_placements)

    already = sum(cases(one.levels) for one in run.status.refinements)
    room = min(asked.maximum_cases - already, run.observed.quotas.cases - len(run.cases))
    totals = accumulate(cases(one.levels) for one in found)
    return [one for one, total in zip(found, totals, strict=True) if total <= room]
