"""Traces of a case: collected from its clients' lines within bounds, and read again."""

import binascii
import gzip
import json
import zlib
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

from tierbench.api.contract import TrialLine
from tierbench.api.result import MAXIMUM_TRACE_BYTES, TraceStatus, TrialTrace

STATES: Final = ("Open", "Disorder", "CWR", "Recovery", "Loss")
_MOST_UNPACKED: Final = 32 * 2**20


@dataclass(frozen=True)
class Connection:
    """One connection over time: lists of one length. `states` are places in STATES; a threshold of 0 is none yet."""

    port: int
    milliseconds: tuple[int, ...]
    congestion_window_bytes: tuple[int, ...]
    slow_start_threshold_bytes: tuple[int, ...]
    round_trip_microseconds: tuple[int, ...]
    retransmits: tuple[int, ...]
    states: tuple[int, ...]


def collect(lines: Iterable[TrialLine]) -> TraceStatus:
    """The traces of these trials, the first ones as far as there is room for all of a trial."""
    kept: list[TrialTrace] = []
    size = trials = left_out = 0
    for line in sorted(lines, key=lambda line: (not line.warmup, line.trial)):
        if not line.traces:
            continue
        needed = sum(len(trace.data) for trace in line.traces)
        if size + needed > MAXIMUM_TRACE_BYTES:
            left_out += 1
            continue
        size, trials = size + needed, trials + 1
        kept += [
            TrialTrace(trial=line.trial, warmup=line.warmup, side=trace.side, client=trace.client, data=trace.data)
            for trace in line.traces
        ]
    return TraceStatus(trials=trials, left_out=left_out, traces=tuple(kept))


def connections(trace: TrialTrace) -> tuple[Connection, ...]:
    """What a trace tells.

    Raises:
        ValueError: it is no trace.
    """
    try:
        with gzip.GzipFile(fileobj=BytesIO(b64decode(trace.data, validate=True))) as packed:
            body = json.loads(packed.read(_MOST_UNPACKED))
        return tuple(_connection(row) for row in body["connections"] or ())
    except (OSError, EOFError, zlib.error, binascii.Error, json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"the trace of trial {trace.trial} cannot be read: {error}") from error


def _connection(row: dict[str, Any]) -> Connection:
    columns = {
        name: tuple(map(int, row[key]))
        for name, key in (
            ("milliseconds", "milliseconds"),
            ("congestion_window_bytes", "congestionWindowBytes"),
            ("slow_start_threshold_bytes", "slowStartThresholdBytes"),
            ("round_trip_microseconds", "roundTripMicroseconds"),
            ("retransmits", "retransmits"),
            ("states", "state"),
        )
    }
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError("the lists of a connection differ in length")
    return Connection(port=int(row["port"]), **columns)
