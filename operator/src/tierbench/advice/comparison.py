"""Compares two sets of results case by case, to find changes.

Two classes are compared by the trials of a run, with Welch's t-test. A run is compared with earlier runs by how much
runs differ.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import atan, comb, exp, fsum, log, pi, sqrt
from statistics import geometric_mean
from typing import Final, TypeVar

from tierbench.advice.estimate import Estimate, estimate, satterthwaite, smaller_is_better, with_derived_quantities
from tierbench.advice.tables import Cell
from tierbench.advice.workload import Levels, canonical_level
from tierbench.api.result import BenchmarkResult
from tierbench.results.quantities import RETRIES, is_censored, levels_and_parameters, quantity_values
from tierbench.stats.posterior import Component, Mixture
from tierbench.stats.rates import dispersion
from tierbench.stats.samples import CONFIDENCE, TAIL
from tierbench.stats.special import incomplete_beta, student_cdf, student_quantile

Place = tuple[str, str, Levels]
"""The server class (empty where classes are compared), the client class and the levels."""
Key = TypeVar("Key", bound=Hashable)
CLASS_SIGNIFICANCE: Final = 1 - CONFIDENCE
RUN_SIGNIFICANCE: Final = 0.02
"""The significance level of a two-sided test. By chance, one case in 100 is called worse."""
_RUN_DEVIATION: Final = 0.01
_MIN_SHOWN_P: Final = 0.001


@dataclass(frozen=True)
class Change:
    """The difference between `first` and `second` at one place.

    `interval` is the 95% interval of `second` minus `first`, and `p` is the p-value. When runs are compared, `first` is
    the mean of `runs` earlier ones. If slow trials of a side were cut off, its mean is only a bound.
    """

    server: str
    client: str
    levels: Mapping[str, str]
    quantity: str
    first: Estimate
    second: Estimate
    interval: tuple[float, float] | None
    p: float
    is_significant: bool
    runs: int = 0
    first_cut_off: bool = False
    second_cut_off: bool = False

    @property
    def value(self) -> float:
        """The mean of the second minus that of the first."""
        return self.second.mean - self.first.mean

    @property
    def share(self) -> float | None:
        """The difference as a share of the first mean; None if that is 0."""
        return self.value / self.first.mean if self.first.mean else None

    def worse(self, tolerance: float = 0) -> bool:
        """Returns whether the second is shown to be worse, by more than this share of the first."""
        return self.is_significant and not self.first_cut_off and self._cost > tolerance * abs(self.first.mean)

    @property
    def better(self) -> bool:
        """Whether the second is shown to be better, and has all its slow trials."""
        return self.is_significant and not self.second_cut_off and self._cost < 0

    @property
    def _cost(self) -> float:
        return self.value if smaller_is_better(self.quantity) else -self.value


def compare_classes(
    first: Iterable[BenchmarkResult], second: Iterable[BenchmarkResult], quantity: str
) -> tuple[Change, ...]:
    """Compares two server classes at every place that both have. The p-values are adjusted for the number of places."""
    ones, others = (_places(results, quantity, classes=True) for results in (first, second))
    found: dict[Place, MeanDifference] = {}
    for place in ones:
        one, other = estimate(ones[place], quantity), estimate(others.get(place, Cell(())), quantity)
        if one is not None and other is not None:
            found[place] = MeanDifference(other, one)
    p = holm_adjusted({place: difference.p for place, difference in found.items()})
    return tuple(
        _change(
            place, ones[place], others[place], quantity, (difference.second, difference.first), difference.interval,
            p[place], p[place] <= CLASS_SIGNIFICANCE,
        )
        for place, difference in found.items()
    )  # fmt: skip


def compare_runs(
    first: Iterable[BenchmarkResult],
    second: Iterable[BenchmarkResult],
    quantity: str,
    history: Iterable[BenchmarkResult] = (),
) -> tuple[Change, ...]:
    """Compares a run with earlier ones at every place that both have.

    How much runs differ is estimated from the runs of `history`, by default from those of `first`.
    """
    before, now, spread = (_places(results, quantity) for results in (first, second, history))
    found = (
        _run_change(place, before[place], now[place], spread.get(place, Cell(())), quantity)
        for place in before
        if place in now
    )
    return tuple(change for change in found if change is not None)


def _run_change(place: Place, before: Cell, now: Cell, history: Cell, quantity: str) -> Change | None:
    complete = [cell for cell in _runs(before) if not _is_cut_off(cell)] or _runs(before)
    cells = [cell for cell in complete if estimate(cell, quantity) is not None]
    first, second = _estimates(cells, quantity), estimate(now, quantity)
    if not first or second is None:
        return None
    spread = _estimates(_runs(history), quantity)
    mean = _mean_of_runs(first)
    interval, p = _run_interval(second, first, spread, mean.mean)
    if quantity == RETRIES:
        p = _retries_p(now, cells)
    kept = Cell(tuple(result for cell in cells for result in cell.results))
    runs = max(len(first), len(spread))
    return _change(place, kept, now, quantity, (mean, second), interval, p, p <= RUN_SIGNIFICANCE, runs)


def _estimates(runs: Iterable[Cell], quantity: str) -> list[Estimate]:
    return [found for cell in runs if (found := estimate(cell, quantity)) is not None]


def _run_interval(
    second: Estimate, first: Sequence[Estimate], spread: Sequence[Estimate], mean: float
) -> tuple[tuple[float, float] | None, float]:
    """Returns the interval of the difference and its p-value. Without the error of a mean these are None and 1."""
    now, before = run_mean(second), list(map(run_mean, first))
    known = [run for run in before if run is not None]
    if now is None or len(known) < len(before):
        return None, 1.0
    found = compare_with_runs(now, known, [run for run in map(run_mean, spread) if run is not None])
    return (mean * (found.low - 1), mean * (found.high - 1)), found.p


def _change(
    place: Place,
    first: Cell,
    second: Cell,
    quantity: str,
    means: tuple[Estimate, Estimate],
    interval: tuple[float, float] | None,
    p: float,
    is_significant: bool,
    runs: int = 0,
) -> Change:
    server, client, _ = place
    levels = first.results[0].spec.levels
    cut_off = _is_cut_off(first), _is_cut_off(second)
    return Change(server, client, levels, quantity, *means, interval, p, is_significant, runs, *cut_off)


def _is_cut_off(cell: Cell) -> bool:
    return any(map(is_censored, cell.results))


def _mean_of_runs(runs: Sequence[Estimate]) -> Estimate:
    """Returns the mean over runs; each run has the same weight."""
    if len(runs) == 1:
        return runs[0]
    means = [run.mean for run in runs]
    mean = geometric_mean(means) if min(means) > 0 else fsum(means) / len(means)
    return Estimate(sum(run.count for run in runs), mean, None, None, len(runs) - 1, len(runs))


def _retries_p(now: Cell, before: Sequence[Cell]) -> float:
    """Returns the two-sided p-value of the retries of a run and those before it: binomial, by their trials.

    Retries come in bursts, so counts are divided by their dispersion over trials or over earlier runs.
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
    """Returns the retries of each counted trial."""
    counted = (
        (result.spec.benchmark.kind, [trial for trial in result.status.trials if not trial.warmup])
        for result in cell.results
    )
    return [value for kind, trials in counted for value in quantity_values(kind, trials, "retries")]


def _runs(cell: Cell) -> list[Cell]:
    """Returns the results of a cell by run."""
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
        place = server, spec.client.node_class, levels
        found.setdefault(place, []).append(with_derived_quantities(result, [quantity]))
    return {place: Cell(tuple(group)) for place, group in found.items()}


@dataclass(frozen=True)
class MeanDifference:
    """`first` minus `second`, with Welch's t-test (Biometrika 34, 1947)."""

    first: Estimate
    second: Estimate

    @property
    def value(self) -> float:
        """The difference of the means."""
        return self.first.mean - self.second.mean

    @cached_property
    def error(self) -> float | None:
        """The standard error of the difference; None if that of a mean is unknown."""
        if self.first.error is None or self.second.error is None:
            return None
        return sqrt(self.first.error**2 + self.second.error**2)

    @cached_property
    def degrees(self) -> float:
        """The degrees of freedom of the standard error."""
        return satterthwaite([((item.error or 0) ** 2, item.degrees) for item in (self.first, self.second)])

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% confidence interval of the difference."""
        if self.error is None:
            return None
        half = student_quantile((1 + CONFIDENCE) / 2, self.degrees) * self.error if self.error else 0.0
        return self.value - half, self.value + half

    @property
    def p(self) -> float:
        """The two-sided p-value; 1 if the standard error is unknown.

        Without variance there is no t. The p-value is then that of the permutation test for two samples that do not
        overlap (Pitman, Supplement to the Journal of the Royal Statistical Society 4, 1937).
        """
        if self.error is None or not self.value:
            return 1.0
        if not self.error:
            return min(1.0, 2 / comb(self.first.size + self.second.size, self.first.size))
        return 2 * (1 - student_cdf(abs(self.value) / self.error, self.degrees))


def holm_adjusted(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """Returns p-values that are adjusted for all comparisons (Holm, Scandinavian Journal of Statistics 6, 1979)."""
    found: dict[Key, float] = {}
    least = 0.0
    for rank, key in enumerate(sorted(p_values, key=lambda key: p_values[key])):
        least = max(least, min(1.0, p_values[key] * (len(p_values) - rank)))
        found[key] = least
    return found


def describe_p(p: float) -> str:
    """Returns a p-value as text."""
    return f"p < {_MIN_SHOWN_P}" if p < _MIN_SHOWN_P else f"p = {p:.2g}"


@dataclass(frozen=True)
class RunMean:
    """The logarithm of the mean of a run, its variance from the trials of the run, and the degrees of freedom."""

    value: float
    variance: float
    degrees: float


@dataclass(frozen=True)
class RunDifference:
    """The ratio of a run to earlier ones, with its 95% interval and the two-sided p-value."""

    ratio: float
    low: float
    high: float
    p: float


def run_mean(found: Estimate) -> RunMean | None:
    """Returns the estimate of a run as a RunMean; None if its error is unknown or its mean has no logarithm."""
    if found.error is None or found.mean <= 0:
        return None
    return RunMean(log(found.mean), (found.error / found.mean) ** 2, found.degrees)


_DEVIATIONS: Final = tuple(exp(log(0.001) + step * log(1000) / 19) for step in range(20))
"""The grid of standard deviations between runs."""


def compare_with_runs(now: RunMean, before: Sequence[RunMean], spread: Sequence[RunMean] = ()) -> RunDifference:
    """Compares a run with the mean of at least one earlier run.

    Days differ more than the trials of one day, so each run is one value: the logarithm of its mean. These values are
    normally distributed, with a standard deviation between runs and the error of the trials within. The prior of that
    deviation is half-Cauchy with scale 0.01 (Gelman, Bayesian Analysis 1, 2006): half of all machines vary by more than
    1% from run to run, a quarter by more than 2.4%, a tenth by more than 6%. The runs of `spread` update it, by default
    those before.
    """
    likelihoods = [_log_likelihood(spread or before, deviation) for deviation in _DEVIATIONS]
    highest = max(likelihoods)
    weights = [prior * exp(each - highest) for prior, each in zip(_PRIOR, likelihoods, strict=True)]
    mixture = Mixture(
        tuple(
            _component(now, before, deviation, weight / sum(weights))
            for deviation, weight in zip(_DEVIATIONS, weights, strict=True)
        )
    )
    below = mixture.cdf(0.0)
    low, high = (exp(mixture.quantile(tail)) for tail in (TAIL, 1 - TAIL))
    return RunDifference(exp(mixture.centre), low, high, min(1.0, 2 * min(below, 1 - below)))


def _log_likelihood(runs: Sequence[RunMean], deviation: float) -> float:
    """Returns the restricted log-likelihood of a standard deviation between runs."""
    weights, mean = _weighted_mean(runs, deviation)
    squares = sum(weight * (run.value - mean) ** 2 for weight, run in zip(weights, runs, strict=True))
    return -0.5 * (log(sum(weights)) - sum(map(log, weights)) + squares)


def _weighted_mean(runs: Sequence[RunMean], deviation: float) -> tuple[list[float], float]:
    weights = [1 / (deviation**2 + run.variance) for run in runs]
    return weights, sum(weight * run.value for weight, run in zip(weights, runs, strict=True)) / sum(weights)


def _component(now: RunMean, before: Sequence[RunMean], deviation: float, weight: float) -> Component:
    """Returns the distribution of the difference for one standard deviation between runs."""
    weights, mean = _weighted_mean(before, deviation)
    total = sum(weights)
    uncertainty = now.variance**2 / now.degrees + sum(
        ((weight / total) ** 2 * run.variance) ** 2 / run.degrees for weight, run in zip(weights, before, strict=True)
    )
    return Component(weight, now.value - mean, deviation**2 + now.variance + 1 / total, uncertainty)


def _prior() -> tuple[float, ...]:
    """Returns the half-Cauchy probability of each deviation: that between the geometric midpoints of the grid."""
    middles = [sqrt(one * next_one) for one, next_one in pairwise(_DEVIATIONS)]
    up_to = [0.0, *(2 / pi * atan(middle / _RUN_DEVIATION) for middle in middles), 1.0]
    return tuple(next_one - one for one, next_one in pairwise(up_to))


_PRIOR: Final = _prior()
