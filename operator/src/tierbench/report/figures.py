"""The figures of a report: charts with their numbers as a table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from markupsafe import Markup

from tierbench.advice.posterior import LevelVerdict
from tierbench.advice.tables import Cell, estimate, smaller_is_better
from tierbench.api.record import ResultTrial
from tierbench.kinds.registry import kind_of
from tierbench.report import charts
from tierbench.report.charts import Chart, Point, Series
from tierbench.report.panels import Panel
from tierbench.results.quantities import good_trials, quantity_values
from tierbench.results.units import (
    are_numbers,
    humanize,
    in_sentence,
    is_share,
    join_words,
    level_number,
    show,
    show_interval,
    show_level,
    title,
)
from tierbench.stats.estimates import Estimate

_PERCENT_FULL: Final = 1_000_000.0
_LOG_NOTE: Final = "Both axes are logarithmic."
_RATIO: Final = "Compression ratio"
Draw = Callable[[int, Cell], Point | None]
DEVICE_READ_SHARE: Final = "deviceReadPartsPerMillion"
EVIDENCE: Final = {
    DEVICE_READ_SHARE: (
        "Read from the disk, share of the bytes served",
        "0%: all bytes came from memory. 100%: all bytes were read from the disk.",
    ),
    "serverIoWaitPartsPerMillion": ("I/O wait of the server's node", "Share of CPU time that waited for the disk."),
    "serverIoPressurePartsPerMillion": (
        "I/O pressure of the server's node",
        "Share of time in which a task waited for the disk.",
    ),
    "serverResidentPartsPerMillion": (
        "File in the page cache when a trial began",
        "Share of the served file that memory held.",
    ),
    "serverCpuPartsPerMillion": (
        "CPU of the server's node",
        "Share of CPU time that was used, without waiting for I/O.",
    ),
}
"""The shares that explain other quantities, the most useful first, each with a title and a note."""


@dataclass(frozen=True)
class Figure:
    """A chart and its numbers, with one row per level and one column per series."""

    chart: Chart
    svg: Markup
    note: str = ""

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The level, then the value of each series at that level."""
        known = [{point.level: point.text for point in series.points} for series in self.chart.series]
        return tuple(
            (level, *(texts.get(index, "–") for texts in known)) for index, level in enumerate(self.chart.levels)
        )


def measured_figure(name: str, panel: Panel, quantity: str, *, log: bool = False) -> Figure | None:
    """Returns the means of a quantity with intervals and trials, as lines over numbers and bars over words.

    With `log` both axes are logarithmic, if the levels are numbers above 0. The result is None if there is no value.
    """

    def point(level: int, cell: Cell) -> Point | None:
        found = estimate(cell, quantity)
        if found is None:
            return None
        return Point(
            level, found.mean, describe_estimate(quantity, found), found.low, found.high, values(cell, quantity)
        )

    curve = are_numbers(panel.axis, panel.levels) and len(panel.levels) > 1
    numbers = tuple(level_number(level) or 0.0 for level in panel.levels) if curve else ()
    share = curve and is_share(panel.levels)
    log = log and curve and not share and min(numbers) > 0
    note = _LOG_NOTE if log else ""
    chart = Chart(
        name,
        heading(f"{title(quantity)}{factors_suffix(panel)}", panel),
        f"Mean at each level, with 95% confidence interval and a dot for every trial. {note}".strip(),
        quantity,
        axis_of(panel),
        levels_of(panel),
        _series(panel, point),
        numbers if log or share else None,
        proportional=share,
        logarithmic=log,
        bars=not curve,
    )
    draw = charts.bars if chart.bars else charts.lines
    return None if chart.is_empty else Figure(chart, draw(chart), note)


def slowness_figure(name: str, panel: Panel, quantity: str, verdicts: Sequence[LevelVerdict]) -> Figure | None:
    """Returns how far each class is behind the best one, as bars."""
    means = [
        {line.name: found.mean for line in panel.lines if (found := estimate(line.cell(level), quantity)) is not None}
        for level in panel.levels
    ]
    best = [known.get(verdict.best) for known, verdict in zip(means, verdicts, strict=True)]

    def point(level: int, cell: Cell) -> Point | None:
        found, first = estimate(cell, quantity), best[level]
        if found is None or not first:
            return None
        share = abs(found.mean / first - 1) * _PERCENT_FULL
        return Point(level, share, f"{share / 1e4:.0f}%" if share else "best")

    heading = (
        "How much longer than the fastest class" if smaller_is_better(quantity) else "How far behind the best class"
    )
    note = "The best mean of each level has no bar. The table above says whether the difference is significant."
    return _bars(name, panel, "PartsPerMillion", heading, note, point)


def retries_figure(name: str, panel: Panel) -> Figure | None:
    """Returns the retries per trial, as bars; None if there were none."""

    def point(level: int, cell: Cell) -> Point | None:
        trials = cell.completed + cell.failed
        if not trials:
            return None
        causes = _add_counts([result.status.counts.retry_causes for result in cell.results])
        text = f"{cell.retries} in {trials} trials"
        if causes:
            text += f" ({', '.join(f'{count} {humanize(cause).lower()}' for cause, count in causes.items())})"
        return Point(level, cell.retries / trials, text)

    figure = _bars(name, panel, "retries", "Retries per trial", "", point)
    return None if figure is None or figure.chart.is_zero else figure


def evidence_figures(prefix: str, panel: Panel) -> tuple[Figure, ...]:
    """Returns a figure for each quantity that explains the others, if it was measured."""
    figures = [_evidence_figure(f"{prefix}-{name}", panel, name) for name in EVIDENCE]
    return tuple(figure for figure in figures if figure is not None)


def _evidence_figure(name: str, panel: Panel, quantity: str) -> Figure | None:
    def point(level: int, cell: Cell) -> Point | None:
        value = mean_evidence(cell, quantity)
        return None if value is None else Point(level, value, show(quantity, value))

    return _bars(name, panel, quantity, *EVIDENCE[quantity], point, _PERCENT_FULL)


def _bars(
    name: str,
    panel: Panel,
    quantity: str,
    heading: str,
    note: str,
    point: Draw,
    maximum: float | None = None,
) -> Figure | None:
    series = _series(panel, point)
    highest = max((item.value for one in series for item in one.points), default=0.0)
    chart = Chart(
        name,
        heading,
        note or f"{heading}, as bars at every level.",
        quantity,
        axis_of(panel),
        levels_of(panel),
        series,
        maximum=None if maximum is None else max(maximum, highest),
        bars=True,
    )
    return None if chart.is_empty else Figure(chart, charts.bars(chart), note)


def _series(panel: Panel, point: Draw) -> tuple[Series, ...]:
    series = []
    for line in panel.lines:
        found = [point(index, line.cell(level)) for index, level in enumerate(panel.levels)]
        known = tuple(item for item in found if item is not None)
        series.append(Series(line.name, known, tone=line.tone, dash=line.dash))
    return tuple(series)


def levels_of(panel: Panel) -> tuple[str, ...]:
    """Returns the labels of the level axis, such as 1 KiB, 4 or Warm. Ratio30 is 30%."""
    if is_share(panel.levels):
        return tuple(f"{level_number(level):g}%" for level in panel.levels)
    return tuple(show_level(panel.axis, level) or "all" for level in panel.levels)


def axis_of(panel: Panel) -> str:
    """Returns the title of the level axis."""
    return f"{_RATIO} (share left)" if is_share(panel.levels) else humanize(panel.axis) or "Case"


def factors_suffix(panel: Panel) -> str:
    """Returns the end of a title that names the factors of a panel, such as "by payload size and class"."""
    names = (in_sentence(_RATIO if is_share(panel.levels) else humanize(panel.axis)), *panel.distinguished_by)
    return f" by {join_words([name for name in names if name])}" if any(names) else ""


def heading(text: str, panel: Panel) -> str:
    """Returns a title with the levels that are the same for all of the panel."""
    return f"{text}: {panel.held}" if panel.held else text


def describe_estimate(quantity: str, found: Estimate) -> str:
    """Returns an estimate with its interval, or why it has none."""
    if not found.count:
        return f"{show(quantity, found.mean)} (published mean)"
    if found.low is None or found.high is None:
        return f"{show(quantity, found.mean)} ({found.count} trial{'s' * (found.count != 1)}, no interval)"
    return show_interval(quantity, found.mean, found.low, found.high)


def _add_counts(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            total[name] = total.get(name, 0) + count
    return total


def good_trials_of(cell: Cell) -> tuple[ResultTrial, ...]:
    """Returns the good trials of a cell."""
    return tuple(trial for result in cell.results for trial in good_trials(result.recorded.trials))


def values(cell: Cell, quantity: str) -> tuple[float, ...]:
    """Returns the quantity in each good trial that has it."""
    kind = cell.results[0].spec.benchmark.kind if cell.results else ""
    return tuple(quantity_values(kind, good_trials_of(cell), quantity))


def mean_evidence(cell: Cell, quantity: str) -> float | None:
    """Returns the mean of a quantity that explains others; None if it was not measured."""
    if quantity == DEVICE_READ_SHARE:
        return _device_read_share(cell)
    found = estimate(cell, quantity)
    return None if found is None else found.mean


def _device_read_share(cell: Cell) -> float | None:
    read = estimate(cell, "serverDeviceReadBytes")
    of = kind_of(cell.results[0].spec.benchmark.kind).measures.bytes_served if cell.results else None
    served = [] if of is None else [each for trial in good_trials_of(cell) if (each := of(trial)) is not None]
    return None if read is None or not served else 1e6 * read.mean / fmean(served)
