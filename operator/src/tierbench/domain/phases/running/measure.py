"""Measures the case that is next: a client is started, its trials are kept as they come, and a lost one is replaced."""

from dataclasses import replace
from typing import Final

from tierbench.api.benchmark import Phase
from tierbench.api.contract import TrialLine
from tierbench.api.result import ResultStatus
from tierbench.domain import reasons
from tierbench.domain.actions import Action, Decision, DeleteJob, Event
from tierbench.domain.phases.running.client import Client
from tierbench.domain.phases.running.conclude import Measurement, conclude, give_up
from tierbench.domain.phases.running.fold import fold
from tierbench.domain.phases.running.follow import Over, follow, why_over
from tierbench.domain.phases.running.start import start
from tierbench.domain.run import Run
from tierbench.domain.status import case_words, report
from tierbench.domain.views import Problem
from tierbench.results.record import due, record
from tierbench.workloads.plan import Case
from tierbench.workloads.workload import RunningServer

_MAXIMUM_ATTEMPTS: Final = 3


def measure(run: Run, case: Case, server: RunningServer) -> Decision:
    """The next step of one case."""
    at = _measurement(run, case, server)
    refused = run.observed.refused_results.get(run.result_name(case))
    if refused is not None:
        problem = Problem(reasons.RESULT_REFUSED, f"The API server did not take what was measured: {refused}")
        return give_up(replace(at, status=at.before or ResultStatus(), lines=()), problem)
    if not at.client.newest:
        return _start(at, at.client.delete_others())
    match follow(at.client):
        case Over() as over:
            return _over(at, over)
        case Problem() as problem:
            return give_up(at, problem)
        case seconds:
            status = report(run, Phase.RUNNING, at.said(), current=case)
            return Decision(status, at.save(), wait_seconds=seconds)


def _measurement(run: Run, case: Case, server: RunningServer) -> Measurement:
    """The case with every trial that its clients have printed; none is counted twice."""
    result, client = run.result(case), Client(run, run.observed.workload, case)
    spec = run.result_spec(case) if result is None else result.spec
    status = ResultStatus() if result is None else result.status
    lines: list[TrialLine] = []
    for attempt, trials in fold(client):
        lines += trials
        status = record(spec, status, trials, attempt)
    known = max((trial.attempt for trial in status.trials), default=0)
    before = None if result is None else result.status
    return Measurement(replace(client, known_attempts=known), server, spec, before, status, tuple(lines))


def _start(at: Measurement, strays: tuple[Action, ...], *events: Event) -> Decision:
    """Starts a client for the trials that are missing."""
    run, case = at.client.run, at.client.case
    trials = due(at.spec, at.status)
    if not trials:
        return conclude(at, strays)
    nodes = run.client_nodes(case)
    begin = nodes if isinstance(nodes, Problem) else start(at.client, at.server, nodes, trials)
    if isinstance(begin, Problem):
        return give_up(at, begin)
    status = report(run, Phase.RUNNING, at.said(), current=case)
    return Decision(status, (*begin, *at.save(), *strays), events)


def _over(at: Measurement, over: Over) -> Decision:
    """A client is over: by itself, or a part was lost. Goes on with the missing trials, or concludes the case."""
    client, missing = at.client, due(at.spec, at.status)
    if not missing:
        return conclude(at)
    problem = why_over(client, over)
    if over.job.timed_out or not problem.transient or client.attempts >= _MAXIMUM_ATTEMPTS:
        return give_up(at, problem)
    message = f"{case_words(client.case)}: {problem.message} A new client goes on with trial {missing[0]}."
    return _start(at, _stop_rest(client), Event(problem.reason, message, warning=True))


def _stop_rest(client: Client) -> tuple[Action, ...]:
    """Removes the parts of a client that wait for one that was lost."""
    waiting = [job for job, pod in client.newest if not job.finished and (pod is None or pod.terminated is None)]
    return tuple(DeleteJob(job.name) for job in waiting if not job.deleting)
