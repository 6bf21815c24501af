"""The parts of the engine: content, envelope, runs, and output."""

import fcntl
import io
import json
import resource
import select
import socket
import struct
from base64 import b64decode
from collections.abc import Callable, Iterator
from threading import Event, Thread
from time import monotonic_ns
from typing import Any

import pytest

from images.paho.src.tierbench_paho.connection import Connection
from images.paho.src.tierbench_paho.envelope import COMPRESSIONS, Codec, CorruptError
from tests.paho.engine import HANG_SECONDS
from tierbench_engine import run as module
from tierbench_engine.content import Content
from tierbench_engine.pipe import ARRIVED, SENT, Pipe
from tierbench_engine.run import Run, Window
from tierbench_engine.waiting import select_any

ACCEPTED = b"\x20\x02\x00\x00"
OF_256_MIB = b"\x30\xff\xff\xff\x7f"
MILLISECOND = 1_000_000
RECORD = struct.Struct("<HHIQq")


def content(size: int, entries: int) -> Content:
    noise = b"".join(bytes([entry % 256]) * size for entry in range(entries))
    return Content(memoryview(noise), entries, [size])


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("key", [None, bytes(16)])
def test_codec_decodes_messages_and_refuses_corrupt_ones(compression: str, key: bytes | None) -> None:
    codec, plain = Codec(compression, key), b"0123456789" * 100
    encoded = codec.encode(plain)
    assert codec.decode(encoded) == plain
    if key is not None or compression.startswith("Gzip"):
        with pytest.raises(CorruptError):
            codec.decode(encoded[:-9] + bytes(9))
    if compression == "None" and key is None:
        assert encoded is plain


@pytest.mark.parametrize("size", [2, 8, 9, 100, 1024])
def test_content_recognizes_a_message_by_its_number_and_its_bytes(size: int) -> None:
    known = content(size, 1 if size <= 8 else 200)
    for number in (0, 1, 255, 70_000):
        message = known.message(number)
        assert len(message) == size
        assert known.number(message) == number % 256 ** min(size, 8)
        assert known.number(message + b"x") is None
        assert known.message(number, 2) == message[:2]
        if size > 8:
            assert known.number(message[:-1] + bytes([message[-1] ^ 1])) is None
            assert known.number(known.message(number + 1)[:8] + message[8:]) is None


def test_own_messages_are_sent_in_turn() -> None:
    entries = [b"first one", b"second, the largest", b"third one!"]
    known = Content(memoryview(b"".join(entries)), 3, [len(entry) for entry in entries])
    for number in range(7):
        message = known.message(number)
        assert message == number.to_bytes(8, "big") + entries[number % 3][8:]
        assert known.number(message) == number
        assert known.number(message[:-1]) is known.number(message[:8]) is None
    assert known.largest == len(entries[1])


def make_run(**changes: Any) -> Run:
    asked = {"topic": "t", "first": 10, "messages": 100, "bytes": 0, "startNanoseconds": 0, "intervalNanoseconds": 0}
    asked |= {"untilNanoseconds": 0, "window": 100, "frees": "Arrival", "back": 0, "unacknowledged": 0}
    return Run({**asked, **changes}, content(100, 1))


def test_messages_leave_when_they_are_due_and_delayed_ones_leave_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, sent = 1000, []

    def sleep_until(moment: int, _stop: Event) -> None:
        nonlocal now
        now = max(now, moment)

    def send(number: int, begun: int) -> None:
        nonlocal now
        assert begun == now
        sent.append((number, now))
        now += 22 * MILLISECOND if len(sent) == 11 else 0

    monkeypatch.setattr(module, "_sleep_until", sleep_until)
    monkeypatch.setattr(module, "monotonic_ns", lambda: now)
    one = make_run(startNanoseconds=2000, intervalNanoseconds=5 * MILLISECOND)
    assert one.send_all(send) == 100
    due = [2000 + number * 5 * MILLISECOND for number in range(100)]
    free = due[10] + 22 * MILLISECOND
    assert sent == [(10 + place, moment if place <= 10 else max(free, moment)) for place, moment in enumerate(due)]


@pytest.mark.parametrize(
    ("frees", "back"),
    [
        ("Arrival", lambda one, number: one.arrived(number)),
        ("Acknowledgement", lambda one, number: one.acknowledged(number)),
        ("Write", lambda one, _: one.written()),
    ],
)
def test_window_limits_the_messages_in_flight(frees: str, back: Any) -> None:
    one, sent = make_run(window=3, frees=frees), []

    def send(number: int, _begun: int) -> None:
        sent.append(number)
        if len(sent) % 3 == 0:
            for came in sent[-3:]:
                back(one, came)

    assert one.send_all(send) == 100
    sent.clear()
    one.stop.set()
    assert one.send_all(lambda number, _: sent.append(number)) == 0


def test_duplicate_frees_the_window_only_once() -> None:
    window, stop = Window(1), Event()
    assert window.take(0, stop)
    window.out(7)
    window.back(7)
    window.back(7)
    assert window.take(0, stop)
    assert not window.take(monotonic_ns() + MILLISECOND, stop)


def test_run_ends_at_its_time_or_by_a_stop_and_continues_after_a_release() -> None:
    full = make_run(window=2, untilNanoseconds=monotonic_ns() + 20 * MILLISECOND)
    assert full.send_all(lambda *_: None) == 2
    stopped, released = make_run(window=2), make_run(window=2, messages=4)
    for one, end, sent in ((stopped, stopped.stop.set, 2), (released, released.release, 4)):
        counted: list[int] = []
        thread = Thread(target=lambda one=one, counted=counted: counted.append(one.send_all(lambda *_: None)))
        thread.start()
        while thread.is_alive():
            end()
            thread.join(0.01)
        assert counted[0] <= sent
    assert counted == [4]


def test_missing_acknowledgement_holds_up_the_next_message() -> None:
    one = make_run(unacknowledged=1, untilNanoseconds=monotonic_ns() + 20 * MILLISECOND)
    assert one.send_all(lambda *_: None) == 1
    many = make_run(unacknowledged=1)
    assert many.send_all(lambda number, _: many.acknowledged(number)) == 100


def test_pipe_writes_events_in_batches_before_the_next_line() -> None:
    out = io.BytesIO()
    pipe = Pipe(out)
    for number in range(1500):
        pipe.event(SENT, 3, number, 2**62, 10)
    pipe.event(ARRIVED, 4, 7, 5)
    assert not out.getvalue()
    pipe.write({"id": 1})
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) < 64 << 10
    records = [RECORD.unpack(record) for line in lines[:-1] for record in struct.iter_unpack("24s", _events(line))
               for record in record]  # fmt: skip
    assert records == [*((SENT, 3, 10, number, 2**62) for number in range(1500)), (ARRIVED, 4, 0, 7, 5)]
    assert json.loads(lines[-1]) == {"id": 1}
    pipe.flush()
    assert out.getvalue().splitlines() == lines


def _events(line: bytes) -> bytes:
    return b64decode(json.loads(line)["events"])


@pytest.fixture
def beyond_select() -> Iterator[Callable[[socket.socket], socket.socket]]:
    """Yields a function that gives a socket another number, which select(2) does not support."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield lambda one: socket.socket(fileno=fcntl.fcntl(one.fileno(), fcntl.F_DUPFD, 1024))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_select_any_waits_for_files_of_any_number(beyond_select: Callable[[socket.socket], socket.socket]) -> None:
    one, other = socket.socketpair()
    with one, other, beyond_select(one) as same, beyond_select(other) as peer:
        with pytest.raises(ValueError, match="out of range"):
            select.select([same], [], [], 0)
        assert select_any([same], [], [], 0) == ([], [], [])
        assert select_any([same, peer], [same], [], 0) == ([], [same], [])
        other.send(b"x")
        assert select_any([same], [], [], 1) == ([same], [], [])
        assert select_any([same, peer], [same], [], 1) == ([same], [same], [])
        one.recv(1)
        other.shutdown(socket.SHUT_RDWR)
        assert select_any([same], [], [], 1) == ([same], [], [])
    with pytest.raises(ValueError, match="negative"):
        select_any([one], [], [], 0)


def test_packet_longer_than_any_message_ends_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        asked = {"connection": 1, "name": "client", "host": host, "port": port, "tls": "None", "username": ""}
        asked |= {"delivery": "AtMostOnce", "compression": "None", "encryption": "None"}
        connection = Connection(asked, content(1024, 1), Pipe(io.BytesIO()))
        opening = Thread(target=connection.connect)
        opening.start()
        peer, _ = listener.accept()
        with peer:
            peer.settimeout(HANG_SECONDS)
            peer.recv(1024)
            peer.sendall(ACCEPTED + OF_256_MIB)
            assert not peer.recv(1024), "the connection waits for the rest"
        opening.join()
        connection.close()
