"""Where the time of a message goes: compression, encryption, transfer, and back again, one upon another."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final

from tierbench.advice.matrix import Cell
from tierbench.api.result import ResultTrial
from tierbench.report import charts
from tierbench.report.charts import Chart, Point, Series
from tierbench.report.evidence import good_trials
from tierbench.report.figures import Figure, axis_of, by, heading, levels_of
from tierbench.report.layout import Line, Panel
from tierbench.results.units import show

_QUANTITY: Final = "Nanoseconds"
_TRANSFER: Final = "transfer"
_PARTS: Final = ("compress", "encrypt", _TRANSFER, "decrypt", "decompress")
_CODEC: Final = tuple(part for part in _PARTS if part != _TRANSFER)
_MEAN: Final = "Mean a message, of the good trials."
_ALL_NOTE: Final = f"{_MEAN} Transfer is the round trip without compressing and encrypting, waiting included."
_CODEC_NOTE: Final = f"{_MEAN} The same without the transfer."


def message_time_figures(prefix: str, panel: Panel) -> tuple[Figure, ...]:
    """Of each line whose messages are encoded, a stack with the transfer and, of several other parts, one without."""
    return tuple(_figures(prefix, panel))


def _figures(prefix: str, panel: Panel) -> Iterator[Figure]:
    for number, line in enumerate(panel.lines):
        known = [message_time(line.cell(level)) for level in panel.levels]
        parts = [part for part in _CODEC if any(times.get(part) for times in known)]
        name = f"{prefix}-{number}"
        if parts:
            shown = [part for part in _PARTS if part in {_TRANSFER, *parts}]
            yield _figure(f"{name}-all", "Time of a message", _ALL_NOTE, panel, line, known, shown)
        if len(parts) > 1:
            yield _figure(f"{name}-codec", "Time of its encoding and decoding", _CODEC_NOTE, panel, line, known, parts)


def _figure(
    name: str,
    title: str,
    note: str,
    panel: Panel,
    line: Line,
    known: Sequence[Mapping[str, float]],
    parts: Sequence[str],
) -> Figure:
    held = ", ".join(filter(None, (line.name, panel.held)))
    series = []
    for part in parts:
        points = [
            Point(level, times[part], show(_QUANTITY, times[part]))
            for level, times in enumerate(known)
            if part in times
        ]
        series.append(Series(part, tuple(points), tone=_PARTS.index(part)))
    about = heading(f"{title}{by(replace(panel, told=('part',)))}", replace(panel, held=held))
    chart = Chart(
        name, about, f"A stack a level. {note}", _QUANTITY, axis_of(panel), levels_of(panel), tuple(series), bars=True
    )
    return Figure(chart, charts.stacked(chart), note)


def message_time(cell: Cell) -> Mapping[str, float]:
    """The mean nanoseconds of a message in each part; nothing where no message came back."""
    known = [times for trial in good_trials(cell) if (times := _of(trial))]
    return {part: fmean(times[part] for times in known) for part in _PARTS} if known else {}


def _of(trial: ResultTrial) -> Mapping[str, float]:
    """A round trip begins before a message is encoded, and ends before it is decoded."""
    exchange, spread = trial.exchange, trial.round_trip
    if exchange is None or spread is None or not (exchange.sent and exchange.received):
        return {}
    compress, encrypt = exchange.compress_nanoseconds / exchange.sent, exchange.encrypt_nanoseconds / exchange.sent
    return {
        "compress": compress,
        "encrypt": encrypt,
        _TRANSFER: max(0.0, spread.mean - compress - encrypt),
        "decrypt": exchange.decrypt_nanoseconds / exchange.received,
        "decompress": exchange.decompress_nanoseconds / exchange.received,
    }
