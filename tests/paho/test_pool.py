"""Every message is another one: what compresses many of them together finds nothing to share."""

import zlib
from pathlib import Path

import pytest
import zstandard

from images.paho.src.tierbench_paho.contract import FailureError
from images.paho.src.tierbench_paho.payload import CONTENTS, contents
from images.paho.src.tierbench_paho.pool import POOL_BYTES, Pool

SIZES = (2, 1024, 10_240, 100_000, 1_000_000)


def gzip(plain: bytes) -> int:
    return len(zlib.compress(plain, 6, wbits=31))


def zstd(plain: bytes) -> int:
    return len(zstandard.ZstdCompressor(level=3).compress(plain))


@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("size", SIZES)
def test_content_has_its_size_and_comes_again(kind: str, size: int) -> None:
    assert len(contents(kind, size, 3, 1)) == 3 * size
    assert contents(kind, size, 3, 1) == contents(kind, size, 3, 1)


@pytest.mark.parametrize("percent", range(10, 100, 10))
@pytest.mark.parametrize(("size", "messages"), [(1024, 16), (10_240, 1), (100_000, 1), (1_000_000, 1)])
def test_a_ratio_is_what_both_compressors_reach(percent: int, size: int, messages: int) -> None:
    """Of a message of 1 KiB alone what a compressor says of itself is up to 7 %, so a batch of them is looked at."""
    plain = contents(f"Ratio{percent}", size, messages, 7)
    for compress in (gzip, zstd):
        assert 100 * compress(plain) / len(plain) == pytest.approx(percent, abs=2)


def test_random_does_not_compress_and_sensor_records_do() -> None:
    assert gzip(contents("Random", 10_000, 1, 1)) > 9_990
    assert 0.05 < gzip(contents("SensorJSON", 10_000, 1, 1)) / 10_000 < 0.4


@pytest.mark.parametrize("size", [1024, 10_240, 1_000_000])
def test_a_batch_compresses_like_its_messages(size: int) -> None:
    """Of as many bytes as the largest batch has."""
    for kind, least, most in (("Random", 0.99, 1.01), ("Ratio50", 0.48, 0.52)):
        pool = Pool.of_kind(kind, size, 1)
        batch = b"".join(pool.message(number) for number in range(POOL_BYTES // size))
        for compress in (gzip, zstd):
            assert least < compress(batch) / len(batch) < most


@pytest.mark.parametrize("size", [1024, 100_000])
@pytest.mark.parametrize("kind", ["Random", "SensorJSON", "Ratio10"])
def test_none_comes_twice_within_the_pool(kind: str, size: int) -> None:
    pool = Pool.of_kind(kind, size, 1)
    messages = -(-POOL_BYTES // size)
    assert len({pool.message(number)[8:] for number in range(messages)}) == messages
    assert pool.message(messages)[8:] == pool.message(0)[8:]


@pytest.mark.parametrize("size", [2, 8, 9, 100, 1024])
def test_a_message_is_known_by_its_number_and_by_all_of_its_bytes(size: int) -> None:
    pool = Pool.of_kind("Random", size, 1)
    for number in (0, 1, 255, 70_000):
        message = pool.message(number)
        assert len(message) == size
        assert pool.number(message) == number % 256 ** min(size, 8)
        assert pool.number(message + b"x") is None
        if size > 8:
            assert pool.number(message[:-1] + bytes([message[-1] ^ 1])) is None
            assert pool.number(pool.message(number + 1)[:8] + message[8:]) is None


def mounted(tmp_path: Path, messages: dict[str, bytes]) -> Path:
    """A folder as a kubelet mounts a ConfigMap: its files are links into one that it replaces as a whole."""
    folder = tmp_path / "sensor-messages"
    (folder / "..2026_01_01").mkdir(parents=True)
    (folder / "..data").symlink_to("..2026_01_01")
    for name, message in messages.items():
        (folder / "..data" / name).write_bytes(message)
        (folder / name).symlink_to(f"..data/{name}")
    return folder


def test_messages_of_a_folder_come_in_turn_by_name(tmp_path: Path) -> None:
    given = {"b": b"second, the largest", "a.json": b"first one", "c": b"third one!", "B": b"capital first"}
    pool = Pool.of_folder(mounted(tmp_path, given))
    wanted = [b"capital first", b"first one", b"second, the largest", b"third one!", b"capital first"]
    for number, content in enumerate(wanted):
        message = pool.message(number)
        assert message == number.to_bytes(8, "big") + content[8:]
        assert pool.number(message) == number
        assert pool.number(pool.message(number + 1)[:8] + message[8:]) is None
        assert pool.number(message[:-1]) is pool.number(message[:8]) is None
    assert pool.largest[8:] == b"second, the largest"[8:]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "sensor-messages has no messages"),
        ({"a": b"long enough", "short": b"8 bytes."}, "short of sensor-messages has 8 bytes"),
    ],
)
def test_a_folder_that_holds_no_messages_is_refused(tmp_path: Path, given: dict[str, bytes], says: str) -> None:
    with pytest.raises(FailureError, match=says) as raised:
        Pool.of_folder(mounted(tmp_path, given))
    assert raised.value.reason == "MessagesUnusable"
