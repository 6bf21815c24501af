"""The figures of a whole run. What is compared is in one figure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Final

from tierbench.advice.tables import Cell, RunResults, is_rate, measured_quantities, smaller_is_better
from tierbench.api.contract import Histogram
from tierbench.kinds.registry import Report, kind_of
from tierbench.report import charts
from tierbench.report.charts import Chart, Point, Series
from tierbench.report.figures import EVIDENCE, Figure, heading, measured_figure
from tierbench.report.panels import Line, Panel, panels
from tierbench.results.client_output import merge_histograms
from tierbench.results.quantities import RETRIES, is_overall
from tierbench.results.units import describe_level, show
from tierbench.stats.distributions import bucket_quantiles

_MOST: Final = 24
_ENOUGH: Final = 100
_QUANTITY: Final = "Nanoseconds"
_AXIS: Final = "Share that was at least as fast"
# One in this many is slower. On a logarithmic axis these are equal steps, so 99% and 99.9% have room.
_LEVELS: Final = {"0%": 1, "50%": 2, "90%": 10, "99%": 100, "99.9%": 1000, "99.99%": 10**4, "99.999%": 10**5}
_STEPS_PER_DECADE: Final = 24
_NOTE: Final = "All operations of the good trials, exact to about 1%. One in ten is slower than the value at 90%."


@dataclass(frozen=True)
class RunFigures:
    """The figures of a run. `name` is the prefix of their names, `quantity` is the one that compares the classes."""

    run: RunResults
    name: str
    quantity: str

    @cached_property
    def _panels(self) -> tuple[Panel, ...]:
        return panels(self.run)

    @property
    def _own(self) -> Report:
        return kind_of(self.run.benchmark.kind).report

    @property
    def is_truncated(self) -> bool:
        """Whether figures are left out because there are too many."""
        return len(self._panels) > _MOST

    @cached_property
    def main(self) -> tuple[Figure, ...]:
        """The figures of this kind of benchmark alone, the main quantity, and the rates."""
        rates = [name for name in measured_quantities(self.run) if is_rate(name) and name != self.quantity]
        is_client_rate = kind_of(self.run.benchmark.kind).measures.is_client_rate
        whole = [name for name in rates if not is_client_rate(name) and not is_overall(name)]
        own = self._own.figures(f"{self.name}-devices", self.run)
        return (*own, *self._measured(self.quantity, len(self._panels)), *self._each(whole))

    @cached_property
    def sections(self) -> tuple[tuple[str, tuple[Figure, ...]], ...]:
        """The titles and figures of the sections that only this kind of benchmark has."""
        return tuple((section.title, self._drawn(section.name, section.figures)) for section in self._own.sections)

    @cached_property
    def spreads(self) -> tuple[Figure, ...]:
        """The distributions of single operations."""
        return self._drawn("spread", lambda name, panel: distribution_figures(name, panel, self._own.spreads))

    @cached_property
    def others(self) -> tuple[Figure, ...]:
        """All other quantities of the results that are not 0 everywhere."""
        names = [name for name in measured_quantities(self.run) if not is_rate(name) or is_overall(name)]
        rest = [name for name in names if name not in {self.quantity, RETRIES, *EVIDENCE}]
        spreads = self._drawn("other", lambda name, panel: distribution_figures(name, panel, self._own.other_spreads))
        return (*(figure for figure in self._each(rest) if not figure.chart.is_zero), *spreads)

    def _each(self, names: Iterable[str]) -> tuple[Figure, ...]:
        return tuple(figure for name in names for figure in self._measured(name, _MOST))

    def _measured(self, quantity: str, most: int) -> tuple[Figure, ...]:
        log = quantity == self.quantity and smaller_is_better(quantity)
        some = enumerate(self._panels[:most])
        return _known(
            measured_figure(f"{self.name}-{quantity}-{number}", panel, quantity, log=log) for number, panel in some
        )

    def _drawn(self, name: str, draw: Callable[[str, Panel], tuple[Figure, ...]]) -> tuple[Figure, ...]:
        some = enumerate(self._panels[:_MOST])
        return tuple(figure for number, panel in some for figure in draw(f"{self.name}-{name}-{number}", panel))


def _known(figures: Iterable[Figure | None]) -> tuple[Figure, ...]:
    return tuple(figure for figure in figures if figure is not None)


def distribution_figures(prefix: str, panel: Panel, titles: Mapping[str, str]) -> tuple[Figure, ...]:
    """Returns a figure for each distribution and level at which a line has enough observations."""
    found = [
        _figure(f"{prefix}-{name}-{row}", heading(f"{title} {_at(panel, level)}".rstrip(), panel), panel, level, name)
        for name, title in titles.items()
        for row, level in enumerate(panel.levels)
    ]
    return tuple(figure for figure in found if figure is not None)


def _at(panel: Panel, level: str) -> str:
    shown = describe_level(panel.axis, level) if panel.axis and level else ""
    return f"at {shown}" if shown else ""


def _figure(name: str, title: str, panel: Panel, level: str, field: str) -> Figure | None:
    merged = [(line, _merged(line.cell(level), field)) for line in panel.lines]
    most = max((each.count for _, each in merged), default=0)
    if most < _ENOUGH:
        return None
    levels = dict(takewhile(lambda item: item[1] <= most, _LEVELS.items()))
    series = tuple(_series(line, each, tuple(levels.values())) for line, each in merged)
    chart = Chart(
        name,
        title,
        f"The time by the share of operations that were at least as fast. {_NOTE}",
        _QUANTITY,
        _AXIS,
        tuple(levels),
        series,
        tuple(map(float, levels.values())),
        logarithmic=True,
    )
    return Figure(chart, charts.lines(chart), _NOTE)


def _merged(cell: Cell, field: str) -> Histogram:
    known = (getattr(result.recorded.distributions, field) for result in cell.measured)
    return merge_histograms(each for each in known if each is not None)


def _series(line: Line, observations: Histogram, levels: tuple[int, ...]) -> Series:
    """Returns marks at the levels and a finer line between them, up to the number of observations."""
    if not observations.count:
        return Series(line.name, (), tone=line.tone, dash=line.dash)
    known = [level for level in levels if level <= observations.count]
    values = bucket_quantiles(observations, [1 - 1 / level for level in known])
    points = [Point(index, value, show(_QUANTITY, value)) for index, value in enumerate(values)]
    return Series(line.name, tuple(points), _curve(observations, known[-1]), line.tone, line.dash)


def _curve(observations: Histogram, last: int) -> tuple[tuple[float, float], ...]:
    steps = range(_STEPS_PER_DECADE * (len(str(last)) - 1) + 1)
    numbers = [min(10 ** (step / _STEPS_PER_DECADE), last) for step in steps]
    return tuple(zip(numbers, bucket_quantiles(observations, [1 - 1 / each for each in numbers]), strict=True))
