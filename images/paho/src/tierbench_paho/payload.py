"""What messages carry. The same kind, size and seed give the same bytes."""

import hashlib
import json
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import zstandard

CONTENTS: Final = ("Random", "Zeros", "SensorJSON", *(f"Ratio{percent}" for percent in range(10, 100, 10)))

_GZIP_LEVEL: Final = 6
_ZSTD_LEVEL: Final = 3
_SAMPLE_BYTES: Final = 128 * 1024
_ROUNDS: Final = 4
_FIRST_TIME: Final = datetime(2026, 1, 1, tzinfo=UTC)
_PERIOD: Final = timedelta(milliseconds=250)
_NOISE_BYTES: Final = 4  # of a record


def content(kind: str, size: int, seed: int) -> bytes:
    """`size` bytes of a kind that CONTENTS names."""
    if kind == "Random":
        return _noise(size, seed)
    if kind == "Zeros":
        return bytes(size)
    if kind == "SensorJSON":
        return _sensor_json(size, seed)
    return _ratio(int(kind.removeprefix("Ratio")), size, seed)


def _noise(size: int, seed: int) -> bytes:
    return hashlib.shake_128(seed.to_bytes(8, "big")).digest(size)


def _sensor_json(size: int, seed: int) -> bytes:
    """An array of records, cut to size."""
    parts: list[bytes] = []
    length = 0
    for record in _records(seed, size):
        text = ("," if parts else "[") + json.dumps(record, separators=(",", ":"))
        parts.append(text.encode())
        length += len(text)
        if length >= size:
            break
    return b"".join(parts)[:size]


def _records(seed: int, size: int) -> Iterator[dict[str, object]]:
    """Four sensors in turn, whose values drift: more records than `size` bytes hold."""
    noise = _noise(_NOISE_BYTES * (size + 1), seed)
    temperature, humidity = 2150, 480
    for number in range(size + 1):
        steps = noise[_NOISE_BYTES * number : _NOISE_BYTES * (number + 1)]
        temperature += steps[0] % 21 - 10
        humidity += steps[1] % 7 - 3
        at = _FIRST_TIME + number * _PERIOD
        yield {
            "device": f"sensor-{seed % 1000:03d}-{number % 4}",
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "temperature": temperature / 100,
            "humidity": humidity / 10,
            "pressure": 1013 + (steps[2] % 50) / 10,
            "battery": 3.6 + (steps[3] % 10) / 100,
            "status": "ok",
        }


def _ratio(percent: int, size: int, seed: int) -> bytes:
    """Noise before zeros: as much noise as makes the mean of gzip -6 and zstd -3 `percent` of the size."""
    noise = _noise(size, seed)
    sample = min(size, _SAMPLE_BYTES)
    wanted = sample * percent / 100
    noisy = round(wanted)
    for _ in range(_ROUNDS):
        noisy += round(wanted - _compressed(noise[:noisy] + bytes(sample - noisy)))
        noisy = min(max(noisy, 0), sample)
    noisy = round(noisy * size / sample)
    return noise[:noisy] + bytes(size - noisy)


def _compressed(plain: bytes) -> float:
    gzip = len(zlib.compress(plain, _GZIP_LEVEL, wbits=zlib.MAX_WBITS | 16))
    zstd = len(zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(plain))
    return (gzip + zstd) / 2
