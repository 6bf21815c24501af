"""TCP over time, drawn: congestion window, round trip and congestion state of each sender in one trial of a case."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from markupsafe import Markup

from tierbench.advice.matrix import Run
from tierbench.advice.units import tick, unit_for
from tierbench.api.result import BenchmarkResult
from tierbench.api.trace import BenchmarkTrace, TrialTrace
from tierbench.report.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH
from tierbench.report.notes import case_name
from tierbench.report.svg import element, linear, linear_ticks, path
from tierbench.results.traces import STATES, Connection, connections

MOST_LINES: Final = 6
_ROW: Final = 26.0
Traces = Mapping[tuple[str, str], BenchmarkTrace]
"""By namespace and name: those of the result."""


@dataclass(frozen=True)
class Line:
    """One sender's connection, and what it is called."""

    name: str
    connection: Connection


@dataclass(frozen=True)
class Drawing:
    """A plot."""

    title: str
    svg: Markup


@dataclass(frozen=True)
class Timeline:
    """What TCP did in one trial. `left_out` connections are more than can be told apart."""

    heading: str
    lines: tuple[Line, ...]
    drawings: tuple[Drawing, ...]
    left_out: int = 0


def timelines(run: Run, traces: Traces, prefix: str) -> tuple[Timeline, ...]:
    """One for each case that was traced."""
    found = []
    for number, result in enumerate(run.results):
        trace = traces.get((result.metadata.namespace or "default", result.metadata.name))
        shown = [] if trace is None else _shown(trace)
        if shown:
            heading = f"{case_name(run, result)}, trial {shown[0].trial}"
            found.append(_drawn(heading, result, shown, f"{prefix}{number}"))
    return tuple(found)


def _drawn(heading: str, result: BenchmarkResult, shown: Sequence[TrialTrace], name: str) -> Timeline:
    """The drawings; of a trace that somebody has damaged, what is wrong with it."""
    try:
        lines = list(_lines(result, shown))
    except ValueError as error:
        return Timeline(f"{heading}: {error}", (), ())
    return _timeline(heading, lines, name)


def _shown(trace: BenchmarkTrace) -> list[TrialTrace]:
    """The traces of the first trial that counts."""
    counted = [one for one in trace.status.traces if not one.warmup]
    return [one for one in counted if one.trial == counted[0].trial]


def _lines(result: BenchmarkResult, shown: Sequence[TrialTrace]) -> Iterator[Line]:
    for one in shown:
        opened = connections(one)
        for number, connection in enumerate(opened, start=1):
            stream = f", stream {number}" if len(opened) > 1 else ""
            yield Line(f"{_sender(result, one)}{stream}", connection)


def _sender(result: BenchmarkResult, trace: TrialTrace) -> str:
    """Whose side it is; of several clients which."""
    if trace.side == "Server":
        return result.spec.server.node or "server"
    nodes = result.spec.clients
    node = nodes[trace.client] if trace.client < len(nodes) else result.spec.client
    return node.node or "client"


def _timeline(heading: str, lines: Sequence[Line], name: str) -> Timeline:
    shown = tuple(lines[:MOST_LINES])
    window = ("Congestion window", "windowBytes", lambda one: one.congestion_window_bytes)
    round_trip = ("Smoothed round trip", "tcpNanoseconds", lambda one: [1000 * v for v in one.round_trip_microseconds])
    plots: list[tuple[str, str, Callable[[Connection], Sequence[float]]]] = [window, round_trip]
    drawings = [
        Drawing(title, _plot(f"{name}-{quantity}", title, quantity, shown, values)) for title, quantity, values in plots
    ]
    drawings.append(Drawing("Congestion state", _states(f"{name}-state", shown)))
    return Timeline(heading, shown, tuple(drawings), len(lines) - len(shown))


def _plot(
    name: str, title: str, quantity: str, lines: Sequence[Line], values: Callable[[Connection], Sequence[float]]
) -> Markup:
    x, axis = _time_axis(lines, HEIGHT - BOTTOM)
    highest = max((value for line in lines for value in values(line.connection)), default=0)
    ticks = linear_ticks(highest, unit_for(quantity, highest).factor)
    y = linear(0, ticks[-1], HEIGHT - BOTTOM, TOP)
    grid = "".join(f"M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" for value in ticks)
    labels = [element("text", tick(quantity, value), x=LEFT - 8, y=y(value) + 4) for value in ticks]
    drawn = []
    for index, line in enumerate(lines):
        times = (x(time) for time in line.connection.milliseconds)
        corners = list(zip(times, map(y, values(line.connection)), strict=True))
        if corners:
            curve = element("path", element("title", line.name), class_="line", d=path(corners))
            drawn.append(element("g", curve, class_=f"s{index}"))
    rows = element("g", element("path", class_="grid", d=grid), element("g", *labels, text_anchor="end"))
    return _frame(name, title, f"{title} of each sender over the time of the load.", HEIGHT, rows, axis, *drawn)


def _states(name: str, lines: Sequence[Line]) -> Markup:
    """A row a sender: stretches of one state, Open the faint one."""
    height = TOP + _ROW * len(lines) + BOTTOM
    x, axis = _time_axis(lines, height - BOTTOM)
    drawn = []
    for index, line in enumerate(lines):
        top = TOP + _ROW * index
        drawn.append(element("text", str(index + 1), x=LEFT - 8, y=top + 15, text_anchor="end"))
        drawn += [
            element(
                "rect",
                element("title", f"{line.name}: {STATES[state]}, {begun / 1000:.1f} to {ended / 1000:.1f} s"),
                class_=f"state {STATES[state].lower()}",
                x=x(begun),
                y=top,
                width=max(x(ended) - x(begun), 1.5),
                height=_ROW - 6,
            )
            for state, begun, ended in _stretches(line.connection)
        ]
    text = f"Congestion state over the time of the load, a row a sender: {', '.join(STATES)}."
    return _frame(name, "Congestion state", text, height, axis, *drawn)


def _stretches(connection: Connection) -> Iterator[tuple[int, int, int]]:
    """State, begin and end in milliseconds: a sample holds until the next."""
    ends = [*connection.milliseconds[1:], *connection.milliseconds[-1:]]
    samples = zip(connection.states, connection.milliseconds, ends, strict=True)
    for state, group in groupby(samples, key=lambda sample: sample[0]):
        items = list(group)
        yield min(state, len(STATES) - 1), items[0][1], items[-1][2]


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
