"""Ends passes, and in the last one cases: trials are written as they come, and Jobs go once all is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from tierbench.api.benchmark import BenchmarkStatus, Phase
from tierbench.api.contract import Engine, Outcome, TrialLine
from tierbench.api.result import Note, ResultPhase, ResultSpec, ResultStatus
from tierbench.api.trace import TraceSpec, TraceStatus
from tierbench.domain import reasons
from tierbench.domain.actions import Action, Decision, Event, SaveResult, SaveTrace
from tierbench.domain.conditions import Said
from tierbench.domain.phases.running.client import Client
from tierbench.domain.phases.running.refuse import refusal_event
from tierbench.domain.run import Run
from tierbench.domain.status import case_words, report
from tierbench.domain.views import Problem
from tierbench.results import record
from tierbench.results.output import check_seal
from tierbench.results.sizes import sized
from tierbench.results.traces import collect
from tierbench.workloads.plan import Block, Case, Slot
from tierbench.workloads.workload import RunningServer

_MAXIMUM_MESSAGE: Final = 1024


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
    servers: Mapping[Slot, RunningServer]
    due: tuple[Measurement, ...]

    @property
    def run(self) -> Run:
        """The run that it is of."""
        return self.client.run

    def save(self) -> tuple[Action, ...]:
        """Writes the trials that have come since."""
        return tuple(action for one in self.due for action in one.save())

    def report(self) -> BenchmarkStatus:
        """The status of the benchmark while these are measured."""
        places = "; ".join(f"{server.site.name} is ready on {server.site.node}" for server in self.servers.values())
        said = Said(reasons.SERVER_READY, True, reasons.READY, f"{places}."[:_MAXIMUM_MESSAGE])
        return report(self.run, Phase.RUNNING, said, current=tuple(one.case for one in self.due))


def conclude(at: Underway, strays: tuple[Action, ...] = ()) -> Decision:
    """Ends the block. In the last pass its cases end with what was measured, before that they go on in the next one."""
    if not at.block.last:
        saved = (action for one in at.due for action in one.save_trace() or one.save())
        return Decision(at.report(), (*saved, *strays, *at.client.delete()), wait_seconds=0)
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
    return Decision(at.report(), tuple(actions), tuple(event for _, _, event in ended), wait_seconds=0)


def _engine(client: Client) -> Engine | None:
    for _, pod in client.newest:
        if pod is not None and pod.terminated is not None:
            seal = check_seal(client.log(pod).output, pod.terminated.message).seal
            if seal is not None:
                return seal.engine
    return None
