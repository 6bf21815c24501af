"""Results of brokers in the form of SINETStream's performance tool, to lay figures beside published ones.

One record a trial, with all pairs together. What differs from the tool: sizes are the payload's, without its envelope
of 20 bytes; the reader's end is its last message, where the tool takes the writer's; rates count from the load's start.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from tierbench.api.contract import Exchange
from tierbench.api.quantity import parse_size
from tierbench.api.result import BenchmarkResult, ResultTrial

_SIDES: Final = ("writer", "reader")


def records(results: Iterable[BenchmarkResult]) -> Iterator[dict[str, dict[str, float]]]:
    """{"writer": {…}, "reader": {…}} of every counted trial that exchanged messages; times in seconds since 1970."""
    for result in results:
        if "payloadSize" not in result.spec.levels:
            continue
        size = parse_size(result.spec.levels["payloadSize"])
        for trial in result.status.trials:
            if trial.exchange is not None and not trial.warmup:
                yield {
                    "writer": _side(trial, size, trial.exchange.sent, trial.exchange.sent_bytes, trial.exchange.errors),
                    "reader": _side(trial, size, trial.exchange.received, trial.exchange.received_bytes, _lost(trial)),
                }


def _lost(trial: ResultTrial) -> int:
    return (trial.exchange or Exchange()).lost


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
    rows = list(records(results))
    if rows:
        writer.writerow(f"{side}_{name}" for side in _SIDES for name in rows[0][side])
    writer.writerows([value for side in _SIDES for value in row[side].values()] for row in rows)
    return text.getvalue()
