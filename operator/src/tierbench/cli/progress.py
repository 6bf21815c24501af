"""How a benchmark goes on, pieced together from news, and told in words: pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tierbench.api.benchmark import Benchmark, Phase
from tierbench.api.model import Condition
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.cli.errors import ExitCode
from tierbench.cli.objects import parse_object
from tierbench.kube.client import RESULTS
from tierbench.kube.news import Changed, Listed, News, Raw, Trouble

_WAITING: Final = {
    "Queued": "True",
    "Suspended": "True",
    "Scheduled": "False",
    "NetworkMeasured": "False",
    "ServerReady": "False",
}
_MINUTE: Final = 60


@dataclass(frozen=True)
class Progress:
    """A benchmark and its results as last heard of. `trouble` is why nothing newer is known, `silence` why the
    benchmark may have no status."""

    benchmark: Benchmark
    results: Mapping[str, BenchmarkResult] = field(default_factory=dict)
    trouble: str = ""
    silence: str = ""
    deleted: bool = False

    @property
    def run(self) -> int:
        """The number of the run under way, or of the last one; 0 before the first."""
        return self.benchmark.status.run.number if self.benchmark.status.run else 0

    @property
    def ended(self) -> tuple[BenchmarkResult, ...]:
        """What this run has measured so far, oldest first."""
        ours = [result for result in self.results.values() if result.spec.run == self.run]
        done = [result for result in ours if result.status.phase is not ResultPhase.RUNNING]
        return tuple(sorted(done, key=lambda result: (result.status.completion_time or "", result.spec.case)))

    @property
    def exit_code(self) -> ExitCode | None:
        """None while the benchmark goes on."""
        if self.deleted:
            return ExitCode.UNUSABLE
        status, wanted = self.benchmark.status, self.benchmark.spec.run_policy.rerun
        if status.run is not None and wanted is not None and wanted != status.run.rerun:
            return None
        if status.phase is Phase.COMPLETE and not self.broken:
            return ExitCode.ANSWER
        return ExitCode.NO if status.phase in {Phase.COMPLETE, Phase.FAILED} else None

    @property
    def broken(self) -> tuple[Condition, ...]:
        """The constraints that the last run did not keep to, or is not known to."""
        conditions = self.benchmark.status.conditions
        return tuple(item for item in conditions if (item.type, item.reason) in NOT_PASSED)

    @property
    def unanswered(self) -> bool:
        """Whether no operator has written a status."""
        return not self.deleted and self.benchmark.status.observed_generation == 0

    @property
    def remarks(self) -> tuple[str, ...]:
        """Why it waits, or why it failed."""
        if self.silence and self.unanswered:
            return (self.silence,)
        if self.exit_code is ExitCode.ANSWER:
            return ()
        if self.exit_code is ExitCode.NO:
            failed = (item for item in self.benchmark.status.conditions if (item.type, item.status) == FAILED)
            return tuple(_say(item) for item in (*failed, *self.broken))
        conditions = self.benchmark.status.conditions
        return tuple(_say(item) for item in conditions if _WAITING.get(item.type) == item.status)


FAILED: Final = ("Failed", "True")
NOT_PASSED: Final = frozenset({("Passed", "ConstraintsBroken"), ("Passed", "ConstraintsUnknown")})


def _say(condition: Condition) -> str:
    return f"{condition.type} is {condition.status} ({condition.reason}): {condition.message}"


def heard(progress: Progress, news: News) -> Progress:
    """The progress after one piece of news."""
    match news:
        case Trouble(error):
            return replace(progress, trouble=str(error))
        case Listed(resource, names, _) if resource == RESULTS:
            there = {name for _, name in names}
            known = {name: result for name, result in progress.results.items() if name in there}
            return replace(progress, trouble="", results=known)
        case Listed(_, names, _):
            return replace(progress, trouble="", deleted=progress.deleted or not names)
        case Changed(resource, item, deleted) if resource == RESULTS:
            name, result = _result(item)
            others = {key: value for key, value in progress.results.items() if key != name}
            return replace(progress, results=others if deleted else others | {name: result})
        case Changed(_, item, deleted):
            return replace(progress, deleted=True) if deleted else _with_benchmark(progress, item)


def _result(item: Raw) -> tuple[str, BenchmarkResult]:
    result = parse_object(BenchmarkResult, item)
    return result.metadata.name, result


def _with_benchmark(progress: Progress, item: Raw) -> Progress:
    benchmark = parse_object(type(progress.benchmark), item)
    # One of the same name that was made anew is another benchmark.
    another = benchmark.metadata.uid != progress.benchmark.metadata.uid
    return replace(progress, benchmark=benchmark, deleted=progress.deleted or another)


def changes(before: Progress | None, after: Progress) -> Iterator[str]:
    """What is new, a line each."""
    if after.trouble and (before is None or not before.trouble):
        yield f"no news: {after.trouble}; trying again"
    if before is not None and before.trouble and not after.trouble:
        yield "the API server answers again"
    known = {result.metadata.name for result in before.ended} if before is not None else set()
    yield from (result_line(result) for result in after.ended if result.metadata.name not in known)
    if before is None or now_line(before) != now_line(after):
        yield now_line(after)
    said = before.remarks if before is not None else ()
    yield from (remark for remark in after.remarks if remark not in said)
    if after.deleted and not (before is not None and before.deleted):
        yield f"{after.benchmark.metadata.name} was deleted"


def now_line(progress: Progress) -> str:
    """Phase, cases, and what is measured now."""
    status = progress.benchmark.status
    parts = [status.phase.value]
    if status.cases.total:
        parts.append(f"{status.cases.ended}/{status.cases.total} cases")
    if status.current is not None:
        parts.append(f"{status.current.name}, trial {_trial(progress)} of {status.current.of}")
    if status.remaining_seconds is not None:
        parts.append(f"{time_left(status.remaining_seconds)} left")
    return " · ".join(parts)


def _trial(progress: Progress) -> int:
    current = progress.benchmark.status.current
    return 0 if current is None else min(current.trials + 1, current.of)


def time_left(seconds: float) -> str:
    """About how long: 40 s, 2 min 10 s, 1 h 5 min."""
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, _MINUTE)
    hours, minutes_left = divmod(minutes, _MINUTE)
    if hours:
        return f"{hours} h {minutes_left} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def result_line(result: BenchmarkResult) -> str:
    """A case that has ended."""
    status, spec = result.status, result.spec
    place = f"{status.display.case} on {spec.server.node_class}".strip()
    if status.phase is ResultPhase.FAILED:
        return f"failed: {place}: {status.reason}: {status.message}"
    counts = status.counts
    parts = [status.display.mean, status.display.throughput, f"{counts.retries} retries"]
    if counts.failed:
        parts.append(f"{counts.failed} trials failed")
    if status.valid is False:
        parts.append(f"not valid: {', '.join(note.reason for note in status.invalid)}")
    return f"measured: {place}: {', '.join(part for part in parts if part)}"


def closing_line(progress: Progress) -> str:
    """How it ended, and what to do next."""
    metadata, cases = progress.benchmark.metadata, progress.benchmark.status.cases
    if progress.deleted:
        return f"{metadata.name} was deleted before it ended: apply it again to measure"
    measured = f"{cases.total - cases.failed} of {cases.total} cases measured"
    if progress.broken:
        return f"Not passed: {measured}; {' '.join(item.message for item in progress.broken)}"
    if progress.exit_code is ExitCode.NO:
        return f"Failed: {measured}; see `kubectl describe {progress.benchmark.KIND.singular} {metadata.name}`"
    hint = f"see `kubectl tierbench results {metadata.name} -n {metadata.namespace or 'default'}`"
    answer = f" {progress.benchmark.status.answer}" if progress.benchmark.status.answer else ""
    return f"Complete: {measured}.{answer} For the numbers {hint}"
