"""Traces of TCP in records: the samples of each connection, as clients and agents pack them. They are not trusted."""

import gzip
import json
import zlib
from base64 import b64decode
from dataclasses import astuple, dataclass
from io import BytesIO
from typing import Any, Final

from tierbench.api.record import TrialTrace
from tierbench.api.result import BenchmarkResult

TCP_STATES: Final = ("Open", "Disorder", "CWR", "Recovery", "Loss")
"""The congestion states of a Linux TCP socket, by their numbers."""
_MAXIMUM_UNPACKED_BYTES: Final = 32 * 2**20
_MAXIMUM_CONNECTIONS: Final = 8
_MAXIMUM_SAMPLES: Final = 1024
_LARGEST_SAMPLE: Final = 2**63 - 1
# The data comes from a pod: deep nesting, infinite numbers and other types are errors of the trace, not of its reader.
_DECODE_ERRORS: Final = (
    OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip
_COLUMNS: Final = (
    "milliseconds", "congestionWindowBytes", "slowStartThresholdBytes", "roundTripMicroseconds",
    "roundTripVarianceMicroseconds", "retransmits", "deliveryBitsPerSecond", "state",
)  # fmt: skip


@dataclass(frozen=True)
class ConnectionTrace:
    """The samples of one connection over time, as columns of one length.

    `port` is that of the server. Retransmits are counted since the connection began. A slow-start threshold of 0 is not
    set yet. `states` are indexes of TCP_STATES.
    """

    port: int
    milliseconds: tuple[int, ...]
    congestion_window_bytes: tuple[int, ...]
    slow_start_threshold_bytes: tuple[int, ...]
    round_trip_microseconds: tuple[int, ...]
    round_trip_variance_microseconds: tuple[int, ...]
    retransmits: tuple[int, ...]
    delivery_bits_per_second: tuple[int, ...]
    states: tuple[int, ...]

    @property
    def samples(self) -> tuple[tuple[int, ...], ...]:
        """The samples as rows, in the order of the columns."""
        return tuple(zip(*astuple(self)[1:], strict=True))


def sender_name(result: BenchmarkResult, trace: TrialTrace) -> str:
    """Returns the name of the sender: the server, or one of the clients."""
    if trace.side == "Server":
        return result.spec.server.node or "server"
    nodes = result.spec.clients
    node = nodes[trace.client] if trace.client < len(nodes) else result.spec.client
    return node.node or "client"


def decode_trace(trace: TrialTrace) -> tuple[ConnectionTrace, ...]:
    """Returns the connections of a trace.

    Raises:
        ValueError: the data is damaged.
    """
    try:
        with gzip.GzipFile(fileobj=BytesIO(b64decode(trace.data, validate=True))) as packed:
            body = json.loads(packed.read(_MAXIMUM_UNPACKED_BYTES))
        rows = body["connections"] or ()
        if len(rows) > _MAXIMUM_CONNECTIONS:
            raise ValueError(f"it has more than {_MAXIMUM_CONNECTIONS} connections")
        return tuple(map(_decode_connection, rows))
    except _DECODE_ERRORS as error:
        raise ValueError(f"cannot decode the trace of trial {trace.trial}: {error}") from error


def _decode_connection(row: dict[str, Any]) -> ConnectionTrace:
    port, columns = int(row["port"]), [tuple(map(int, row[name])) for name in _COLUMNS]
    if not all(0 <= value <= _LARGEST_SAMPLE for column in ((port,), *columns) for value in column):
        raise ValueError("a sample is out of range")
    if len(set(map(len, columns))) > 1:
        raise ValueError("the columns of a connection differ in length")
    if len(columns[0]) > _MAXIMUM_SAMPLES:
        raise ValueError(f"a connection has more than {_MAXIMUM_SAMPLES} samples")
    return ConnectionTrace(port, *columns)
