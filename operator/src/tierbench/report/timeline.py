"""Charts of TCP over time: window, round trip and state of each sender in the first trial, windows of the others."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil
from typing import Final

from markupsafe import Markup

from tierbench.advice.tables import RunResults
from tierbench.api.result import BenchmarkResult, BenchmarkTrace, TrialTrace
from tierbench.report.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, element, linear, linear_ticks, path
from tierbench.report.notes import case_name
from tierbench.results.traces import TCP_STATES, ConnectionTrace, decode_trace
from tierbench.results.units import tick, unit_for

MOST_LINES: Final = 6
_ROW: Final = 26.0
_FEW_SAMPLES: Final = 120
_WINDOW: Final = "Congestion window"
_ROUND_TRIP: Final = "Smoothed round trip"
Traces = Mapping[tuple[str, str], BenchmarkTrace]
"""Traces by namespace and name of their result."""


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
    """TCP in one case: `drawings` of its first counted trial, and one drawing for each of the `others`.

    `left_out` is the number of connections that are not drawn.
    """

    heading: str
    lines: tuple[Line, ...]
    drawings: tuple[Drawing, ...]
    others: tuple[Drawing, ...] = ()
    left_out: int = 0


@dataclass(frozen=True)
class _Curve:
    """A line of a chart. Its corners are pairs of milliseconds and values of the quantity of the chart."""

    sender: int
    name: str
    style: str
    corners: tuple[tuple[int, float], ...]


def timelines(run: RunResults, traces: Traces, prefix: str) -> tuple[Timeline, ...]:
    """Returns the timeline of each case that was traced."""
    found = []
    for number, result in enumerate(run.results):
        trace = traces.get((result.metadata.namespace or "default", result.metadata.name))
        trials = {} if trace is None else _counted(trace)
        if trials:
            heading = f"{case_name(run, result)}, trial {min(trials)}"
            found.append(_drawn(heading, result, trials, f"{prefix}{number}"))
    return tuple(found)


def _drawn(heading: str, result: BenchmarkResult, trials: Mapping[int, Sequence[TrialTrace]], name: str) -> Timeline:
    """Returns the drawings of a case. If a trace is damaged, the heading has the error."""
    try:
        lines = {trial: tuple(_lines(result, traces)) for trial, traces in sorted(trials.items())}
    except ValueError as error:
        return Timeline(f"{heading}: {error}", (), ())
    return _timeline(heading, lines, name)


def _counted(trace: BenchmarkTrace) -> dict[int, list[TrialTrace]]:
    """Returns the traces of each counted trial."""
    trials: dict[int, list[TrialTrace]] = {}
    for one in trace.status.traces:
        if not one.warmup:
            trials.setdefault(one.trial, []).append(one)
    return trials


def _lines(result: BenchmarkResult, shown: Sequence[TrialTrace]) -> Iterator[Line]:
    for one in shown:
        opened = decode_trace(one)
        for number, connection in enumerate(opened, start=1):
            stream = f", stream {number}" if len(opened) > 1 else ""
            yield Line(f"{_sender(result, one)}{stream}", connection)


def _sender(result: BenchmarkResult, trace: TrialTrace) -> str:
    """Returns the name of the sender: the server, or one of the clients."""
    if trace.side == "Server":
        return result.spec.server.node or "server"
    nodes = result.spec.clients
    node = nodes[trace.client] if trace.client < len(nodes) else result.spec.client
    return node.node or "client"


def _timeline(heading: str, trials: Mapping[int, Sequence[Line]], name: str) -> Timeline:
    shown = {trial: tuple(lines[:MOST_LINES]) for trial, lines in trials.items()}
    (first, lines), *others = shown.items()
    windows = {trial: _windows(lines) for trial, lines in shown.items()}
    highest = max((_highest(curves) for curves in windows.values()), default=0)
    round_trips = _round_trips(lines)
    drawings = (
        Drawing(_WINDOW, _plot(f"{name}-window", _WINDOW, "windowBytes", lines, windows[first], highest)),
        Drawing(
            _ROUND_TRIP,
            _plot(f"{name}-trip", _ROUND_TRIP, "tcpNanoseconds", lines, round_trips, _highest(round_trips)),
        ),
        Drawing("Congestion state", _states(f"{name}-state", lines)),
    )
    rest = tuple(_small(f"{name}-window-{trial}", trial, lines, windows[trial], highest) for trial, lines in others)
    return Timeline(heading, lines, drawings, rest, len(trials[first]) - len(lines))


def _small(name: str, trial: int, lines: Sequence[Line], curves: Sequence[_Curve], highest: float) -> Drawing:
    """Returns a small chart of the window in one more trial, at the scale of the first trial."""
    thin = [replace(curve, corners=curve.corners[:: ceil(len(curve.corners) / _FEW_SAMPLES)]) for curve in curves]
    title = f"Trial {trial}"
    return Drawing(title, _plot(name, f"{_WINDOW}, trial {trial}", "windowBytes", lines, thin, highest))


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


def _highest(curves: Sequence[_Curve]) -> float:
    return max((value for curve in curves for _, value in curve.corners), default=0)


def _plot(
    name: str, title: str, quantity: str, lines: Sequence[Line], curves: Sequence[_Curve], highest: float
) -> Markup:
    x, axis = _time_axis(lines, HEIGHT - BOTTOM)
    ticks = linear_ticks(highest, unit_for(quantity, highest).factor)
    y = linear(0, ticks[-1], HEIGHT - BOTTOM, TOP)
    grid = "".join(f"M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" for value in ticks)
    labels = [element("text", tick(quantity, value), x=LEFT - 8, y=y(value) + 4) for value in ticks]
    drawn = []
    for curve in curves:
        if curve.corners:
            corners = [(x(time), y(value)) for time, value in curve.corners]
            stroke = element("path", element("title", curve.name), class_=curve.style, d=path(corners))
            drawn.append(element("g", stroke, class_=f"s{curve.sender}"))
    rows = element("g", element("path", class_="grid", d=grid), element("g", *labels, text_anchor="end"))
    return _frame(name, title, f"{title} of each sender over the time of the load.", HEIGHT, rows, axis, *drawn)


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
    return _frame(name, "Congestion state", text, height, axis, *drawn)


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


def _frame(name: str, title: str, description: str, height: float, *content: Markup) -> Markup:
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-description"),
        *content,
        viewBox=f"0 0 {WIDTH} {height:g}",
        role="img",
        aria_labelledby=f"{name}-title {name}-description",
    )
