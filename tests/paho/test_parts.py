"""The pure parts of the engine: envelope, books and buckets."""

import random
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.paho.src.tierbench_paho.envelope import Codec, CorruptError
from images.paho.src.tierbench_paho.histogram import index_of
from images.paho.src.tierbench_paho.ledger import Ledger
from images.paho.src.tierbench_paho.payload import contents
from images.paho.src.tierbench_paho.wire import Counters, count
from tests.histograms import bucket_index


@given(st.integers(min_value=-1, max_value=2**50))
def test_buckets_are_the_operators(value: int) -> None:
    assert index_of(value) == bucket_index(value)


@given(st.integers(min_value=0, max_value=2**12))
def test_bounds_of_buckets_are_the_operators(index: int) -> None:
    bound = int(2 ** (index / 64))
    assert [index_of(value) for value in (bound, bound + 1)] == [bucket_index(value) for value in (bound, bound + 1)]


@pytest.mark.parametrize("compression", ["None", "Gzip", "Zstd:1"])
@pytest.mark.parametrize("key", [None, bytes(16)])
def test_what_was_encoded_is_decoded_or_refused(compression: str, key: bytes | None) -> None:
    codec, plain = Codec(compression, key), contents("SensorJSON", 1000, 1, 1)
    encoded = codec.encode(plain)
    assert codec.decode(encoded) == plain
    if key is not None or compression == "Gzip":
        with pytest.raises(CorruptError):
            codec.decode(encoded[:-9] + bytes(9))
    if compression == "None" and key is None:
        assert encoded is plain


@pytest.mark.parametrize(
    ("family", "options", "length", "expected"),
    [
        # Data, then each segment's Ethernet, IP, TCP and timestamps, then what a SYN has more.
        (socket.AF_INET, 0b111, 256, (9000 + 10 * (14 + 20 + 20 + 12) + 8, 500 + 8 * (14 + 20 + 20 + 12) + 8)),
        (socket.AF_INET6, 0b111, 256, (9000 + 10 * (14 + 40 + 20 + 12) + 8, 500 + 8 * (14 + 40 + 20 + 12) + 8)),
        (socket.AF_INET, 0b110, 256, (9000 + 10 * (14 + 20 + 20) + 12, 500 + 8 * (14 + 20 + 20) + 12)),
        # A kernel that does not say what it sent: what was acknowledged but the SYN, and two segments sent again.
        (socket.AF_INET, 0b111, 192, (6000 + 2 * 1448 + 10 * 66 + 8, 500 + 8 * 66 + 8)),
    ],
)
def test_bytes_on_the_wire(family: socket.AddressFamily, options: int, length: int, expected: tuple[int, int]) -> None:
    info = bytearray(256)
    struct.pack_into("=B", info, 5, options)
    struct.pack_into("=I", info, 16, 1448)
    struct.pack_into("=I", info, 100, 2)
    struct.pack_into("=QQII", info, 120, 6001, 500, 10, 8)
    struct.pack_into("=Q", info, 200, 9000)
    wanted = Counters(*expected, sent_packets=10, received_packets=8, retransmits=2)
    assert count(bytes(info[:length]), family) == wanted


def test_the_books_reconcile_whatever_happens() -> None:
    ledger, chance = Ledger(number_bytes=2), random.Random(1)
    in_flight: list[int] = []
    late = copies = 0
    for number in range(200_000):
        ledger.depart(number, number)
        if chance.random() < 0.99:
            in_flight.append(number)
        while len(in_flight) > 500:
            came = in_flight.pop(chance.randrange(3))
            assert ledger.arrive(came % 65536, number, 10) is (came >= late)
            if chance.random() < 0.01:
                assert not ledger.arrive(came % 65536, number, 10)
                copies += 1
        if number == 100_000:
            assert ledger.give_up(number)[0] >= 500
            late = number + 1
    ledger.close()
    assert ledger.duplicated == copies
    assert ledger.received_bytes == 10 * ledger.received
    assert ledger.received == ledger.series.times().round_trip.count
    assert ledger.lost == ledger.sent - ledger.received


def test_what_comes_of_earlier_messages_is_not_counted() -> None:
    ledger = Ledger(number_bytes=2, first=500)
    ledger.depart(0, 0)
    assert not ledger.arrive(499, 1, 10)
    assert ledger.arrive(500, 2, 10)
    ledger.close()
    assert not ledger.arrive(500, 3, 10)
    ledger.arrive_corrupt()
    assert (ledger.received, ledger.duplicated, ledger.corrupt, ledger.upcoming) == (1, 0, 0, 501)


def test_an_acknowledgement_may_come_before_its_message_is_known() -> None:
    ledger = Ledger()
    early, late = ledger.depart(0, 0), ledger.depart(0, 0)
    ledger.acknowledged_by_broker(1, 5)
    ledger.await_acknowledgement(early, 1, 10)
    ledger.await_acknowledgement(late, 2, 10)
    assert (ledger.acknowledged, ledger.unacknowledged) == (1, 1)
    ledger.acknowledged_by_broker(2, 7)
    ledger.arrive(1, 9, 10)
    ledger.close()
    assert (ledger.acknowledged, ledger.acknowledged_lost, ledger.lost) == (2, 1, 1)
