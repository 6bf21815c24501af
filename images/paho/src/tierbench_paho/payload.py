"""What messages carry. The same kind, size and seed give the same bytes."""

import hashlib
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from typing import Final

CONTENTS: Final = ("Random", "Zeros", "SensorJSON", *(f"Ratio{percent}" for percent in range(10, 100, 10)))

_SEGMENT_BYTES: Final = 1024  # of which a share is noise
_SENSORS: Final = 16
_FIRST_TIME: Final = datetime(2026, 1, 1)
_PERIOD: Final = timedelta(milliseconds=250)


def contents(kind: str, size: int, messages: int, seed: int) -> bytes:
    """So many messages of `size` bytes each, one behind another, of a kind that CONTENTS names."""
    if kind == "Zeros":
        return bytes(size * messages)
    if kind == "SensorJSON":
        return _sensor_json(size, messages, seed)
    noise = hashlib.shake_128(seed.to_bytes(8, "big") + size.to_bytes(8, "big")).digest(size * messages)
    return noise if kind == "Random" else _keep(noise, _mask(size, int(kind.removeprefix("Ratio"))) * messages)


def _mask(size: int, percent: int) -> bytes:
    """Of each segment a share of noise, which no compression makes smaller, and zeros, of which nothing remains."""
    segments = (min(_SEGMENT_BYTES, size - start) for start in range(0, size, _SEGMENT_BYTES))
    return b"".join((b"\xff" * (length * percent // 100)).ljust(length, b"\0") for length in segments)


def _keep(content: bytes, mask: bytes) -> bytes:
    kept = int.from_bytes(content, "big") & int.from_bytes(mask, "big")
    return kept.to_bytes(len(content), "big")


def _sensor_json(size: int, messages: int, seed: int) -> bytes:
    """Messages that are arrays of records, cut to size. The records continue from message to message."""
    records = _records(random.Random(seed))  # noqa: S311 (content, not a secret)
    parts: list[bytes] = []
    for _ in range(messages):
        text = "["
        while len(text) < size:
            text += next(records) + ","
        parts.append(text[:size].encode())
    return b"".join(parts)


def _records(noise: random.Random) -> Iterator[str]:
    """Sensors in turn, in a room that drifts."""
    temperature, humidity, pressure = 21.0, 45.0, 1013.0
    for number in count():
        temperature += noise.gauss(0, 1 / 10)
        humidity += noise.gauss(0, 1 / 5)
        pressure += noise.gauss(0, 1 / 20)
        time = (_FIRST_TIME + number * _PERIOD).isoformat(timespec="milliseconds")
        battery = 100 - number // 1000 % 100
        yield (
            f'{{"device":"sensor-{number % _SENSORS:02d}","time":"{time}Z","temperature":{temperature:.2f},'
            f'"humidity":{humidity:.2f},"pressure":{pressure:.2f},"battery":{battery},"status":"ok"}}'
        )
