"""The report of a broker, and results in the format of SINETStream's performance tool."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import reduce
from statistics import fmean
from typing import Final

from tierbench.advice.tables import Cell, Table
from tierbench.api.contract import PairShares
from tierbench.api.measurements import Exchange
from tierbench.api.quantity import parse_size
from tierbench.api.record import ResultTrial
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.broker.measures import add_pair_shares, pair_rates
from tierbench.report import charts
from tierbench.report.charts import Chart, Point, Series
from tierbench.report.figures import Figure, axis_of, factors_suffix, good_trials_of, heading, levels_of
from tierbench.report.panels import Line, Panel
from tierbench.results.quantities import trial_quantities
from tierbench.results.units import DASH, join_words, percent, show

_RATE: Final = "throughputMessagesPerSecond"
_AXIS: Final = "PerSecond"  # messages, as the title says
_MOST: Final = 8
_TONES: Final = 6
_QUARTERS: Final = ("slowest quarter", "second quarter", "third quarter", "fastest quarter")
_PAIRS_NOTE: Final = "Each pair by its own time, over all good trials. The height is the sum."
_QUARTERS_NOTE: Final = (
    f"{_PAIRS_NOTE} There are too many pairs to show each, so they are in quarters, the slowest first."
)
_QUANTITY: Final = "Nanoseconds"
_TRANSFER: Final = "transfer"
_PARTS: Final = ("compress", "encrypt", _TRANSFER, "decrypt", "decompress")
_CODEC: Final = tuple(part for part in _PARTS if part != _TRANSFER)
_MEAN: Final = "Mean per message, over the good trials."
_ALL_NOTE: Final = f"{_MEAN} Transfer is the round trip without compression and encryption; it includes waiting."
_CODEC_NOTE: Final = f"{_MEAN} Without the transfer."


def cells(trial: ResultTrial) -> dict[str, str]:
    """Returns the cells of a trial by heading."""
    exchange, spread = trial.exchange or Exchange(), trial.round_trip
    acknowledged = None if trial.acknowledge is None else trial.acknowledge.mean
    busy = trial_quantities("BrokerBenchmark", trial).get("brokerCpuPartsPerMillion")
    return {
        "Round trip": DASH if spread is None else show("roundTripNanoseconds", spread.mean),
        "99th percentile": DASH if spread is None else show("roundTripP99Nanoseconds", spread.p99),
        "Acknowledged after": show("acknowledgeNanoseconds", acknowledged),
        "Received": DASH if exchange.received is None else str(exchange.received),
        "Lost": DASH if exchange.received is None else str(exchange.lost),
        "Late": str(exchange.late_sends),
        "Broker's CPU": show("brokerCpuPartsPerMillion", busy),
    }


def losses(table: Table) -> str:
    """Returns whether every message of the counted trials arrived; empty if that is unknown."""
    known = {name: [lost for row in table.rows if (lost := _lost(table.cell(row, name)))] for name in table.columns}
    if all(_lost(cell) is None for cell in table.cells.values()):
        return ""
    places = [f"{sum(lost)} on {name}" for name, lost in known.items() if lost]
    return f"Messages were lost: {join_words(places)}." if places else "Every message arrived."


def _lost(cell: Cell) -> int | None:
    """Returns the number of messages that were lost in all counted trials; None if it is unknown."""
    counted = [result.status.counts.messages for result in cell.results]
    known = [messages.lost for messages in counted if messages is not None and messages.lost is not None]
    return sum(known) if known else None


def pair_share_figures(prefix: str, panel: Panel) -> tuple[Figure, ...]:
    """Returns a stacked chart for each line with several pairs. A segment is a pair, or a quarter of many pairs."""
    return tuple(_pair_figures(prefix, panel))


def _pair_figures(prefix: str, panel: Panel) -> Iterator[Figure]:
    for number, line in enumerate(panel.lines):
        rates = [_rates(line.cell(level)) for level in panel.levels]
        most = max(map(len, rates), default=0)
        if most > _MOST:
            parts = [_quarters(each) for each in rates]
            yield _pair_figure(f"{prefix}-{number}", panel, line, parts, _QUARTERS, _QUARTERS_NOTE)
        elif most > 1:
            names = [f"pair {pair + 1}" for pair in range(most)]
            yield _pair_figure(f"{prefix}-{number}", panel, line, rates, names, _PAIRS_NOTE)


def _rates(cell: Cell) -> Sequence[float]:
    none: PairShares | None = None
    shares = reduce(add_pair_shares, (result.recorded.pair_shares for result in cell.results), none)
    return () if shares is None else pair_rates(shares)


def _quarters(rates: Sequence[float]) -> Sequence[float]:
    """Returns the sums of the slowest quarter of the pairs, the second quarter, and so on."""
    total = [0.0] * len(_QUARTERS)
    for place, rate in enumerate(sorted(rates)):
        total[place * len(_QUARTERS) // len(rates)] += rate
    return total


def _pair_figure(
    name: str, panel: Panel, line: Line, parts: Sequence[Sequence[float]], names: Sequence[str], note: str
) -> Figure:
    series = tuple(
        Series(each, _points(parts, index), tone=index % _TONES, dash=index // _TONES)
        for index, each in enumerate(names)
    )
    return _stacked(name, "Messages per second of each pair", note, panel, line, _AXIS, series)


def _stacked(
    name: str,
    title: str,
    note: str,
    panel: Panel,
    line: Line,
    quantity: str,
    series: tuple[Series, ...],
    *,
    distinguished_by: tuple[str, ...] = (),
) -> Figure:
    """Returns a chart of a line of a panel, with a stacked bar per level."""
    suffix = factors_suffix(replace(panel, distinguished_by=distinguished_by))
    held = ", ".join(filter(None, (line.name, panel.held)))
    about = heading(f"{title}{suffix}", replace(panel, held=held))
    text = f"Stacked bars, one per level. {note}"
    chart = Chart(name, about, text, quantity, axis_of(panel), levels_of(panel), series, bars=True)
    return Figure(chart, charts.stacked(chart), note)


def _points(parts: Sequence[Sequence[float]], index: int) -> tuple[Point, ...]:
    return tuple(_point(level, one, index) for level, one in enumerate(parts) if index < len(one))


def _point(level: int, parts: Sequence[float], index: int) -> Point:
    share = parts[index] / sum(parts) if any(parts) else 0.0
    return Point(level, parts[index], f"{show(_RATE, parts[index])} ({percent(share)})")


def message_time_figures(prefix: str, panel: Panel) -> tuple[Figure, ...]:
    """Returns stacked charts for each line with encoded messages, with the transfer and without it."""
    return tuple(_time_figures(prefix, panel))


def _time_figures(prefix: str, panel: Panel) -> Iterator[Figure]:
    for number, line in enumerate(panel.lines):
        known = [message_time(line.cell(level)) for level in panel.levels]
        parts = [part for part in _CODEC if any(times.get(part) for times in known)]
        name = f"{prefix}-{number}"
        if parts:
            shown = [part for part in _PARTS if part in {_TRANSFER, *parts}]
            yield _time_figure(f"{name}-all", "Time of a message", _ALL_NOTE, panel, line, known, shown)
        if len(parts) > 1:
            yield _time_figure(
                f"{name}-codec", "Time of its encoding and decoding", _CODEC_NOTE, panel, line, known, parts
            )


def _time_figure(
    name: str,
    title: str,
    note: str,
    panel: Panel,
    line: Line,
    known: Sequence[Mapping[str, float]],
    parts: Sequence[str],
) -> Figure:
    series = []
    for part in parts:
        points = [
            Point(level, times[part], show(_QUANTITY, times[part]))
            for level, times in enumerate(known)
            if part in times
        ]
        series.append(Series(part, tuple(points), tone=_PARTS.index(part)))
    return _stacked(name, title, note, panel, line, _QUANTITY, tuple(series), distinguished_by=("part",))


def message_time(cell: Cell) -> Mapping[str, float]:
    """Returns the mean nanoseconds of a message in each step; empty if no message came back."""
    known = [times for trial in good_trials_of(cell) if (times := _times_of(trial))]
    return {part: fmean(times[part] for times in known) for part in _PARTS} if known else {}


def _times_of(trial: ResultTrial) -> Mapping[str, float]:
    """Returns the nanoseconds of each step. A round trip starts before encoding and ends before decoding."""
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


def perftool_json(results: Iterable[BenchmarkResult]) -> str:
    """Returns a JSON object per line, one per trial of all pairs, in the format of SINETStream's performance tool.

    There are three differences from the tool. Sizes are those of the payload, without its envelope of 20 bytes. The
    reader ends with its own last message, not with the writer's. Rates count from the start of the load.
    """
    return "".join(json.dumps(record) + "\n" for record in _records(results))


def perftool_tsv(results: Iterable[BenchmarkResult]) -> str:
    """Returns the same records as a table: a line of names, then a line per trial, separated by tabs."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")
    rows = [{f"{side}_{name}": value for side in row for name, value in row[side].items()} for row in _records(results)]
    columns = tuple(dict.fromkeys(column for row in rows for column in row))
    if rows:
        writer.writerow(columns)
    writer.writerows([row.get(column) for column in columns] for row in rows)
    return text.getvalue()


def _records(results: Iterable[BenchmarkResult]) -> Iterator[dict[str, dict[str, float]]]:
    """Yields {"writer": {…}, "reader": {…}} for every counted trial with messages. Without subscribers there is no
    reader.

    Times are seconds since 1970.
    """
    for result in results:
        if "payloadSize" not in result.spec.levels:
            continue
        size = parse_size(result.spec.levels["payloadSize"])
        for trial in result.recorded.trials:
            if trial.exchange is not None and not trial.warmup and not trial.interrupted:
                yield dict(_sides(trial, size, trial.exchange))


def _sides(trial: ResultTrial, size: int, exchange: Exchange) -> Iterator[tuple[str, dict[str, float]]]:
    yield "writer", _side(trial, size, exchange.sent, exchange.sent_bytes, exchange.errors)
    if exchange.received is not None:
        yield "reader", _side(trial, size, exchange.received, exchange.received_bytes, exchange.lost)


def _side(trial: ResultTrial, size: int, messages: int, total_bytes: int, errors: int) -> dict[str, float]:
    start = datetime.fromisoformat(trial.start_time).timestamp()
    seconds = trial.duration_nanoseconds / 1e9
    end = start + seconds

    def rate(total: int) -> float:
        return total / seconds if seconds else 0.0

    return {
        "start_time": start,
        "start_time_ms": start * 1000,
        "end_time": end,
        "end_time_ms": end * 1000,
        "time": seconds,
        "time_ms": seconds * 1000,
        "msg_count_total": messages,
        "msg_count_rate": rate(messages),
        "msg_bytes_total": total_bytes,
        "msg_bytes_rate": rate(total_bytes),
        "msg_size_min": size,
        "msg_size_max": size,
        "msg_size_avg": float(size),
        "error_count_total": errors,
        "error_count_rate": rate(errors),
    }
