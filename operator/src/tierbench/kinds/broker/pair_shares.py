"""What each pair of publisher and subscriber had, one upon another: the sum, and how even it is."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

from tierbench.advice.matrix import Cell
from tierbench.api.contract import PairShares
from tierbench.report import charts
from tierbench.report.charts import Chart, Point, Series
from tierbench.report.figures import Figure, axis_of, by, heading, levels_of
from tierbench.report.layout import Line, Panel
from tierbench.results.pairs import add_trial, pair_rates
from tierbench.results.units import percent, show

_QUANTITY: Final = "throughputMessagesPerSecond"
_AXIS: Final = "PerSecond"  # of messages, as the title says
_MOST: Final = 8
_TONES: Final = 6
_QUARTERS: Final = ("slowest quarter", "second quarter", "third quarter", "fastest quarter")
_NOTE: Final = "Each by its own time, of all good trials; the height is the sum."
_QUARTERS_NOTE: Final = f"{_NOTE} There are too many pairs to show each: they stand in quarters, the slowest first."


def pair_share_figures(prefix: str, panel: Panel) -> tuple[Figure, ...]:
    """A stack a level, of each line that has several pairs somewhere: a part a pair, or of many pairs a quarter."""
    return tuple(_figures(prefix, panel))


def _figures(prefix: str, panel: Panel) -> Iterator[Figure]:
    for number, line in enumerate(panel.lines):
        rates = [_rates(line.cell(level)) for level in panel.levels]
        most = max(map(len, rates), default=0)
        if most > _MOST:
            parts = [_quarters(each) for each in rates]
            yield _figure(f"{prefix}-{number}", panel, line, parts, _QUARTERS, _QUARTERS_NOTE)
        elif most > 1:
            names = [f"pair {pair + 1}" for pair in range(most)]
            yield _figure(f"{prefix}-{number}", panel, line, rates, names, _NOTE)


def _rates(cell: Cell) -> Sequence[float]:
    none: PairShares | None = None
    shares = reduce(add_trial, (result.status.pair_shares for result in cell.results), none)
    return () if shares is None else pair_rates(shares)


def _quarters(rates: Sequence[float]) -> Sequence[float]:
    """The sums of the slowest quarter of the pairs, and so on."""
    total = [0.0] * len(_QUARTERS)
    for place, rate in enumerate(sorted(rates)):
        total[place * len(_QUARTERS) // len(rates)] += rate
    return total


def _figure(
    name: str, panel: Panel, line: Line, parts: Sequence[Sequence[float]], names: Sequence[str], note: str
) -> Figure:
    series = tuple(
        Series(each, _points(parts, index), tone=index % _TONES, dash=index // _TONES)
        for index, each in enumerate(names)
    )
    held = ", ".join(filter(None, (line.name, panel.held)))
    title = heading(f"Messages a second of each pair{by(replace(panel, told=()))}", replace(panel, held=held))
    chart = Chart(name, title, f"A stack a level. {note}", _AXIS, axis_of(panel), levels_of(panel), series)
    return Figure(chart, charts.stacked(chart), note)


def _points(parts: Sequence[Sequence[float]], index: int) -> tuple[Point, ...]:
    return tuple(_point(level, one, index) for level, one in enumerate(parts) if index < len(one))


def _point(level: int, parts: Sequence[float], index: int) -> Point:
    share = parts[index] / sum(parts) if any(parts) else 0.0
    return Point(level, parts[index], f"{show(_QUANTITY, parts[index])} ({percent(share)})")
