"""Numbers and cases as a person reads them: the one place for units."""

import math
from collections.abc import Mapping
from typing import Final

USUAL_LEVELS: Final = {
    "concurrency": "1",
    "cacheState": "Natural",
    "tls": "None",
    "content": "Random",
    "encryption": "None",
    "compression": "None",
    "pairs": "1",
    "streams": "1",
    "codec": "None",
    "partitions": "1",
    "lingerMilliseconds": "0",
    "batchSize": "1Mi",
}
_SIZES: Final = ("fileSize", "payloadSize")
_WORDS: Final = {
    "concurrency": "x{}",
    "pairs": "x{}",
    "streams": "x{}",
    "partitions": "{} partitions",
    "lingerMilliseconds": "linger {} ms",
    "batchSize": "batches of {}",
}
_TIMES: Final = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
_BYTE_RATES: Final = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s"))
_BIT_RATES: Final = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1, "bit/s"))
_MESSAGE_RATES: Final = ((1e6, "M msg/s"), (1e3, "k msg/s"), (1, "msg/s"))
_DIGITS: Final = 3


def duration(nanoseconds: float) -> str:
    """34.2 ms, 812 µs: three significant digits; seconds to hundredths, as papers print them: 12.78 s."""
    return _scaled(nanoseconds, _TIMES)


def byte_rate(bytes_per_second: float) -> str:
    """84.0 MB/s: three significant digits."""
    return _scaled(bytes_per_second, _BYTE_RATES)


def bit_rate(bits_per_second: float) -> str:
    """94.1 Mbit/s: three significant digits."""
    return _scaled(bits_per_second, _BIT_RATES)


def rate(quantity: str, per_second: float) -> str:
    """A rate in the unit that the quantity's name ends with: 84.0 MB/s, 12.3 k msg/s."""
    if quantity.endswith("MessagesPerSecond"):
        return _scaled(per_second, _MESSAGE_RATES)
    return bit_rate(per_second) if quantity.endswith("BitsPerSecond") else byte_rate(per_second)


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """The unit is that of the rounded value: 999.9 ms is 1.00 s."""
    rounded = abs(float(f"{value:.{_DIGITS}g}"))
    factor, unit = next((item for item in units if rounded >= item[0]), units[-1])
    return f"{value / factor:.{2 if unit == 's' else _decimals(rounded / factor)}f} {unit}"


def _decimals(rounded: float) -> int:
    return max(0, _DIGITS - 1 - math.floor(math.log10(rounded))) if rounded >= 1 else 0


def case_words(levels: Mapping[str, str]) -> str:
    """The levels that tell a case from the usual: `1Gi Cold TLSv1.3 x4`."""
    words = [levels["broker"]] if "broker" in levels else []
    words += [levels[name] for name in _SIZES if name in levels]
    for name, level in levels.items():
        if name in {"broker", "access", *_SIZES} or USUAL_LEVELS.get(name) == level:
            continue
        words.append(_WORDS.get(name, "{}").format(level))
    return " ".join(words)
