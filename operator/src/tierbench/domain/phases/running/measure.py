"""Measures the block that is next: a client is started, its trials kept as they come, and a lost one replaced."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tierbench.api.result import ResultStatus
from tierbench.domain import reasons
from tierbench.domain.actions import Action, Decision, DeleteJob, Event
from tierbench.domain.phases.running.client import Client
from tierbench.domain.phases.running.conclude import Measurement, Underway, conclude, give_up
from tierbench.domain.phases.running.fold import fold
from tierbench.domain.phases.running.follow import Over, follow, why_over
from tierbench.domain.phases.running.start import start
from tierbench.domain.run import Run
from tierbench.domain.status import cases_words
from tierbench.domain.views import Problem
from tierbench.results.record import newest_attempt, record
from tierbench.workloads.plan import Block, Case, Slot, Turn, schedule
from tierbench.workloads.workload import RunningServer

_MAXIMUM_ATTEMPTS: Final = 3


def measure(run: Run, block: Block, servers: Mapping[Slot, RunningServer]) -> Decision:
    """The next step of one block."""
    at = _underway(run, block, servers)
    for one in at.due:
        refused = run.observed.refused_results.get(one.name)
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
            return Decision(at.report(), at.save(), wait_seconds=seconds)


def _underway(run: Run, block: Block, servers: Mapping[Slot, RunningServer]) -> Underway:
    client = Client(run, run.observed.workload, block.cases, block.pass_number)
    due = tuple(_measurement(client, block, case) for case in block.cases if not run.ended(case))
    known = max((newest_attempt(one.status.trials, block.trials) for one in due), default=0)
    return Underway(block, replace(client, known_attempts=known), servers, due)


def _measurement(client: Client, block: Block, case: Case) -> Measurement:
    """The case with every trial that its clients have printed; none is counted twice."""
    run, result = client.run, client.run.result(case)
    spec = run.result_spec(case) if result is None else result.spec
    before = None if result is None else result.status
    status = before or ResultStatus()
    recorded = {(trial.warmup, trial.trial) for trial in status.trials}
    for attempt, trials in fold(client, case, lambda trial: trial.key not in recorded):
        status = record(spec, status, trials, attempt)
    traced = {trial.key for pod in client.pods for trial in client.log(pod).output.printed if trial.traced}
    lines = tuple(line for _, trials in fold(client, case, lambda trial: trial.key in traced) for line in trials)
    return Measurement(run.result_name(case), case, spec, block.trials, before, status, lines)


def _turns(at: Underway) -> tuple[Turn, ...]:
    """The trials that are missing, in the order in which the block runs them."""
    missing = {(one.case.number, trial) for one in at.due for trial in one.missing}
    turns = schedule(at.block, at.run.spec.repetitions, at.run.spec.order.seed, at.run.status.number)
    return tuple(turn for turn in turns if (turn.case, turn.trial) in missing)


def _start(at: Underway, strays: tuple[Action, ...], *events: Event) -> Decision:
    """Starts a client for the trials that are missing."""
    turns = _turns(at)
    if not turns:
        return conclude(at, strays)
    nodes = at.run.client_nodes(at.due[0].case)
    begin = nodes if isinstance(nodes, Problem) else start(at.client, at.servers, nodes, turns)
    if isinstance(begin, Problem):
        return give_up(at, at.due, begin)
    return Decision(at.report(), (*begin, *at.save(), *strays), events)


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
    message = f"{cases}: {problem.message} A new client goes on with trial {_turns(at)[0].trial}."
    return _start(at, _stop_rest(client), Event(problem.reason, message, warning=True))


def _stop_rest(client: Client) -> tuple[Action, ...]:
    """Removes the parts of a client that wait for one that was lost."""
    waiting = [job for job, pod in client.newest if not job.finished and (pod is None or pod.terminated is None)]
    return tuple(DeleteJob(job.name) for job in waiting if not job.deleting)
