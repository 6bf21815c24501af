"""Concludes a case with what was measured: trials are written as they come, and its Jobs go once all is written."""

from dataclasses import dataclass

from tierbench.api.benchmark import Phase
from tierbench.api.contract import Engine, Outcome, TrialLine
from tierbench.api.result import ResultPhase, ResultSpec, ResultStatus
from tierbench.api.trace import TraceSpec
from tierbench.domain import reasons
from tierbench.domain.actions import Action, Decision, Event, SaveResult, SaveTrace
from tierbench.domain.conditions import Said
from tierbench.domain.phases.running.client import Client
from tierbench.domain.phases.running.refuse import refusal_event
from tierbench.domain.status import case_words, report
from tierbench.domain.views import Problem
from tierbench.results import record
from tierbench.results.output import check_seal
from tierbench.results.traces import collect
from tierbench.workloads.workload import RunningServer


@dataclass(frozen=True)
class Measurement:
    """A case with its server ready, and all that its clients have said so far."""

    client: Client
    server: RunningServer
    spec: ResultSpec
    before: ResultStatus | None
    status: ResultStatus
    lines: tuple[TrialLine, ...] = ()

    @property
    def name(self) -> str:
        """That of its result."""
        return self.client.run.result_name(self.client.case)

    def save(self) -> tuple[Action, ...]:
        """Writes the trials that have come since."""
        return () if self.status == self.before else (SaveResult(self.name, self.spec, self.status),)

    def save_trace(self) -> tuple[Action, ...]:
        """Writes what TCP did over time, where that was traced."""
        traced = collect(self.lines)
        if not traced.traces:
            return ()
        spec = TraceSpec(benchmark=self.spec.benchmark, run=self.spec.run, case=self.spec.case)
        return (*self.save(), SaveTrace(self.name, spec, traced))

    def said(self) -> Said:
        """That the server is ready."""
        site = self.server.site
        return Said(reasons.SERVER_READY, True, reasons.READY, f"{site.name} is ready on {site.node}.")

    def concluded(self) -> ResultStatus:
        """What comes of it."""
        return record.conclude(self.spec, self.status, self.client.run.now, _engine(self.client))


def conclude(at: Measurement, strays: tuple[Action, ...] = ()) -> Decision:
    """Ends the case with what was measured."""
    run, case = at.client.run, at.client.case
    final = at.concluded()
    measured = final.phase is ResultPhase.MEASURED
    display = final.display
    words = f"mean {display.mean}, {display.throughput}, {final.counts.retries} retries" if measured else final.message
    number = len(run.cases) - len(run.due) + 1
    event = Event(
        reasons.CASE_MEASURED if measured else reasons.CASE_FAILED,
        f"{number}/{len(run.cases)} {case_words(case)}: {words}",
        warning=not measured,
    )
    return _end(at, final, event, strays)


def give_up(at: Measurement, problem: Problem) -> Decision:
    """Ends the case early: Measured with a note if a trial was good, else Failed."""
    good = any(trial.outcome is Outcome.COMPLETED and not trial.warmup for trial in at.status.trials)
    now = at.client.run.now
    final = at.concluded() if good else record.fail(at.spec, at.status, now, problem.reason, problem.message)
    return _end(at, final, refusal_event(at.client.case, problem))


def _end(at: Measurement, final: ResultStatus, event: Event, strays: tuple[Action, ...] = ()) -> Decision:
    """The Jobs go only once the result is written."""
    actions = (*at.save_trace(), SaveResult(at.name, at.spec, final), *strays, *at.client.delete())
    status = report(at.client.run, Phase.RUNNING, at.said(), current=at.client.case)
    return Decision(status, actions, (event,), wait_seconds=0)


def _engine(client: Client) -> Engine | None:
    for _, pod in client.newest:
        if pod is not None and pod.terminated is not None:
            seal = check_seal(client.log(pod).output, pod.terminated.message).seal
            if seal is not None:
                return seal.engine
    return None
