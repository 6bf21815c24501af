"""Charts of TCP over time: window, round trip and congestion state of each sender in the first trial of a case."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from markupsafe import Markup

from tierbench.advice.tables import RunResults
from tierbench.api.record import TrialTrace
from tierbench.api.result import BenchmarkResult
from tierbench.report.charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    element,
    frame,
    linear,
    linear_ticks,
    path,
    value_axis,
)
from tierbench.report.tables import case_name
from tierbench.results.traces import TCP_STATES, ConnectionTrace, decode_trace, sender_name
from tierbench.results.units import unit_for

MOST_LINES: Final = 6
_ROW: Final = 26.0


@dataclass(frozen=True)
class Line:
    """The connection of one sender, with its name."""

    name: str
    connection: ConnectionTrace


@dataclass(frozen=True)
class Drawing:
    """One chart."""

    title: str
    svg: Markup


@dataclass(frozen=True)
class Timeline:
    """TCP in the first counted trial of a case. `left_out` is the number of connections that are not drawn."""

    heading: str
    lines: tuple[Line, ...]
    drawings: tuple[Drawing, ...]
    left_out: int = 0


class _Curve(NamedTuple):
    """A line of a chart. Its corners are pairs of milliseconds and values of the quantity of the chart."""

    sender: int
    name: str
    style: str
    corners: tuple[tuple[int, float], ...]


def timelines(run: RunResults, prefix: str) -> tuple[Timeline, ...]:
    """Returns the timeline of each case that was traced."""
    found = []
    for number, result in enumerate(run.results):
        counted = [one for one in result.recorded.traces if not one.warmup]
        if counted:
            first = min(one.trial for one in counted)
            shown = [one for one in counted if one.trial == first]
            heading = f"{case_name(run, result)}, trial {first}"
            found.append(_timeline(heading, result, shown, f"{prefix}{number}"))
    return tuple(found)


def _timeline(heading: str, result: BenchmarkResult, traces: Sequence[TrialTrace], name: str) -> Timeline:
    """Returns the drawings of a trial. If a trace is damaged, the heading has the error."""
    try:
        every = tuple(_lines(result, traces))
    except ValueError as error:
        return Timeline(f"{heading}: {error}", (), ())
    lines = every[:MOST_LINES]
    plots = (
        ("window", "Congestion window", "windowBytes", _windows(lines)),
        ("trip", "Smoothed round trip", "tcpNanoseconds", _round_trips(lines)),
    )
    drawings = [
        Drawing(title, _plot(f"{name}-{suffix}", title, quantity, lines, curves))
        for suffix, title, quantity, curves in plots
    ]
    drawings.append(Drawing("Congestion state", _states(f"{name}-state", lines)))
    return Timeline(heading, lines, tuple(drawings), len(every) - len(lines))


def _lines(result: BenchmarkResult, traces: Sequence[TrialTrace]) -> Iterator[Line]:
    for one in traces:
        opened = decode_trace(one)
        for number, connection in enumerate(opened, start=1):
            stream = f", stream {number}" if len(opened) > 1 else ""
            yield Line(f"{sender_name(result, one)}{stream}", connection)


def _windows(lines: Sequence[Line]) -> list[_Curve]:
    """Returns the windows, and the slow-start thresholds where they are set."""
    curves = []
    for sender, line in enumerate(lines):
        one = line.connection
        curves.append(
            _Curve(sender, line.name, "line", tuple(zip(one.milliseconds, one.congestion_window_bytes, strict=True)))
        )
        thresholds = zip(one.milliseconds, one.slow_start_threshold_bytes, strict=True)
        for is_set, period in groupby(thresholds, key=lambda corner: corner[1] > 0):
            if is_set:
                curves.append(_Curve(sender, f"{line.name}, slow-start threshold", "line threshold", tuple(period)))
    return curves


def _round_trips(lines: Sequence[Line]) -> list[_Curve]:
    curves = []
    for sender, line in enumerate(lines):
        one = line.connection
        nanoseconds = (1000 * value for value in one.round_trip_microseconds)
        curves.append(_Curve(sender, line.name, "line", tuple(zip(one.milliseconds, nanoseconds, strict=True))))
    return curves


def _plot(name: str, title: str, quantity: str, lines: Sequence[Line], curves: Sequence[_Curve]) -> Markup:
    highest = max((value for curve in curves for _, value in curve.corners), default=0)
    x, axis = _time_axis(lines, HEIGHT - BOTTOM)
    ticks = linear_ticks(highest, unit_for(quantity, highest).factor)
    y = linear(0, ticks[-1], HEIGHT - BOTTOM, TOP)
    drawn = []
    for curve in curves:
        if curve.corners:
            corners = [(x(time), y(value)) for time, value in curve.corners]
            stroke = element("path", element("title", curve.name), class_=curve.style, d=path(corners))
            drawn.append(element("g", stroke, class_=f"s{curve.sender}"))
    text = f"{title} of each sender over the time of the load."
    return frame(name, title, text, HEIGHT, value_axis(quantity, ticks, y), axis, *drawn)


def _states(name: str, lines: Sequence[Line]) -> Markup:
    """Returns the states of each sender over time, with one row per sender."""
    height = TOP + _ROW * len(lines) + BOTTOM
    x, axis = _time_axis(lines, height - BOTTOM)
    drawn = []
    for index, line in enumerate(lines):
        top = TOP + _ROW * index
        drawn.append(element("text", str(index + 1), x=LEFT - 8, y=top + 15, text_anchor="end"))
        drawn += [
            element(
                "rect",
                element("title", f"{line.name}: {TCP_STATES[state]}, {start / 1000:.1f} to {end / 1000:.1f} s"),
                class_=f"state {TCP_STATES[state].lower()}",
                x=x(start),
                y=top,
                width=max(x(end) - x(start), 1.5),
                height=_ROW - 6,
            )
            for state, start, end in _periods(line.connection)
        ]
    text = f"Congestion state over the time of the load, with one row per sender: {', '.join(TCP_STATES)}."
    return frame(name, "Congestion state", text, height, axis, *drawn)


def _periods(connection: ConnectionTrace) -> Iterator[tuple[int, int, int]]:
    """Yields state, start and end in milliseconds. A sample holds until the next one."""
    ends = [*connection.milliseconds[1:], *connection.milliseconds[-1:]]
    samples = zip(connection.states, connection.milliseconds, ends, strict=True)
    for state, group in groupby(samples, key=lambda sample: sample[0]):
        items = list(group)
        yield min(state, len(TCP_STATES) - 1), items[0][1], items[-1][2]


def _time_axis(lines: Sequence[Line], base: float) -> tuple[Callable[[float], float], Markup]:
    last = max((line.connection.milliseconds[-1] for line in lines if line.connection.milliseconds), default=1)
    ticks = [value for value in linear_ticks(last, 1000) if value <= last] or [0.0]
    x = linear(0, last, LEFT, WIDTH - RIGHT)
    marks = "".join(f"M{x(value):.1f} {base}v4" for value in ticks)
    labels = [element("text", f"{value / 1000:g} s", x=x(value), y=base + 18) for value in ticks]
    line = element("path", class_="axis", d=f"M{LEFT} {base}H{WIDTH - RIGHT}{marks}")
    return x, element("g", line, *labels, text_anchor="middle")
