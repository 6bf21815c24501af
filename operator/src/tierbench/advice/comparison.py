"""Two sets of results, place by place: has something changed, and for the worse?

Two classes are compared within a run, by their trials. A run is compared with earlier runs, by how far runs differ.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import geometric_mean

from tierbench.advice.contests import SIGNIFICANCE, Difference, adjusted
from tierbench.advice.derived import RETRIES, with_quantities
from tierbench.advice.drift import SHOWN, drift, of_estimate
from tierbench.advice.estimate import Estimate, estimate, smaller_is_better
from tierbench.advice.matrix import Cell
from tierbench.advice.workload import Levels, same
from tierbench.api.result import BenchmarkResult
from tierbench.results.censoring import censored
from tierbench.results.conditions import circumstances
from tierbench.results.quantities import values_of
from tierbench.results.rates import dispersion
from tierbench.results.statistics import incomplete_beta

Place = tuple[str, str, Levels]
"""Server class (empty where classes are compared), client class and levels."""


@dataclass(frozen=True)
class Change:
    """What lies between `first` and `second` at one place.

    `interval` is of the second less the first, `p` how likely so much is by chance; `shown` if that is too unlikely.
    Of runs, `first` is the mean of `runs` earlier ones. One whose slow trials were cut off is only a bound.
    """

    server: str
    client: str
    levels: Mapping[str, str]
    quantity: str
    first: Estimate
    second: Estimate
    interval: tuple[float, float] | None
    p: float
    shown: bool
    runs: int = 0
    first_cut_off: bool = False
    second_cut_off: bool = False

    @property
    def value(self) -> float:
        """The second less the first."""
        return self.second.mean - self.first.mean

    @property
    def share(self) -> float | None:
        """The same as a share of the first; None if that is 0."""
        return self.value / self.first.mean if self.first.mean else None

    def worse(self, tolerance: float = 0) -> bool:
        """Whether the second is shown to be worse, by more than a share of the first."""
        return self.shown and not self.first_cut_off and self._cost > tolerance * abs(self.first.mean)

    @property
    def better(self) -> bool:
        """Whether the second is shown to be better, and not for want of its slow trials."""
        return self.shown and not self.second_cut_off and self._cost < 0

    @property
    def _cost(self) -> float:
        return self.value if smaller_is_better(self.quantity) else -self.value


def compare_classes(
    first: Iterable[BenchmarkResult], second: Iterable[BenchmarkResult], quantity: str
) -> tuple[Change, ...]:
    """Two server classes at every place that both have; chances are adjusted for all places together."""
    ones, others = (_places(results, quantity, classes=True) for results in (first, second))
    found: dict[Place, Difference] = {}
    for place in ones:
        one, other = estimate(ones[place], quantity), estimate(others.get(place, Cell(())), quantity)
        if one is not None and other is not None:
            found[place] = Difference(other, one)
    p = adjusted({place: difference.p for place, difference in found.items()})
    return tuple(
        _change(
            place, ones[place], others[place], quantity,
            (found[place].second, found[place].first), found[place].interval, p[place], p[place] <= SIGNIFICANCE,
        )
        for place in found
    )  # fmt: skip


def compare_runs(
    first: Iterable[BenchmarkResult],
    second: Iterable[BenchmarkResult],
    quantity: str,
    history: Iterable[BenchmarkResult] = (),
) -> tuple[Change, ...]:
    """A run with earlier ones, at every place that both have. How far runs differ at a place is what the runs of
    `history` say; by default those of `first`."""
    before, now, spread = (_places(results, quantity) for results in (first, second, history))
    found = (
        _of_runs(place, before[place], now[place], spread.get(place, Cell(())), quantity)
        for place in before
        if place in now
    )
    return tuple(change for change in found if change is not None)


def _of_runs(place: Place, before: Cell, now: Cell, history: Cell, quantity: str) -> Change | None:
    whole = [cell for cell in _runs(before) if not _is_cut_off(cell)] or _runs(before)
    cells = [cell for cell in whole if estimate(cell, quantity) is not None]
    first, second = _estimates(cells, quantity), estimate(now, quantity)
    if not first or second is None:
        return None
    spread = _estimates(_runs(history), quantity)
    interval, p = _judged(second, first, spread)
    if quantity == RETRIES:
        p = _chance_of_counts(now, cells)
    kept = Cell(tuple(result for cell in cells for result in cell.results))
    means = _together(first), second
    return _change(place, kept, now, quantity, means, interval, p, p <= SHOWN, max(len(first), len(spread)))


def _estimates(runs: Iterable[Cell], quantity: str) -> list[Estimate]:
    return [found for cell in runs if (found := estimate(cell, quantity)) is not None]


def _judged(
    second: Estimate, first: Sequence[Estimate], spread: Sequence[Estimate]
) -> tuple[tuple[float, float] | None, float]:
    """The interval of the difference, and how likely it is by chance; not known where a mean or an error is not."""
    now, before = of_estimate(second), list(map(of_estimate, first))
    known = [run for run in before if run is not None]
    if now is None or len(known) < len(before):
        return None, 1.0
    found = drift(now, known, [run for run in map(of_estimate, spread) if run is not None])
    mean = _together(first).mean
    return (mean * (found.low - 1), mean * (found.high - 1)), found.p


def _change(
    place: Place,
    first: Cell,
    second: Cell,
    quantity: str,
    means: tuple[Estimate, Estimate],
    interval: tuple[float, float] | None,
    p: float,
    shown: bool,
    runs: int = 0,
) -> Change:
    server, client, _ = place
    levels = first.results[0].spec.levels
    cut_off = _is_cut_off(first), _is_cut_off(second)
    return Change(server, client, levels, quantity, *means, interval, p, shown, runs, *cut_off)


def _is_cut_off(cell: Cell) -> bool:
    return any(map(censored, cell.results))


def _together(runs: Sequence[Estimate]) -> Estimate:
    """Runs as one, each counting equally."""
    if len(runs) == 1:
        return runs[0]
    means = [run.mean for run in runs]
    mean = geometric_mean(means) if min(means) > 0 else fsum(means) / len(means)
    return Estimate(sum(run.count for run in runs), mean, None, None, len(runs) - 1, len(runs))


def _chance_of_counts(now: Cell, before: Sequence[Cell]) -> float:
    """How likely retries are to fall so unevenly on a run and those before it, two-sided: binomial by their trials.

    Retries come in bursts: counts are divided by their dispersion, over trials or earlier runs.
    """
    trials, earlier = now.completed + now.failed, sum(cell.completed + cell.failed for cell in before)
    events, others = now.retries, sum(cell.retries for cell in before)
    if not trials or not earlier or not events + others:
        return 1.0
    wider = max(dispersion([cell.retries for cell in before]), *(dispersion(_retries(cell)) for cell in (now, *before)))
    share, k, rest = trials / (trials + earlier), events / wider, others / wider
    at_least = incomplete_beta(share, k, rest + 1) if k else 1.0
    at_most = 1 - incomplete_beta(share, k + 1, rest) if rest else 1.0
    return min(1.0, 2 * min(at_least, at_most))


def _retries(cell: Cell) -> Sequence[float]:
    counted = (
        (result.spec.benchmark.kind, [trial for trial in result.status.trials if not trial.warmup])
        for result in cell.results
    )
    return [value for kind, trials in counted for value in values_of(kind, trials, "retries")]


def _runs(cell: Cell) -> list[Cell]:
    found: dict[tuple[str | None, str, int], list[BenchmarkResult]] = {}
    for result in cell.results:
        spec = result.spec
        found.setdefault((result.metadata.namespace, spec.benchmark.name, spec.run), []).append(result)
    return [Cell(tuple(results)) for results in found.values()]


def _places(results: Iterable[BenchmarkResult], quantity: str, *, classes: bool = False) -> dict[Place, Cell]:
    found: dict[Place, list[BenchmarkResult]] = {}
    for result in results:
        spec = result.spec
        levels = tuple(sorted((name, same(level)) for name, level in circumstances(result).items()))
        server = "" if classes else spec.server.node_class
        found.setdefault((server, spec.client.node_class, levels), []).append(with_quantities(result, [quantity]))
    return {place: Cell(tuple(group)) for place, group in found.items()}
