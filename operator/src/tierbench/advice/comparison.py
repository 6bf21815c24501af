"""Compares two sets of results case by case, to find changes.

Two classes are compared by the trials of a run, with Welch's t-test. A run is compared with earlier runs by how much
runs differ.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import fsum
from statistics import geometric_mean
from typing import Final

from tierbench.advice.requirements import Levels, levels_of
from tierbench.advice.tables import Cell, estimate, smaller_is_better, with_derived_quantities
from tierbench.api.result import BenchmarkResult
from tierbench.results.quantities import RETRIES, is_censored, levels_and_parameters
from tierbench.results.units import humanize, in_sentence, join_words
from tierbench.stats.distributions import CONFIDENCE
from tierbench.stats.estimates import (
    Estimate,
    EventCount,
    MeanDifference,
    RunDifference,
    compare_with_runs,
    dispersion,
    dispersion_of,
    equal_rates_p,
    holm_adjusted,
    run_mean,
)

Place = tuple[str, str, Levels]
"""The server class (empty where classes are compared), the client class, and the levels. For runs, also settings."""
Results = Mapping[Place, Sequence[BenchmarkResult]]
Interval = tuple[float, float]
CLASS_SIGNIFICANCE: Final = 1 - CONFIDENCE
RUN_SIGNIFICANCE: Final = 0.02
"""The significance level of a two-sided test. By chance, one case in 100 is called worse."""
_UNSET: Final = {"": "not set"}
_MIN_SHOWN_P: Final = 0.001


@dataclass(frozen=True)
class Change:
    """The difference between `first` and `second` at one place.

    `p` is the p-value. When runs are compared, `first` is the mean of `runs` earlier ones. If slow trials of a side
    were cut off, its mean is only a bound.
    """

    server: str
    client: str
    levels: Mapping[str, str]
    quantity: str
    first: Estimate
    second: Estimate
    p: float
    is_significant: bool
    find_interval: Callable[[], Interval | None] = field(compare=False, repr=False)
    runs: int = 0
    first_cut_off: bool = False
    second_cut_off: bool = False

    @cached_property
    def interval(self) -> Interval | None:
        """The 95% interval of `second` minus `first`, computed when it is first needed; None if it is unknown."""
        return self.find_interval()

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
    ones, others = (
        {place: _cell(group, quantity) for place, group in _grouped(results, _place_of_class).items()}
        for results in (first, second)
    )
    found: dict[Place, MeanDifference] = {}
    for place in ones:
        one, other = estimate(ones[place], quantity), estimate(others.get(place, Cell(())), quantity)
        if one is not None and other is not None:
            found[place] = MeanDifference(other, one)
    p = holm_adjusted({place: difference.p for place, difference in found.items()})
    changes = []
    for place, difference in found.items():
        means, interval = (difference.second, difference.first), partial(_interval_of, difference)
        is_significant = p[place] <= CLASS_SIGNIFICANCE
        changes.append(_change(place, ones[place], others[place], quantity, means, p[place], is_significant, interval))
    return tuple(changes)


def _interval_of(difference: MeanDifference) -> Interval | None:
    return difference.interval


def compare_runs(
    first: Iterable[BenchmarkResult],
    second: Iterable[BenchmarkResult],
    quantity: str,
    history: Iterable[BenchmarkResult] = (),
) -> tuple[Change, ...]:
    """Compares a run with earlier ones at every place that both have.

    How much runs differ is estimated from the runs of `history`, by default from those of `first`.
    """
    return tuple(compare_places(by_place(first), by_place(second), quantity, by_place(history)))


def compare_places(before: Results, now: Results, quantity: str, history: Results | None = None) -> Iterator[Change]:
    """Compares like `compare_runs`, one place after the other."""
    for place, results in before.items():
        if place in now:
            spread = (history or {}).get(place, ())
            cells = (_cell(group, quantity) for group in (results, now[place], spread))
            change = _run_change(quantity, place, *cells)
            if change is not None:
                yield change


def _run_change(quantity: str, place: Place, before: Cell, now: Cell, history: Cell) -> Change | None:
    complete = [cell for cell in _runs(before) if not _is_cut_off(cell)] or _runs(before)
    cells = [cell for cell in complete if estimate(cell, quantity) is not None]
    first, second = _estimates(cells, quantity), estimate(now, quantity)
    if not first or second is None:
        return None
    spread = _estimates(_runs(history), quantity)
    mean = _mean_of_runs(first)
    difference = _run_difference(second, first, spread)
    p = _retries_p(now, cells) if quantity == RETRIES else 1.0 if difference is None else difference.p
    kept = Cell(tuple(result for cell in cells for result in cell.results))
    runs, interval = max(len(first), len(spread)), partial(_run_interval, difference, mean.mean)
    return _change(place, kept, now, quantity, (mean, second), p, p <= RUN_SIGNIFICANCE, interval, runs)


def _estimates(runs: Iterable[Cell], quantity: str) -> list[Estimate]:
    return [found for cell in runs if (found := estimate(cell, quantity)) is not None]


def _run_difference(second: Estimate, first: Sequence[Estimate], spread: Sequence[Estimate]) -> RunDifference | None:
    """Returns the difference of a run and earlier ones; None if the error of a mean is unknown."""
    now, before = run_mean(second), list(map(run_mean, first))
    known = [run for run in before if run is not None]
    if now is None or len(known) < len(before):
        return None
    return compare_with_runs(now, known, [run for run in map(run_mean, spread) if run is not None])


def _run_interval(difference: RunDifference | None, mean: float) -> Interval | None:
    if difference is None:
        return None
    low, high = difference.interval
    return mean * (low - 1), mean * (high - 1)


def _change(
    place: Place,
    first: Cell,
    second: Cell,
    quantity: str,
    means: tuple[Estimate, Estimate],
    p: float,
    is_significant: bool,
    interval: Callable[[], Interval | None],
    runs: int = 0,
) -> Change:
    server, client, _ = place
    levels = first.results[0].spec.levels
    cut_off = _is_cut_off(first), _is_cut_off(second)
    return Change(server, client, levels, quantity, *means, p, is_significant, interval, runs, *cut_off)


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
    """Returns the p-value of the retries of a run and those before it.

    Retries come in bursts, so counts are divided by their dispersion over trials or over earlier runs.
    """
    of_trials = (_dispersion(result) for cell in (now, *before) for result in cell.results)
    wider = max(dispersion([cell.retries for cell in before]), *of_trials)
    trials, earlier = now.completed + now.failed, sum(cell.completed + cell.failed for cell in before)
    events, others = now.retries, sum(cell.retries for cell in before)
    return equal_rates_p(EventCount(events / wider, trials), EventCount(others / wider, earlier))


def _dispersion(result: BenchmarkResult) -> float:
    """Returns the dispersion of the retries over the counted trials."""
    found = result.status.statistics.get(RETRIES)
    if found is None:
        return 1.0
    return dispersion_of(found.count, found.mean / 1e6, (found.standard_deviation or 0) / 1e6)


def _runs(cell: Cell) -> list[Cell]:
    """Returns the results of a cell by run."""
    found: dict[tuple[str | None, str, int], list[BenchmarkResult]] = {}
    for result in cell.results:
        spec = result.spec
        found.setdefault((result.metadata.namespace, spec.benchmark.name, spec.run), []).append(result)
    return [Cell(tuple(results)) for results in found.values()]


def by_place(results: Iterable[BenchmarkResult]) -> Results:
    """Returns results of runs by their places."""
    return _grouped(results, place_of)


def _grouped(results: Iterable[BenchmarkResult], place: Callable[[BenchmarkResult], Place]) -> Results:
    found: dict[Place, list[BenchmarkResult]] = {}
    for result in results:
        found.setdefault(place(result), []).append(result)
    return found


def _cell(results: Iterable[BenchmarkResult], quantity: str) -> Cell:
    return Cell(tuple(with_derived_quantities(result, [quantity]) for result in results))


def _place_of_class(result: BenchmarkResult) -> Place:
    return "", result.spec.client.node_class, levels_of(result)


def place_of(result: BenchmarkResult) -> Place:
    """Returns what results of two runs have in common that can be compared: classes, levels, and all settings."""
    spec = result.spec
    settings = {} if spec.service is None else spec.service.settings
    trim = "" if spec.trim is None else f"{spec.trim.lowest} lowest, {spec.trim.highest} highest, {spec.trim.scope}"
    measured_with = (*levels_of(result), *sorted(settings.items()), ("warmup", str(spec.warmup_trials)), ("trim", trim))
    return spec.server.node_class, spec.client.node_class, measured_with


def left_out(first: Iterable[BenchmarkResult], second: Iterable[BenchmarkResult]) -> tuple[int, int]:
    """Returns how many cases of each side differ in some level or setting from all cases of the other side."""
    ones, others = set(map(place_of, first)), set(map(place_of, second))
    return len(ones - others), len(others - ones)


def differences(
    first: Iterable[BenchmarkResult], second: Iterable[BenchmarkResult], names: tuple[str, str]
) -> tuple[str, ...]:
    """Returns in what no result of the one side equals any of the other. `names` are those of the sides."""
    ones, others = _values_of(first), _values_of(second)
    found = ((name, ones.get(name, _UNSET), others.get(name, _UNSET)) for name in dict.fromkeys((*ones, *others)))
    return tuple(
        f"{in_sentence(humanize(name))} is {_listed(one)} in {names[0]}, and {_listed(other)} in {names[1]}"
        for name, one, other in found
        if one.keys().isdisjoint(other)
    ) or ("no combination of their levels is the same",)


def _values_of(results: Iterable[BenchmarkResult]) -> dict[str, dict[str, str]]:
    """Returns what results were measured with: by its name, the text of each value by its one spelling."""
    found: dict[str, dict[str, str]] = {}
    for result in results:
        server, client, measured_with = place_of(result)
        texts = levels_and_parameters(result)
        for name, value in (("serverClass", server), ("clientClass", client), *measured_with):
            found.setdefault(name, {})[value] = texts.get(name, value) or "none"
    return found


def _listed(values: Mapping[str, str]) -> str:
    return join_words([text for _, text in sorted(values.items(), key=lambda item: (len(item[0]), item))])


def describe_p(p: float) -> str:
    """Returns a p-value as text."""
    return f"p < {_MIN_SHOWN_P}" if p < _MIN_SHOWN_P else f"p = {p:.2g}"
