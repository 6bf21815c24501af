"""Which results an advice rests on."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tierbench.advice.matrix import RunResults, runs
from tierbench.api.placement_advice import PlacementAdviceSpec
from tierbench.api.result import BenchmarkResult, ResultPhase

Change = Callable[[Sequence[BenchmarkResult]], tuple[BenchmarkResult, ...]]


@dataclass(frozen=True)
class Selection:
    """The newest run of each benchmark, and the run before it. A run that is not over yields to the one before."""

    current: tuple[RunResults, ...]
    before: tuple[RunResults, ...]

    @property
    def results(self) -> tuple[BenchmarkResult, ...]:
        """Those that the answer rests on."""
        return tuple(result for run in self.current for result in run.results)

    def changed(self, change: Change) -> "Selection":
        """The same with the results of each run changed."""
        return Selection(_changed(self.current, change), _changed(self.before, change))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of their benchmarks."""
        return tuple(sorted({run.benchmark.kind for run in self.current}))


def _changed(found: Sequence[RunResults], change: Change) -> tuple[RunResults, ...]:
    return tuple(replace(run, results=change(run.results)) for run in found)


def select(spec: PlacementAdviceSpec, results: Iterable[BenchmarkResult]) -> Selection:
    """What the spec chooses."""
    histories: dict[tuple[str, str, str], list[RunResults]] = {}
    for run in runs(result for result in results if _chosen(spec, result)):
        histories.setdefault((run.namespace, run.benchmark.kind, run.benchmark.name), []).append(run)
    kept = [_over(history) for history in histories.values()]
    return Selection(tuple(history[-1] for history in kept), tuple(history[-2] for history in kept if len(history) > 1))


def _chosen(spec: PlacementAdviceSpec, result: BenchmarkResult) -> bool:
    names, labels = spec.benchmarks.names, result.metadata.labels
    return (
        result.spec.client.node_class == spec.client_class
        and (not names or result.spec.benchmark.name in names)
        and all(labels.get(key) == value for key, value in spec.benchmarks.match_labels.items())
    )


def _over(history: Sequence[RunResults]) -> Sequence[RunResults]:
    running = any(result.status.phase is ResultPhase.RUNNING for result in history[-1].results)
    return history[:-1] if running and len(history) > 1 else history
