"""Numbers as a person reads them. The name of a quantity ends with its unit, as everywhere in the API."""

import re
from dataclasses import dataclass
from functools import lru_cache
from math import log10
from typing import Final

from tierbench.api.quantity import format_size, parse_size
from tierbench.results import display

DASH: Final = "–"
_WHOLE_DIGITS: Final = 2


@dataclass(frozen=True)
class Unit:
    """A unit: how many base units it is, and its symbol."""

    factor: float
    symbol: str


_TIME: Final = (Unit(1, "ns"), Unit(1e3, "µs"), Unit(1e6, "ms"), Unit(1e9, "s"))
_DECIMAL: Final = ("", "k", "M", "G", "T")
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti")


def _ladder(prefixes: tuple[str, ...], base: int, symbol: str) -> tuple[Unit, ...]:
    return tuple(Unit(float(base**power), prefix + symbol) for power, prefix in enumerate(prefixes))


_LADDERS: Final[tuple[tuple[str, tuple[Unit, ...]], ...]] = (
    ("Nanoseconds", _TIME),
    ("BytesPerSecond", _ladder(_DECIMAL, 1000, "B/s")),
    ("BitsPerSecond", _ladder(_DECIMAL, 1000, "bit/s")),
    ("MessagesPerSecond", (Unit(1, "msg/s"), Unit(1e3, "k msg/s"), Unit(1e6, "M msg/s"))),
    ("PerSecond", _ladder(_DECIMAL, 1000, "/s")),
    ("Bytes", _ladder(_BINARY, 1024, "B")),
    ("PerTrialPartsPerMillion", (Unit(1e6, "a trial"),)),
    ("PartsPerMillion", (Unit(1e4, "%"),)),
)


def ladder(quantity: str) -> tuple[Unit, ...]:
    """The units that `quantity` is shown in, ascending."""
    return next((units for suffix, units in _LADDERS if quantity.endswith(suffix)), (Unit(1, ""),))


def unit_for(quantity: str, value: float) -> Unit:
    """The largest unit that leaves at least 1 before the point."""
    units = ladder(quantity)
    return next((unit for unit in reversed(units) if abs(value) >= unit.factor), units[0])


def _decimals(number: float) -> int:
    whole = len(str(int(abs(number))))
    return 2 if whole <= _WHOLE_DIGITS else max(0, _WHOLE_DIGITS + 2 - whole)


def show(quantity: str, value: float | None) -> str:
    """`value` of `quantity` with its unit: 22.1 s, 97.0 MB/s, 512 MiB."""
    if value is None:
        return DASH
    if quantity.endswith("Nanoseconds"):
        return display.duration(value)
    if quantity.endswith("BytesPerSecond"):
        return display.byte_rate(value)
    unit = unit_for(quantity, value)
    number = value / unit.factor
    return f"{number:.{0 if number == round(number) else _decimals(number)}f} {unit.symbol}".rstrip()


def show_with_deviation(quantity: str, mean: float, deviation: float | None) -> str:
    """Mean and standard deviation in one unit: 22.11 ± 0.05 s."""
    numbers, symbol = _together(quantity, mean, deviation)
    return f"{' ± '.join(numbers)} {symbol}".rstrip()


def show_interval(quantity: str, mean: float, low: float, high: float) -> str:
    """A mean and its interval in one unit: 22.11 s (22.07 to 22.15)."""
    numbers, symbol = _together(quantity, mean, low, high)
    return f"{numbers[0]} {symbol}".rstrip() + f" ({numbers[1]} to {numbers[2]})"


def _together(quantity: str, first: float, *others: float | None) -> tuple[list[str], str]:
    unit = unit_for(quantity, first)
    decimals = _decimals(first / unit.factor)
    return [f"{value / unit.factor:.{decimals}f}" for value in (first, *others) if value is not None], unit.symbol


def percent(share: float | None) -> str:
    """A share as a person reads it: 12 %, 0.4 %; a dash if it is not known."""
    if share is None:
        return DASH
    return f"{100 * share:.0f} %" if 100 * share >= 1 or not share else f"{100 * share:.2g} %"


def tick(quantity: str, value: float) -> str:
    """`value` as short as an axis wants it: 10 ms, 1 s."""
    unit = unit_for(quantity, value)
    return f"{value / unit.factor:g} {unit.symbol}".rstrip() if value else "0"


_TITLES: Final = {
    "durationNanoseconds": "Transfer time",
    "firstByteNanoseconds": "Time to the first byte",
    "connectNanoseconds": "Connection",
    "roundTripNanoseconds": "Round trip",
    "sessionNanoseconds": "Whole session",
    "throughputMessagesPerSecond": "Messages a second",
    "wireThroughputBytesPerSecond": "On the wire a second",
    "retriesPerTrialPartsPerMillion": "Retries",
    "wireBytes": "On the wire",
    "encodedPartsPerMillion": "Left by compression",
    "brokerCpuPartsPerMillion": "CPU of the broker's process",
    "throughputBitsPerSecond": "Throughput",
    "uploadBitsPerSecond": "Upload",
    "downloadBitsPerSecond": "Download",
    "fairnessPartsPerMillion": "Fairness (Jain's index)",
    "retransmits": "TCP segments sent again",
    "tcpNotOpenPartsPerMillion": "TCP not in state Open",
    "lostPartsPerMillion": "UDP packets lost",
    "pingNanoseconds": "Ping",
    "pingLostPartsPerMillion": "Echo requests not answered",
    "iperf3CpuPartsPerMillion": "CPU of the iperf3 server",
    "serverDeviceReadBytes": "Read from the server's disk",
}
_SUFFIX: Final = re.compile(
    "PerTrialPartsPerMillion$|(?:Bytes|Bits|Messages)?(?:PerSecond)$|Nanoseconds$|Bytes$|PartsPerMillion$"
)


def words(name: str) -> str:
    """A camelCase name in words: `cacheState` is Cache state."""
    spaced = re.sub(r"(?<=[a-z0-9])([A-Z])", r" \1", name).lower()
    return {"tls": "TLS", "file size": "File size"}.get(spaced, spaced[:1].upper() + spaced[1:])


_PERCENTILES: Final = {"P50": "median", "P90": "90th percentile", "P99": "99th percentile"}


def title(quantity: str) -> str:
    """What a quantity is called."""
    for name, word in _PERCENTILES.items():
        if name in quantity:
            return f"{title(quantity.replace(name, '', 1))}, {word}"
    return _TITLES.get(quantity) or words(_SUFFIX.sub("", quantity) or quantity)


@lru_cache(maxsize=4096)
def number_of_level(level: str) -> float | None:
    """The number that a level is, if it is one."""
    try:
        return float(parse_size(level))
    except ValueError:
        return None


def show_level(factor: str, level: str) -> str:
    """A level alone: 512 MB, 4, Warm."""
    if number_of_level(level) is None:
        return level
    text = format_size(int(level)) if level.isdigit() and is_size(factor) else level
    match = re.fullmatch(r"(\d+)([A-Za-z]*)", text)
    if match is None or not (match[2] or is_size(factor)):
        return text
    return f"{match[1]} {match[2]}B"


def show_number(factor: str, number: float, like: str) -> str:
    """A number between levels, in three digits and with prefixes as the level `like` has them: 152 MB, 3.2."""
    if not is_size(factor):
        return f"{number:.3g}"
    base, prefixes = (1024, _BINARY) if "i" in show_level(factor, like) else (1000, _DECIMAL)
    unit = next(unit for unit in reversed(_ladder(prefixes, base, "B")) if number >= unit.factor)
    return f"{number / unit.factor:.{max(0, 2 - int(log10(number / unit.factor)))}f} {unit.symbol}"


def is_size(factor: str) -> bool:
    """Whether the levels of a factor are numbers of bytes."""
    return "size" in factor.lower()


def level_in_words(factor: str, level: str) -> str:
    """A level as a sentence names it: 512 MB, concurrency 4, cache state Warm."""
    shown = show_level(factor, level)
    name = words(factor)
    if is_size(factor) or shown.lower().startswith(name.lower()):
        return shown
    return f"{name if name.isupper() else name.lower()} {shown}"
