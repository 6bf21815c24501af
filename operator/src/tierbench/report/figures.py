"""The plots of a table of results, each with its numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from tierbench.advice.estimate import Estimate, estimate, smaller_is_better
from tierbench.advice.matrix import Table
from tierbench.advice.words import Standing
from tierbench.report import charts
from tierbench.report.charts import Chart, Point, Series
from tierbench.report.evidence import EVIDENCE, observed, values
from tierbench.results.levels import number_of_level, show_level
from tierbench.results.units import show, show_interval, title, words

_PERCENT_FULL: Final = 1_000_000.0
Place = tuple[str, str]
Draw = Callable[[int, Place], Point | None]


@dataclass(frozen=True)
class Figure:
    """A plot and what it says in numbers: a row a level, a column a class."""

    chart: Chart
    svg: Markup
    note: str = ""

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The level, then what is known of each class there."""
        known = [{point.level: point.words for point in series.points} for series in self.chart.series]
        return tuple(
            (level, *(texts.get(index, "–") for texts in known)) for index, level in enumerate(self.chart.levels)
        )


def measured_figure(name: str, table: Table, quantity: str, note: str = "", *, log: bool = False) -> Figure | None:
    """Means with intervals and trials: on logarithmic axes if `log` and the levels are numbers."""

    def point(level: int, place: Place) -> Point | None:
        cell = table.cell(*place)
        found = estimate(cell, quantity)
        if found is None:
            return None
        return Point(level, found.mean, _estimate_words(quantity, found), found.low, found.high, values(cell, quantity))

    numbers = [number_of_level(level) for level in table.rows]
    known = tuple(number for number in numbers if number)
    chart = Chart(
        name,
        f"{title(quantity)} by {_axis(table).lower()} and class",
        f"Mean of each class at each level, with 95 % confidence interval and a dot for every trial. {note}".strip(),
        quantity,
        _axis(table),
        _levels(table),
        _series(table, point),
        known if log and len(known) == len(numbers) and len(known) > 1 else None,
        logarithmic=log,
    )
    return None if chart.empty else Figure(chart, charts.lines(chart), note)


def slowness_figure(name: str, table: Table, quantity: str, standings: Sequence[Standing]) -> Figure | None:
    """How far each class is behind the best one, as bars."""
    best = {
        standing.level: found.mean
        for standing in standings
        if standing.best and (found := estimate(table.cell(standing.level, standing.best), quantity)) is not None
    }

    def point(level: int, place: Place) -> Point | None:
        found = estimate(table.cell(*place), quantity)
        if found is None or not best[place[0]]:
            return None
        share = abs(found.mean / best[place[0]] - 1) * _PERCENT_FULL
        return Point(level, share, f"{share / 1e4:.0f} %" if share else "best")

    heading = (
        "How much longer than the fastest class" if smaller_is_better(quantity) else "How far behind the best class"
    )
    note = "No bar: the best mean of that level. Whether the difference is more than chance is in the table above."
    return _bars(name, table, "PartsPerMillion", heading, note, point)


def retries_figure(name: str, table: Table) -> Figure | None:
    """Retries a trial, as bars; None if there were none at all."""

    def point(level: int, place: Place) -> Point | None:
        cell = table.cell(*place)
        trials = cell.completed + cell.failed
        if not trials:
            return None
        causes = _sum([result.status.counts.retry_causes for result in cell.results])
        text = f"{cell.retries} in {trials} trials"
        if causes:
            text += f" ({', '.join(f'{count} {words(cause).lower()}' for cause, count in causes.items())})"
        return Point(level, cell.retries / trials, text)

    figure = _bars(name, table, "retries", "Retries a trial", "", point)
    return None if figure is None or figure.chart.zero else figure


def evidence_figures(prefix: str, table: Table) -> tuple[Figure, ...]:
    """A plot for each quantity that explains the others, as far as it was seen."""
    figures = [_evidence_figure(f"{prefix}-{name}", table, name) for name in EVIDENCE]
    return tuple(figure for figure in figures if figure is not None)


def _evidence_figure(name: str, table: Table, quantity: str) -> Figure | None:
    heading, note = _HEADINGS.get(quantity, (title(quantity), ""))
    share = quantity.endswith("PartsPerMillion")

    def point(level: int, place: Place) -> Point | None:
        value = observed(table.cell(*place), quantity)
        return None if value is None else Point(level, value, show(quantity, value))

    return _bars(name, table, quantity, heading, note, point, _PERCENT_FULL if share else None)


def _bars(
    name: str,
    table: Table,
    quantity: str,
    heading: str,
    note: str,
    point: Draw,
    maximum: float | None = None,
) -> Figure | None:
    series = _series(table, point)
    highest = max((item.value for one in series for item in one.points), default=0.0)
    chart = Chart(
        name,
        heading,
        note or f"{heading}: a bar a class at each level.",
        quantity,
        _axis(table),
        _levels(table),
        series,
        maximum=None if maximum is None else max(maximum, highest),
    )
    return None if chart.empty else Figure(chart, charts.bars(chart), note)


def _series(table: Table, point: Draw) -> tuple[Series, ...]:
    series = []
    for column in table.columns:
        found = [point(level, (row, column)) for level, row in enumerate(table.rows)]
        series.append(Series(column, tuple(item for item in found if item is not None)))
    return tuple(series)


def _levels(table: Table) -> tuple[str, ...]:
    return tuple(show_level(table.factor, level) or "all" for level in table.rows)


def _axis(table: Table) -> str:
    return words(table.factor) or "Case"


def _estimate_words(quantity: str, found: Estimate) -> str:
    if not found.count:
        return f"{show(quantity, found.mean)} (a mean alone)"
    if found.low is None or found.high is None:
        return f"{show(quantity, found.mean)} ({found.count} trial{'s' * (found.count != 1)}, no interval)"
    return show_interval(quantity, found.mean, found.low, found.high)


def _sum(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            total[name] = total.get(name, 0) + count
    return total


_HEADINGS: Final = {
    "deviceReadPartsPerMillion": (
        "Read from the disk, share of the bytes served",
        "0 %: all came from memory. 100 %: every byte was read from the disk.",
    ),
    "serverIoWaitPartsPerMillion": ("I/O wait of the server's node", "Share of CPU time that waited for the disk."),
    "serverIoPressurePartsPerMillion": (
        "I/O pressure of the server's node",
        "Share of time in which some task waited for the disk.",
    ),
    "serverResidentPartsPerMillion": (
        "File in the page cache when a trial began",
        "Share of the served file that memory held.",
    ),
    "serverCpuPartsPerMillion": ("CPU of the server's node", "Share of CPU time busy, waiting for I/O not counted."),
    "clientCpuPartsPerMillion": ("CPU of the client", "Its CPU time by the trial's time: 100 % is one processor."),
    "tcpRetransmits": ("TCP segments sent again, a trial", "Seen at the sending side."),
    "tcpRoundTripNanoseconds": ("TCP round-trip time", "Seen at the sending side while data flows."),
}
