"""How single observations are spread, beyond their mean: percentiles by line, with the slow ones drawn wide."""

from collections.abc import Mapping
from itertools import takewhile
from typing import Final

from tierbench.advice.matrix import Cell
from tierbench.api.contract import Histogram
from tierbench.report import charts
from tierbench.report.charts import Chart, Point, Series
from tierbench.report.figures import Figure, heading
from tierbench.report.layout import Line, Panel
from tierbench.results import histogram
from tierbench.results.levels import level_in_words
from tierbench.results.units import show

_ENOUGH: Final = 100
_QUANTITY: Final = "Nanoseconds"
_AXIS: Final = "Share that was at least as fast"
# One in so many is slower: equal steps on a logarithmic axis, so that 99 % and 99.9 % do not stick to its end.
_LEVELS: Final = {"0 %": 1, "50 %": 2, "90 %": 10, "99 %": 100, "99.9 %": 1000, "99.99 %": 10**4, "99.999 %": 10**5}
_STEPS_PER_DECADE: Final = 24
_NOTE: Final = (
    "All messages of the good trials, to about 1 %. One in ten is slower than at 90 %, one in 100 than at 99 %."
)


def distribution_figures(prefix: str, panel: Panel, titles: Mapping[str, str]) -> tuple[Figure, ...]:
    """A plot for each of these distributions and each level, where any line has enough observations."""
    found = [
        _figure(f"{prefix}-{name}-{row}", heading(f"{title} {_at(panel, level)}".rstrip(), panel), panel, level, name)
        for name, title in titles.items()
        for row, level in enumerate(panel.levels)
    ]
    return tuple(figure for figure in found if figure is not None)


def _at(panel: Panel, level: str) -> str:
    shown = level_in_words(panel.axis, level) if panel.axis and level else ""
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
        f"How long it took, by the share that was at least as fast. {_NOTE}",
        _QUANTITY,
        _AXIS,
        tuple(levels),
        series,
        tuple(map(float, levels.values())),
        logarithmic=True,
    )
    return Figure(chart, charts.lines(chart), _NOTE)


def _merged(cell: Cell, field: str) -> Histogram:
    known = (getattr(result.status.distributions, field) for result in cell.measured)
    return histogram.merge(each for each in known if each is not None)


def _series(line: Line, observations: Histogram, levels: tuple[int, ...]) -> Series:
    """Marks at the levels and a finer line between them, as far as there are so many observations."""
    if not observations.count:
        return Series(line.name, (), tone=line.tone, dash=line.dash)
    known = [level for level in levels if level <= observations.count]
    values = histogram.quantiles(observations, [1 - 1 / level for level in known])
    points = [Point(index, value, show(_QUANTITY, value)) for index, value in enumerate(values)]
    return Series(line.name, tuple(points), _curve(observations, known[-1]), line.tone, line.dash)


def _curve(observations: Histogram, last: int) -> tuple[tuple[float, float], ...]:
    steps = range(_STEPS_PER_DECADE * (len(str(last)) - 1) + 1)
    numbers = [min(10 ** (step / _STEPS_PER_DECADE), last) for step in steps]
    return tuple(zip(numbers, histogram.quantiles(observations, [1 - 1 / each for each in numbers]), strict=True))
