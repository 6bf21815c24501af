"""Numbers as a person reads them. The name of a quantity ends with its unit, as everywhere in the API."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import floor, log10
from typing import Final

from tierbench.kinds.registry import BenchmarkKind, kinds

DASH: Final = "–"
_DIGITS: Final = 3
_WHOLE_DIGITS: Final = 2
_SMALL: Final = 0.1


@dataclass(frozen=True)
class Unit:
    """A unit: how many base units it is, and its symbol."""

    factor: float
    symbol: str


_SECOND: Final = Unit(1e9, "s")
_DECIMAL: Final = ("", "k", "M", "G", "T")
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti")


def _ladder(prefixes: tuple[str, ...], base: int, symbol: str) -> tuple[Unit, ...]:
    return tuple(Unit(float(base**power), prefix + symbol) for power, prefix in enumerate(prefixes))


DECIMAL_SIZES: Final = _ladder(_DECIMAL, 1000, "B")
BINARY_SIZES: Final = _ladder(_BINARY, 1024, "B")

_TIMES_AND_RATES: Final = {
    "Nanoseconds": (Unit(1, "ns"), Unit(1e3, "µs"), Unit(1e6, "ms"), _SECOND),
    "BytesPerSecond": _ladder(_DECIMAL, 1000, "B/s"),
    "BitsPerSecond": _ladder(_DECIMAL, 1000, "bit/s"),
    "MessagesPerSecond": (Unit(1, "msg/s"), Unit(1e3, "k msg/s"), Unit(1e6, "M msg/s")),
}
_LADDERS: Final = {
    **_TIMES_AND_RATES,
    "PerSecond": _ladder(_DECIMAL, 1000, "/s"),
    "BytesPerMessage": (Unit(1, "B"),),
    "Bytes": BINARY_SIZES,
    "PerTrialPartsPerMillion": (Unit(1e6, "a trial"),),
    "PerMessagePartsPerMillion": (Unit(1e6, ""),),
    "PartsPerMillion": (Unit(1e4, "%"),),
}
"""The units that a quantity is shown in, ascending, by how its name ends."""


def unit_for(quantity: str, value: float) -> Unit:
    """The largest unit that leaves at least 1 before the point."""
    units = next((units for suffix, units in _LADDERS.items() if quantity.endswith(suffix)), (Unit(1, ""),))
    return _largest(units, value)


def _largest(units: Sequence[Unit], value: float) -> Unit:
    return next((unit for unit in reversed(units) if abs(value) >= unit.factor), units[0])


def show(quantity: str, value: float | None) -> str:
    """`value` of `quantity` with its unit: 22.10 s, 97.0 MB/s, 512 MiB."""
    if value is None:
        return DASH
    for suffix, units in _TIMES_AND_RATES.items():
        if quantity.endswith(suffix):
            return in_three_digits(value, units)
    unit = unit_for(quantity, value)
    number = value / unit.factor
    return f"{number:.{0 if number == round(number) else _decimals(number)}f} {unit.symbol}".rstrip()


def in_three_digits(value: float, units: Sequence[Unit]) -> str:
    """34.2 ms, 84.0 MB/s; seconds to hundredths, as papers print them: 12.78 s.

    The unit is that of the rounded value: 999.9 ms is 1.00 s.
    """
    rounded = abs(float(f"{value:.{_DIGITS}g}"))
    unit = _largest(units, rounded)
    whole = rounded / unit.factor
    decimals = 2 if unit == _SECOND else max(0, _DIGITS - 1 - floor(log10(whole))) if whole >= 1 else 0
    return f"{value / unit.factor:.{decimals}f} {unit.symbol}"


def _decimals(number: float) -> int:
    if 0 < abs(number) < _SMALL:
        return _DIGITS - 1 - floor(log10(abs(number)))
    whole = len(str(int(abs(number))))
    return 2 if whole <= _WHOLE_DIGITS else max(0, _WHOLE_DIGITS + 2 - whole)


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
    "connectNanoseconds": "Connection",
    "overallThroughputBytesPerSecond": "All bytes by all time",
    "retriesPerTrialPartsPerMillion": "Retries",
    "serverDeviceReadBytes": "Read from the server's disk",
}
"""Those of quantities that several kinds of benchmark have."""
_SUFFIX: Final = re.compile(
    "PerTrialPartsPerMillion$|(?:Bytes|Bits|Messages)?(?:PerSecond)$|Nanoseconds$|Bytes$|PartsPerMillion$"
)


def words(name: str) -> str:
    """A camelCase name in words: `cacheState` is Cache state."""
    spaced = re.sub(r"(?<=[a-z0-9])([A-Z])", r" \1", name).lower()
    return {"tls": "TLS", "file size": "File size"}.get(spaced, spaced[:1].upper() + spaced[1:])


def in_sentence(name: str) -> str:
    """Words as they stand within a sentence: payload size, TLS."""
    return name if name.isupper() else name[:1].lower() + name[1:]


_PERCENTILES: Final = {"P50": "median", "P90": "90th percentile", "P99": "99th percentile"}


def title(quantity: str) -> str:
    """What a quantity is called."""
    for name, word in _PERCENTILES.items():
        if name in quantity:
            return f"{title(quantity.replace(name, '', 1))}, {word}"
    return _titles(kinds()).get(quantity) or words(_SUFFIX.sub("", quantity) or quantity)


@cache
def _titles(every: tuple[BenchmarkKind, ...]) -> Mapping[str, str]:
    return _TITLES | {name: text for kind in every for name, text in kind.measures.titles.items()}


def join_words(parts: Sequence[str], word: str = "and") -> str:
    """A list in words."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}" if parts else ""
