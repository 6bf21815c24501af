"""Results of brokers in the form of SINETStream's performance tool, to lay figures beside published ones.

One record a trial, with all pairs together. What differs from the tool: sizes are the payload's, without its envelope
of 20 bytes; the reader's end is its last message, where the tool takes the writer's; rates count from the load's start.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from datetime import datetime

from tierbench.api.measurements import Exchange
from tierbench.api.quantity import parse_size
from tierbench.api.result import BenchmarkResult, ResultTrial


def records(results: Iterable[BenchmarkResult]) -> Iterator[dict[str, dict[str, float]]]:
    """{"writer": {…}, "reader": {…}} of every counted trial that exchanged messages, without subscribers no reader;
    times in seconds since 1970."""
    for result in results:
        if "payloadSize" not in result.spec.levels:
            continue
        size = parse_size(result.spec.levels["payloadSize"])
        for trial in result.status.trials:
            if trial.exchange is not None and not trial.warmup:
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


def to_json(results: Iterable[BenchmarkResult]) -> str:
    """A JSON object a line."""
    return "".join(json.dumps(record) + "\n" for record in records(results))


def to_tsv(results: Iterable[BenchmarkResult]) -> str:
    """A line of names, then a line a trial, with tabs between."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")
    rows = [{f"{side}_{name}": value for side in row for name, value in row[side].items()} for row in records(results)]
    columns = tuple(dict.fromkeys(column for row in rows for column in row))
    if rows:
        writer.writerow(columns)
    writer.writerows([row.get(column) for column in columns] for row in rows)
    return text.getvalue()
