"""Plots as inline SVG: lines with intervals and trials, and grouped bars. Colours are CSS variables of the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from tierbench.report.svg import Scale, element, linear, linear_ticks, log_ticks, logarithmic, marker, path
from tierbench.results.units import tick, unit_for

WIDTH: Final = 480
HEIGHT: Final = 300
LEFT: Final = 66
RIGHT: Final = 14
TOP: Final = 12
BOTTOM: Final = 46
_CHARACTER: Final = 8.4


@dataclass(frozen=True)
class Point:
    """A value at the `level`-th level; its interval, and the single trials behind it. `words` is the tooltip."""

    level: int
    value: float
    words: str
    low: float | None = None
    high: float | None = None
    trials: tuple[float, ...] = ()


@dataclass(frozen=True)
class Series:
    """The points of one class. `curve` is a finer line than that through them: numbers of a level axis, and values."""

    name: str
    points: tuple[Point, ...]
    curve: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Chart:
    """What a plot shows. `numbers` gives each level its place on a logarithmic axis; without it they stand evenly."""

    name: str
    title: str
    description: str
    quantity: str
    axis: str
    levels: tuple[str, ...]
    series: tuple[Series, ...]
    numbers: tuple[float, ...] | None = None
    logarithmic: bool = False
    maximum: float | None = None

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(series.points for series in self.series)

    @property
    def zero(self) -> bool:
        """Whether there is nothing to see: all values are 0."""
        return not any(point.value for series in self.series for point in series.points)


def lines(chart: Chart) -> Markup:
    """A line a class through its means, with confidence intervals and a dot for every trial."""
    places, y, grid = _places(chart), *_vertical(chart)
    groups = []
    for index, series in enumerate(chart.series):
        shift = _shift(chart, index)
        dots = [_trials(point, places[point.level] + shift, y) for point in series.points if point.trials]
        drawn = [*dots, *_path(chart, series, places, y, shift), *_marks(index, series, places, y, shift)]
        groups.append(element("g", *drawn, class_=f"series s{index % 6}"))
    return _frame(chart, grid, _level_axis(chart, places), *groups)


def bars(chart: Chart) -> Markup:
    """A group of bars a level, a bar a class."""
    places, y, grid = _places(chart), *_vertical(chart)
    step = (WIDTH - LEFT - RIGHT) / len(chart.levels)
    width = min(30.0, 0.76 * step / len(chart.series))
    groups = []
    for index, series in enumerate(chart.series):
        offset = (index - len(chart.series) / 2) * width
        drawn = [_bar(point, places[point.level] + offset, y, width) for point in series.points]
        groups.append(element("g", *drawn, class_=f"series s{index % 6}"))
    return _frame(chart, grid, _level_axis(chart, places), *groups)


def _frame(chart: Chart, *content: Markup) -> Markup:
    title = element("title", chart.title, id=f"{chart.name}-title")
    description = element("desc", chart.description, id=f"{chart.name}-description")
    return element(
        "svg",
        title,
        description,
        *content,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"{chart.name}-title {chart.name}-description",
    )


def _places(chart: Chart) -> list[float]:
    if chart.numbers is not None and len(chart.levels) > 1:
        return [*map(_level_scale(chart.numbers), chart.numbers)]
    step = (WIDTH - LEFT - RIGHT) / len(chart.levels)
    return [LEFT + step * (index + 0.5) for index in range(len(chart.levels))]


def _level_scale(numbers: Sequence[float]) -> Scale:
    return logarithmic(min(numbers), max(numbers), LEFT + 18, WIDTH - RIGHT - 18)


def _shift(chart: Chart, index: int) -> float:
    """Moves a series aside, so that intervals of one level do not cover each other."""
    if chart.numbers is not None:
        return 0.0
    step = (WIDTH - LEFT - RIGHT) / len(chart.levels)
    return (index - (len(chart.series) - 1) / 2) * min(14.0, step / (len(chart.series) + 1))


def _vertical(chart: Chart) -> tuple[Scale, Markup]:
    values = [value for series in chart.series for point in series.points for value in _values(point)]
    bottom = HEIGHT - BOTTOM
    positive = [value for value in values if value > 0]
    if chart.logarithmic and positive:
        low, high = min(positive) / 1.35, max(positive) * 1.35
        y, ticks = logarithmic(low, high, bottom, TOP), log_ticks(low, high)
        floor = low
    else:
        high = chart.maximum or max(values, default=0)
        ticks = linear_ticks(high, unit_for(chart.quantity, high).factor)
        y, floor = linear(0, ticks[-1], bottom, TOP), 0.0
    grid = "".join(f"M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" for value in ticks)
    labels = [element("text", tick(chart.quantity, value), x=LEFT - 8, y=y(value) + 4) for value in ticks]
    rows = element("path", class_="grid", d=grid), element("g", *labels, text_anchor="end")
    return (lambda value: y(max(value, floor))), element("g", *rows)


def _values(point: Point) -> Sequence[float]:
    ends = [end for end in (point.low, point.high) if end is not None]
    return [point.value, *ends, *point.trials]


def _level_axis(chart: Chart, places: Sequence[float]) -> Markup:
    base = HEIGHT - BOTTOM
    ticks = "".join(f"M{x:.1f} {base}v4" for x in places)
    labels = [
        element("text", chart.levels[index], x=places[index], y=base + 18) for index in _readable(chart.levels, places)
    ]
    middle = (LEFT + WIDTH - RIGHT) / 2
    labels.append(element("text", chart.axis, x=middle, y=HEIGHT - 6))
    axis = element("path", class_="axis", d=f"M{LEFT} {base}H{WIDTH - RIGHT}{ticks}")
    return element("g", axis, *labels, text_anchor="middle")


def _readable(levels: Sequence[str], places: Sequence[float]) -> list[int]:
    """The levels whose labels do not touch: the last, the first, then the others from the right."""
    taken: list[int] = []
    order = [len(levels) - 1, 0, *range(len(levels) - 2, 0, -1)]
    for index in dict.fromkeys(order):
        half = len(levels[index]) * _CHARACTER / 2 + 4
        if all(abs(places[index] - places[other]) > half + len(levels[other]) * _CHARACTER / 2 for other in taken):
            taken.append(index)
    return taken


def _path(chart: Chart, series: Series, places: Sequence[float], y: Scale, shift: float) -> list[Markup]:
    if series.curve and chart.numbers is not None:
        x = _level_scale(chart.numbers)
        corners = [(x(number), y(value)) for number, value in series.curve]
    else:
        corners = [(places[point.level] + shift, y(point.value)) for point in series.points]
    return [element("path", class_="line", d=path(corners))] if len(corners) > 1 else []


def _marks(index: int, series: Series, places: Sequence[float], y: Scale, shift: float) -> list[Markup]:
    drawn = []
    for point in series.points:
        x = places[point.level] + shift
        parts = [element("title", f"{series.name}: {point.words}")]
        if point.low is not None and point.high is not None:
            parts.append(_interval(x, y(point.low), y(point.high)))
        drawn.append(element("g", *parts, marker(index, x, y(point.value))))
    return drawn


def _trials(point: Point, x: float, y: Scale) -> Markup:
    """All dots of a point in one path: round caps of strokes without length. They are spread a little to both sides."""
    middle = (len(point.trials) - 1) / 2
    spread = min(1.0, 5 / middle) if middle else 0.0
    dots = "".join(f"M{x + (i - middle) * spread:.1f} {y(value):.1f}h0" for i, value in enumerate(point.trials))
    return element("path", class_="trials", d=dots)


def _interval(x: float, low: float, high: float) -> Markup:
    ends = f"M{x - 4:.1f} {low:.1f}h8M{x:.1f} {low:.1f}V{high:.1f}M{x - 4:.1f} {high:.1f}h8"
    return element("path", class_="interval", d=ends)


def _bar(point: Point, x: float, y: Scale, width: float) -> Markup:
    top, base = y(point.value), HEIGHT - BOTTOM
    height = max(base - top, 1.5)
    return element(
        "rect",
        element("title", point.words),
        class_="bar",
        x=x + 1,
        y=base - height,
        width=width - 2,
        height=height,
        rx=2,
    )
