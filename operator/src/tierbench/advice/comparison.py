"""Two sets of results, place by place: has something changed, and for the worse?

Two classes are compared within a run, by their trials. A run is compared with earlier runs, by how far runs differ.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import atan, comb, exp, fsum, inf, log, log1p, pi, sqrt
from statistics import NormalDist, geometric_mean
from typing import Final, TypeVar

from tierbench.advice.estimate import Estimate, estimate, satterthwaite, smaller_is_better, with_derived_quantities
from tierbench.advice.tables import Cell
from tierbench.advice.workload import Levels, canonical_level
from tierbench.api.result import BenchmarkResult
from tierbench.results.quantities import RETRIES, is_censored, levels_and_parameters, quantity_values
from tierbench.stats.rates import dispersion
from tierbench.stats.samples import CONFIDENCE
from tierbench.stats.special import incomplete_beta, student_cdf, student_quantile

Place = tuple[str, str, Levels]
"""Server class (empty where classes are compared), client class and levels."""
SIGNIFICANCE: Final = 1 - CONFIDENCE
_SHOWN_FROM: Final = 0.001
Key = TypeVar("Key", bound=Hashable)
RUN_SIGNIFICANCE: Final = 0.02
"""Two-sided: one case in a hundred is called worse by chance."""
_SCALE: Final = 0.01
_STEPS: Final = 50
_TAIL: Final = 0.025


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
    found: dict[Place, MeanDifference] = {}
    for place in ones:
        one, other = estimate(ones[place], quantity), estimate(others.get(place, Cell(())), quantity)
        if one is not None and other is not None:
            found[place] = MeanDifference(other, one)
    p = holm_adjusted({place: difference.p for place, difference in found.items()})
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
    return _change(place, kept, now, quantity, means, interval, p, p <= RUN_SIGNIFICANCE, max(len(first), len(spread)))


def _estimates(runs: Iterable[Cell], quantity: str) -> list[Estimate]:
    return [found for cell in runs if (found := estimate(cell, quantity)) is not None]


def _judged(
    second: Estimate, first: Sequence[Estimate], spread: Sequence[Estimate]
) -> tuple[tuple[float, float] | None, float]:
    """The interval of the difference, and how likely it is by chance; not known where a mean or an error is not."""
    now, before = run_mean(second), list(map(run_mean, first))
    known = [run for run in before if run is not None]
    if now is None or len(known) < len(before):
        return None, 1.0
    found = compare_with_runs(now, known, [run for run in map(run_mean, spread) if run is not None])
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
    return any(map(is_censored, cell.results))


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
    return [value for kind, trials in counted for value in quantity_values(kind, trials, "retries")]


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
        levels = tuple(sorted((name, canonical_level(level)) for name, level in levels_and_parameters(result).items()))
        server = "" if classes else spec.server.node_class
        found.setdefault((server, spec.client.node_class, levels), []).append(
            with_derived_quantities(result, [quantity])
        )
    return {place: Cell(tuple(group)) for place, group in found.items()}


@dataclass(frozen=True)
class MeanDifference:
    """`first` minus `second` by Welch's t-test (Biometrika 34, 1947)."""

    first: Estimate
    second: Estimate

    @property
    def value(self) -> float:
        """The difference of the means."""
        return self.first.mean - self.second.mean

    @cached_property
    def error(self) -> float | None:
        """Its standard error."""
        if self.first.error is None or self.second.error is None:
            return None
        return sqrt(self.first.error**2 + self.second.error**2)

    @cached_property
    def degrees(self) -> float:
        """The degrees of freedom of its error."""
        return satterthwaite([((item.error or 0) ** 2, item.degrees) for item in (self.first, self.second)])

    @property
    def interval(self) -> tuple[float, float] | None:
        """Its 95% confidence interval."""
        if self.error is None:
            return None
        half = student_quantile((1 + CONFIDENCE) / 2, self.degrees) * self.error if self.error else 0.0
        return self.value - half, self.value + half

    @property
    def p(self) -> float:
        """Two-sided; 1 if an error is not known.

        Where no value of either varies there is no t: then that of the permutation test of values that lie wholly
        apart (Pitman, Supplement to the Journal of the Royal Statistical Society 4, 1937).
        """
        if self.error is None or not self.value:
            return 1.0
        if not self.error:
            return min(1.0, 2 / comb(self.first.size + self.second.size, self.first.size))
        return 2 * (1 - student_cdf(abs(self.value) / self.error, self.degrees))


def holm_adjusted(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """p-values that hold for all comparisons together (Holm, Scandinavian Journal of Statistics 6, 1979)."""
    found: dict[Key, float] = {}
    least = 0.0
    for rank, key in enumerate(sorted(p_values, key=lambda key: p_values[key])):
        least = max(least, min(1.0, p_values[key] * (len(p_values) - rank)))
        found[key] = least
    return found


def describe_p(p: float) -> str:
    """A p-value in words."""
    return f"p < {_SHOWN_FROM}" if p < _SHOWN_FROM else f"p = {p:.2g}"


_GRID: Final = tuple(exp(log(0.001) + step * log(1000) / 19) for step in range(20))


@dataclass(frozen=True)
class RunMean:
    """The logarithm of a run's mean, the variance of that within the run, and its degrees of freedom."""

    value: float
    variance: float
    degrees: float


@dataclass(frozen=True)
class RunDifference:
    """How far a run lies from earlier ones, as a ratio with its 95% interval. `p`, two-sided, is how likely runs are
    to lie so far apart when nothing has changed but the day."""

    ratio: float
    low: float
    high: float
    p: float


def run_mean(found: Estimate) -> RunMean | None:
    """A run as it counts here; None where its error is not known, or its mean has no logarithm."""
    if found.error is None or found.mean <= 0:
        return None
    return RunMean(log(found.mean), (found.error / found.mean) ** 2, found.degrees)


def compare_with_runs(now: RunMean, before: Sequence[RunMean], spread: Sequence[RunMean] = ()) -> RunDifference:
    """The run against the mean of earlier ones, of which there is at least one. How far runs differ is what `spread`
    says; by default these."""
    parts = [(_likelihood(spread or before, rho), *_part(now, before, rho)) for rho in _GRID]
    heaviest = max(likelihood for likelihood, *_ in parts)
    weights = [mass * exp(part[0] - heaviest) for mass, part in zip(_PRIOR, parts, strict=True)]
    total = sum(weights)
    mixture = [(weight / total, *part[1:]) for weight, part in zip(weights, parts, strict=True)]

    def at_most(x: float) -> float:
        return sum(weight * _student((x - centre) / spread, degrees) for weight, centre, spread, degrees in mixture)

    below = at_most(0.0)
    middle = sum(weight * centre for weight, centre, _, _ in mixture)
    reach = 10 + abs(middle)
    low, high = (_quantile(at_most, tail, middle - reach, middle + reach) for tail in (_TAIL, 1 - _TAIL))
    return RunDifference(exp(middle), exp(low), exp(high), min(1.0, 2 * min(below, 1 - below)))


def _likelihood(runs: Sequence[RunMean], rho: float) -> float:
    """The restricted log-likelihood of rho."""
    weights, mean = _mean(runs, rho)
    squares = sum(weight * (run.value - mean) ** 2 for weight, run in zip(weights, runs, strict=True))
    return -0.5 * (log(sum(weights)) - sum(map(log, weights)) + squares)


def _mean(runs: Sequence[RunMean], rho: float) -> tuple[list[float], float]:
    weights = [1 / (rho**2 + run.variance) for run in runs]
    return weights, sum(weight * run.value for weight, run in zip(weights, runs, strict=True)) / sum(weights)


def _part(now: RunMean, before: Sequence[RunMean], rho: float) -> tuple[float, float, float]:
    """For one rho: centre, spread and degrees (Satterthwaite's) of the difference."""
    weights, mean = _mean(before, rho)
    total = sum(weights)
    variance = rho**2 + now.variance + 1 / total
    of_trials = now.variance**2 / now.degrees + sum(
        ((weight / total) ** 2 * run.variance) ** 2 / run.degrees for weight, run in zip(weights, before, strict=True)
    )
    return now.value - mean, sqrt(variance), variance**2 / of_trials if of_trials else inf


def _student(t: float, degrees: float) -> float:
    """The distribution function of Student's t by Wallace's normal approximation (Annals of Mathematical Statistics
    30, 1959)."""
    if degrees == inf:
        return NormalDist().cdf(t)
    z = (8 * degrees + 1) / (8 * degrees + 3) * sqrt(degrees * log1p(t * t / degrees))
    return NormalDist().cdf(z if t >= 0 else -z)


def _quantile(at_most: Callable[[float], float], probability: float, low: float, high: float) -> float:
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if at_most(middle) < probability else (low, middle)
    return (low + high) / 2


def _prior() -> tuple[float, ...]:
    """The probability of the half-Cauchy between the geometric midpoints of the grid; its ends take the tails."""
    middles = [sqrt(one * next_one) for one, next_one in pairwise(_GRID)]
    up_to = [0.0, *(2 / pi * atan(middle / _SCALE) for middle in middles), 1.0]
    return tuple(next_one - one for one, next_one in pairwise(up_to))


_PRIOR: Final = _prior()
