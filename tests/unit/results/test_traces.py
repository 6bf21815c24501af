"""Traces of TCP: what a record keeps of them, and how they are decoded."""

import gzip
import json
import random
from base64 import b64encode

import pytest

from tests.unit.kinds.network.trials import line, measured, trace, traced
from tierbench.api.record import MAXIMUM_TRACE_BYTES, RecordStatus, TrialTrace
from tierbench.results.client_output import PartOutput, add_traces, merge_parts
from tierbench.results.traces import decode_trace

COLUMNS = (
    "milliseconds", "congestionWindowBytes", "slowStartThresholdBytes", "roundTripMicroseconds",
    "roundTripVarianceMicroseconds", "retransmits", "deliveryBitsPerSecond", "state",
)  # fmt: skip
SAMPLES = {"port": 5201, **{name: [1] for name in COLUMNS}}


def test_a_trace_is_decoded_as_it_was_sampled() -> None:
    (one,) = add_traces(RecordStatus(), [traced(1, trace())]).traces
    (connection,) = decode_trace(one)
    assert (one.trial, one.side) == (1, "Client")
    assert connection.milliseconds == (100, 200, 300, 400)
    assert connection.congestion_window_bytes == (14480, 28960, 43440, 57920)
    assert connection.round_trip_microseconds == (250, 500, 750, 1000)
    assert connection.states == (0, 0, 3, 0)
    assert (connection.port, connection.retransmits) == (5201, (0, 0, 1, 1))


def test_traces_that_do_not_fit_are_counted() -> None:
    noise = random.Random(1).randbytes(MAXIMUM_TRACE_BYTES // 5)
    large = {"side": "Client", "data": b64encode(noise).decode()}
    record = add_traces(RecordStatus(), [traced(number, large) for number in (2, 1)])
    record = add_traces(record, [traced(number, large) for number in (1, 3, 4)])
    assert ([one.trial for one in record.traces], record.traces_left_out) == ([1, 2, 3], (4,))
    assert sum(len(one.data) for one in record.traces) <= MAXIMUM_TRACE_BYTES


def test_trials_without_a_trace_are_ignored() -> None:
    assert [one.trial for one in add_traces(RecordStatus(), [traced(1), traced(2, trace())]).traces] == [2]


@pytest.mark.parametrize("data", ["", "####", "H4sI", b64encode(b"not packed").decode()])
def test_a_damaged_trace_is_an_error(data: str) -> None:
    with pytest.raises(ValueError, match="trial 7"):
        decode_trace(TrialTrace(trial=7, side="Client", data=data))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        "[1]",
        '{"connections": [1]}',
        '{"connections": [{"milliseconds": [1e400]}]}',
        json.dumps({"connections": [SAMPLES | {"state": [-9]}]}),
        json.dumps({"connections": [SAMPLES | {"roundTripMicroseconds": [10**300]}]}),
        json.dumps({"connections": [SAMPLES] * 9}),
        json.dumps({"connections": [SAMPLES | {name: [1] * 1025 for name in COLUMNS}]}),
    ],
    ids=["nested", "list", "number", "infinite", "state", "huge", "connections", "samples"],
)
def test_malformed_trace_is_an_error_that_names_its_trial(text: str) -> None:
    data = b64encode(gzip.compress(text.encode())).decode()
    with pytest.raises(ValueError, match="cannot decode the trace of trial 7"):
        decode_trace(TrialTrace(trial=7, side="Client", data=data))


def test_columns_of_different_lengths_are_an_error() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        decode_trace(TrialTrace(trial=1, **trace(state=[0, 0])))


def test_each_trace_of_several_clients_has_the_number_of_its_client() -> None:
    (merged,) = merge_parts([PartOutput([traced(1, trace())]), PartOutput([traced(1, trace())])])
    assert [one.client for one in merged.traces] == [0, 1]
    assert merged.network is not None
    assert merged.network.upload is not None
    tcp = merged.network.upload.tcp
    assert tcp is not None
    assert (tcp.samples, tcp.events) == (200, {"TCPFastRetrans": 6})
    assert tcp.states_parts_per_million == {"Open": 900_000, "Recovery": 100_000}


def test_the_time_outside_open_is_a_quantity() -> None:
    status = measured(traced(1, trace()))
    assert status.statistics["tcpNotOpenPartsPerMillion"].mean == 100_000
    assert "tcpNotOpenPartsPerMillion" not in measured(line(1)).statistics
