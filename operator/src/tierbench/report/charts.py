"""Charts as inline SVG: lines with intervals and trials, grouped bars and stacked bars. The page has the colours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final

from markupsafe import Markup, escape

from tierbench.results.units import tick, unit_for

WIDTH: Final = 480
HEIGHT: Final = 300
LEFT: Final = 66
RIGHT: Final = 14
TOP: Final = 12
BOTTOM: Final = 46
_CHARACTER: Final = 8.4
_MARKED: Final = 14.0
_SEPARATE: Final = 4.0
Scale = Callable[[float], float]


@dataclass(frozen=True)
class Point:
    """A value at the level with the index `level`, with its interval and single trials. `text` is the tooltip."""

    level: int
    value: float
    text: str
    low: float | None = None
    high: float | None = None
    trials: tuple[float, ...] = ()


@dataclass(frozen=True)
class Series:
    """The points of one line, or of one kind of bar.

    `curve` is a finer line than that through the points, as pairs of a number on the level axis and a value. `tone` is
    the index of colour and mark, by default that of the series. `dash` is the index of the stroke; 0 is solid.
    """

    name: str
    points: tuple[Point, ...]
    curve: tuple[tuple[float, float], ...] = ()
    tone: int | None = None
    dash: int = 0


@dataclass(frozen=True)
class Chart:
    """The content of a chart.

    `numbers` are the positions of levels on their axis, which is logarithmic unless it is `proportional`. Without them
    levels have even distances. `bars` says whether the chart is drawn with bars.
    """

    name: str
    title: str
    description: str
    quantity: str
    axis: str
    levels: tuple[str, ...]
    series: tuple[Series, ...]
    numbers: tuple[float, ...] | None = None
    proportional: bool = False
    logarithmic: bool = False
    maximum: float | None = None
    bars: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is no point."""
        return not any(series.points for series in self.series)

    @property
    def is_zero(self) -> bool:
        """Whether all values are 0."""
        return not any(point.value for series in self.series for point in series.points)

    def tone(self, index: int) -> int:
        """Returns the index of the colour and mark of a series."""
        tone = self.series[index].tone
        return index if tone is None else tone

    def style(self, index: int) -> str:
        """Returns the CSS classes of a series."""
        dash = self.series[index].dash
        return f"s{self.tone(index) % 6}{f' d{dash % 4}' if dash else ''}"

    def swatch(self, index: int) -> Markup:
        """Returns the symbol of a series in the legend."""
        dashed = any(series.dash for series in self.series)
        bar = element("rect", class_="bar", x=-13, y=-6, width=26, height=12, rx=2)
        stroke = bar if self.bars else element("path", class_="line", d="M-14 0H14")
        half = 14 if dashed else 7
        mark = marker(self.tone(index), 0, 0)
        return element(
            "svg", *([stroke] if dashed else []), mark, viewBox=f"{-half} -7 {2 * half} 14", aria_hidden="true"
        )


def lines(chart: Chart) -> Markup:
    """Returns a line per series through its means, with confidence intervals and a dot for every trial."""
    places, y, grid = _places(chart), *_vertical(chart, _values(chart))
    groups = []
    for index, series in enumerate(chart.series):
        shift = _shift(chart, index)
        dots = [_trials(point, places[point.level] + shift, y) for point in series.points if point.trials]
        drawn = [*dots, *_path(chart, series, places, y, shift), *_marks(chart.tone(index), series, places, y, shift)]
        groups.append(element("g", *drawn, class_=f"series {chart.style(index)}"))
    return _framed(chart, grid, _level_axis(chart, places), *groups)


def bars(chart: Chart) -> Markup:
    """Returns a group of bars per level, with confidence intervals and a dot for every trial."""
    places, y, grid = _places(chart), *_vertical(chart, _values(chart))
    width = _bar_width(chart, 30, len(chart.series))
    groups = []
    for index, series in enumerate(chart.series):
        offset = (index - len(chart.series) / 2) * width
        drawn = [
            part
            for point in series.points
            for part in _bar(chart, index, point, places[point.level] + offset, y, width)
        ]
        groups.append(element("g", *drawn, class_=f"series bars {chart.style(index)}"))
    return _framed(chart, grid, _level_axis(chart, places), *groups)


def stacked(chart: Chart) -> Markup:
    """Returns a bar per level, in which the values of the series are stacked. The first series is at the bottom."""
    totals = [0.0] * len(chart.levels)
    for series in chart.series:
        for point in series.points:
            totals[point.level] += point.value
    places, y, grid = _places(chart), *_vertical(chart, totals)
    width = _bar_width(chart, 46, 1)
    base = [0.0] * len(chart.levels)
    groups = []
    for index, series in enumerate(chart.series):
        drawn = []
        for point in series.points:
            low, high = base[point.level], base[point.level] + point.value
            drawn += _segment(chart, index, point, places[point.level] - width / 2, (y(low), y(high)), width)
            base[point.level] = high
        groups.append(element("g", *drawn, class_=f"series {chart.style(index)}"))
    return _framed(chart, grid, _level_axis(chart, places), *groups)


def _framed(chart: Chart, *content: Markup) -> Markup:
    return frame(chart.name, chart.title, chart.description, HEIGHT, *content)


def frame(name: str, title: str, description: str, height: float, *content: Markup) -> Markup:
    """Returns a whole chart, with its title and description for screen readers."""
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-description"),
        *content,
        viewBox=f"0 0 {WIDTH} {height:g}",
        role="img",
        aria_labelledby=f"{name}-title {name}-description",
    )


def _places(chart: Chart) -> list[float]:
    if chart.numbers is not None and len(chart.levels) > 1:
        return [*map(_level_scale(chart, chart.numbers), chart.numbers)]
    step = (WIDTH - LEFT - RIGHT) / len(chart.levels)
    return [LEFT + step * (index + 0.5) for index in range(len(chart.levels))]


def _level_scale(chart: Chart, numbers: Sequence[float]) -> Scale:
    scale = linear if chart.proportional else logarithmic
    return scale(min(numbers), max(numbers), LEFT + 18, WIDTH - RIGHT - 18)


def _shift(chart: Chart, index: int) -> float:
    """Returns the offset of a series, which keeps the intervals of one level apart."""
    if chart.numbers is not None:
        return 0.0
    step = (WIDTH - LEFT - RIGHT) / len(chart.levels)
    return (index - (len(chart.series) - 1) / 2) * min(6.0, step / (len(chart.series) + 1))


def _vertical(chart: Chart, values: Sequence[float]) -> tuple[Scale, Markup]:
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
    return (lambda value: y(max(value, floor))), value_axis(chart.quantity, ticks, y)


def value_axis(quantity: str, ticks: Sequence[float], y: Scale) -> Markup:
    """Returns a horizontal line with a label for each tick."""
    grid = "".join(f"M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" for value in ticks)
    labels = [element("text", tick(quantity, value), x=LEFT - 8, y=y(value) + 4) for value in ticks]
    return element("g", element("path", class_="grid", d=grid), element("g", *labels, text_anchor="end"))


def _values(chart: Chart) -> Sequence[float]:
    points = [point for series in chart.series for point in series.points]
    ends = [end for point in points for end in (point.low, point.high) if end is not None]
    return [*(point.value for point in points), *ends, *(value for point in points for value in point.trials)]


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
    """Returns the levels whose labels do not touch: the last, the first, then the others from the right."""
    taken: list[int] = []
    order = [len(levels) - 1, 0, *range(len(levels) - 2, 0, -1)]
    for index in dict.fromkeys(order):
        half = len(levels[index]) * _CHARACTER / 2 + 4
        if all(abs(places[index] - places[other]) > half + len(levels[other]) * _CHARACTER / 2 for other in taken):
            taken.append(index)
    return taken


def _path(chart: Chart, series: Series, places: Sequence[float], y: Scale, shift: float) -> list[Markup]:
    if series.curve and chart.numbers is not None:
        x = _level_scale(chart, chart.numbers)
        corners = [(x(number), y(value)) for number, value in series.curve]
    else:
        corners = [(places[point.level] + shift, y(point.value)) for point in series.points]
    return [element("path", class_="line", d=path(corners))] if len(corners) > 1 else []


def _marks(tone: int, series: Series, places: Sequence[float], y: Scale, shift: float) -> list[Markup]:
    drawn = []
    for point in series.points:
        x = places[point.level] + shift
        parts = [element("title", f"{series.name}: {point.text}")]
        if point.low is not None and point.high is not None:
            parts.append(_interval(x, y(point.low), y(point.high)))
        drawn.append(element("g", *parts, marker(tone, x, y(point.value))))
    return drawn


def _trials(point: Point, x: float, y: Scale) -> Markup:
    """Returns all dots of a point as one path. The dots are round caps of strokes without length."""
    middle = (len(point.trials) - 1) / 2
    spread = min(1.0, 5 / middle) if middle else 0.0
    dots = "".join(f"M{x + (i - middle) * spread:.1f} {y(value):.1f}h0" for i, value in enumerate(point.trials))
    return element("path", class_="trials", d=dots)


def _interval(x: float, low: float, high: float) -> Markup:
    ends = f"M{x - 4:.1f} {low:.1f}h8M{x:.1f} {low:.1f}V{high:.1f}M{x - 4:.1f} {high:.1f}h8"
    return element("path", class_="interval", d=ends)


def _bar_width(chart: Chart, most: float, number: int) -> float:
    return min(most, 0.76 * (WIDTH - LEFT - RIGHT) / len(chart.levels) / number)


def _bar(chart: Chart, index: int, point: Point, x: float, y: Scale, width: float) -> list[Markup]:
    base, middle = HEIGHT - BOTTOM, x + width / 2
    top = min(y(point.value), base - 1.5)
    drawn = _segment(chart, index, point, x, (base, top), width)
    drawn += [_trials(point, middle, y)] if point.trials else []
    return (
        drawn if point.low is None or point.high is None else [*drawn, _interval(middle, y(point.low), y(point.high))]
    )


def _segment(chart: Chart, index: int, point: Point, x: float, ends: tuple[float, float], width: float) -> list[Markup]:
    """Returns a segment of a bar between two heights. If there is room, it has a mark, so it needs no colour."""
    (low, high), name = ends, chart.series[index].name
    gap = 1 if low - high >= _SEPARATE else 0
    title = element("title", f"{name}: {point.text}")
    rect = element("rect", title, class_="bar", x=x + 1, y=high + gap, width=width - 2, height=low - high - gap, rx=2)
    room = low - high >= _MARKED and width >= _MARKED
    return [rect, marker(chart.tone(index), x + width / 2, low - _MARKED / 2)] if room else [rect]


def element(name: str, *children: str | Markup, **attributes: str | float) -> Markup:
    """Returns an element. `class_` and `text_anchor` become `class` and `text-anchor`. Text is escaped."""
    head = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    body = "".join(escape(child) for child in children)
    return Markup(f"<{name}{head}>{body}</{name}>" if body else f"<{name}{head}/>")  # noqa: S704 (escaped above)


def _value(value: str | float) -> str:
    return str(escape(value)) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def path(points: Sequence[tuple[float, float]]) -> str:
    """Returns a polyline as path data."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def linear(low: float, high: float, start: float, end: float) -> Scale:
    """Returns a function that maps low..high to start..end."""
    factor = (end - start) / ((high - low) or 1)
    return lambda value: start + (value - low) * factor


def logarithmic(low: float, high: float, start: float, end: float) -> Scale:
    """Returns a function that maps the logarithms of low..high to start..end. All values must be positive."""
    scale = linear(log10(low), log10(high), start, end)
    return lambda value: scale(log10(value))


def linear_ticks(high: float, unit: float, count: int = 5) -> list[float]:
    """Returns about `count` round multiples of `unit`, from 0 to at least `high`."""
    if high <= 0:
        return [0.0, unit]
    rough = high / unit / count
    magnitude = 10 ** floor(log10(rough))
    step = next(nice * magnitude for nice in (1, 2, 2.5, 5, 10) if nice * magnitude >= rough)
    return [index * step * unit for index in range(ceil(high / unit / step - 1e-9) + 1)]


def log_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Returns 1, 2 and 5 times powers of ten within low..high, or fewer digits if these are more than `most`."""
    exponents = range(floor(log10(low)), ceil(log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        found = [digit * 10.0**exponent for exponent in exponents for digit in digits]
        inside = [tick for tick in found if low <= tick <= high]
        if len(inside) <= most:
            return inside
    return inside


def marker(index: int, x: float, y: float, size: float = 4.2) -> Markup:
    """Returns the mark of a series, whose shape identifies it without colour."""
    s = size
    corners = (
        [],
        [(-s, -s), (s, -s), (s, s), (-s, s)],
        [(0, -1.3 * s), (1.2 * s, 0.9 * s), (-1.2 * s, 0.9 * s)],
        [(0, -1.4 * s), (1.4 * s, 0), (0, 1.4 * s), (-1.4 * s, 0)],
        [(0, 1.3 * s), (1.2 * s, -0.9 * s), (-1.2 * s, -0.9 * s)],
        [(-0.5 * s, -1.3 * s), (0.5 * s, -1.3 * s), (0.5 * s, 1.3 * s), (-0.5 * s, 1.3 * s)],
    )[index % 6]
    if not corners:
        return element("circle", class_="mark", cx=x, cy=y, r=size)
    return element("path", class_="mark", d=path([(x + dx, y + dy) for dx, dy in corners]) + "Z")
