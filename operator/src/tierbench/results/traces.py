"""TCP traces of a case: selects what fits into one object, and decodes it."""

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

TCP_STATES: Final = ("Open", "Disorder", "CWR", "Recovery", "Loss")
"""The congestion states of a Linux TCP socket, by their numbers."""
_MAXIMUM_UNPACKED_BYTES: Final = 32 * 2**20


@dataclass(frozen=True)
class ConnectionTrace:
    """The samples of one connection over time, as columns of one length.

    `states` are indexes of TCP_STATES. A slow-start threshold of 0 is not set yet.
    """

    milliseconds: tuple[int, ...]
    congestion_window_bytes: tuple[int, ...]
    slow_start_threshold_bytes: tuple[int, ...]
    round_trip_microseconds: tuple[int, ...]
    states: tuple[int, ...]


def select_traces(lines: Iterable[TrialLine]) -> TraceStatus:
    """Returns the traces of the first trials, as far as all traces of a trial fit. Warm-up trials come first."""
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


def decode_trace(trace: TrialTrace) -> tuple[ConnectionTrace, ...]:
    """Returns the connections of a trace.

    Raises:
        ValueError: the data is damaged.
    """
    try:
        with gzip.GzipFile(fileobj=BytesIO(b64decode(trace.data, validate=True))) as packed:
            body = json.loads(packed.read(_MAXIMUM_UNPACKED_BYTES))
        return tuple(_decode_connection(row) for row in body["connections"] or ())
    except (OSError, EOFError, zlib.error, binascii.Error, json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"cannot decode the trace of trial {trace.trial}: {error}") from error


def _decode_connection(row: dict[str, Any]) -> ConnectionTrace:
    names = (
        "milliseconds", "congestionWindowBytes", "slowStartThresholdBytes", "roundTripMicroseconds", "state",
    )  # fmt: skip
    columns = [tuple(map(int, row[name])) for name in names]
    if len(set(map(len, columns))) > 1:
        raise ValueError("the columns of a connection differ in length")
    return ConnectionTrace(*columns)
