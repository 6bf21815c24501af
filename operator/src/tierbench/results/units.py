"""Formats quantities and levels for people. The name of a quantity ends with its unit, as everywhere in the API."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import floor, log10
from typing import Final

from tierbench.api.quantity import format_size, parse_size
from tierbench.kinds.registry import BenchmarkKind, FactorTraits, kinds

DASH: Final = "–"
_DIGITS: Final = 3
_WHOLE_DIGITS: Final = 2
_SMALL: Final = 0.1
_RATIO: Final = "Ratio"


@dataclass(frozen=True)
class Unit:
    """A unit: the number of base units in it, and its symbol."""

    factor: float
    symbol: str


_SECOND: Final = Unit(1e9, "s")
_DECIMAL: Final = ("", "k", "M", "G", "T")
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti")


def _prefixed(prefixes: tuple[str, ...], base: int, symbol: str) -> tuple[Unit, ...]:
    return tuple(Unit(float(base**power), prefix + symbol) for power, prefix in enumerate(prefixes))


_TIMES_AND_RATES: Final = {
    "Nanoseconds": (Unit(1, "ns"), Unit(1e3, "µs"), Unit(1e6, "ms"), _SECOND),
    "BytesPerSecond": _prefixed(_DECIMAL, 1000, "B/s"),
    "BitsPerSecond": _prefixed(_DECIMAL, 1000, "bit/s"),
    "MessagesPerSecond": (Unit(1, "msg/s"), Unit(1e3, "k msg/s"), Unit(1e6, "M msg/s")),
}
_UNITS: Final = {
    **_TIMES_AND_RATES,
    "PerSecond": _prefixed(_DECIMAL, 1000, "/s"),
    "BytesPerMessage": (Unit(1, "B"),),
    "Bytes": _prefixed(_BINARY, 1024, "B"),
    "PerTrialPartsPerMillion": (Unit(1e6, "per trial"),),
    "PerMessagePartsPerMillion": (Unit(1e6, ""),),
    "PartsPerMillion": (Unit(1e4, "%"),),
}
"""The units of a quantity, ascending, by the end of its name. The first match applies."""
_TITLES: Final = {
    "durationNanoseconds": "Transfer time",
    "connectNanoseconds": "Connection",
    "overallThroughputBytesPerSecond": "All bytes by all time",
    "retriesPerTrialPartsPerMillion": "Retries",
    "serverDeviceReadBytes": "Read from the server's disk",
}
"""The titles of quantities that several kinds have."""
_PERCENTILES: Final = {"P50": "median", "P90": "90th percentile", "P99": "99th percentile"}
_SUFFIX: Final = re.compile(
    "PerTrialPartsPerMillion$|(?:Bytes|Bits|Messages)?(?:PerSecond)$|Nanoseconds$|Bytes$|PartsPerMillion$"
)
_FACTORS: Final = {
    "nodeClass": FactorTraits(names=True),
    "clientClass": FactorTraits(names=True),
    "accessNetwork": FactorTraits(names=True),
    "client": FactorTraits(names=True),
    "tls": FactorTraits(usual="None"),
    "image": FactorTraits(usual="default", words="image {}"),
    "link": FactorTraits(names=True, words="link {}"),
}
"""The factors that several kinds have."""
_UNKNOWN_FACTOR: Final = FactorTraits()


def unit_for(quantity: str, value: float) -> Unit:
    """Returns the largest unit in which the value is at least 1."""
    units = next((units for suffix, units in _UNITS.items() if quantity.endswith(suffix)), (Unit(1, ""),))
    return _largest(units, value)


def _largest(units: Sequence[Unit], value: float) -> Unit:
    return next((unit for unit in reversed(units) if abs(value) >= unit.factor), units[0])


def show(quantity: str, value: float | None) -> str:
    """Returns a value with its unit, such as 22.10 s, 97.0 MB/s or 512 MiB; a dash if it is None."""
    if value is None:
        return DASH
    for suffix, units in _TIMES_AND_RATES.items():
        if quantity.endswith(suffix):
            return _show_three_digits(value, units)
    unit = unit_for(quantity, value)
    number = value / unit.factor
    return _with_symbol(f"{number:.{0 if number == round(number) else _decimals(number)}f}", unit.symbol)


def _with_symbol(number: str, symbol: str) -> str:
    """Returns a number with its unit. A percent sign follows without a space."""
    return f"{number}{'' if symbol in {'', '%'} else ' '}{symbol}"


def _show_three_digits(value: float, units: Sequence[Unit]) -> str:
    """Returns a value in three digits, such as 34.2 ms. Seconds have two decimals, as papers print them: 12.78 s.

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
    """Returns a mean and its standard deviation in one unit, such as 22.11 ± 0.05 s."""
    numbers, symbol = _in_one_unit(quantity, mean, deviation)
    return _with_symbol(" ± ".join(numbers), symbol)


def show_interval(quantity: str, mean: float, low: float, high: float) -> str:
    """Returns a mean and its interval in one unit, such as 22.11 s (22.07–22.15)."""
    numbers, symbol = _in_one_unit(quantity, mean, low, high)
    return f"{_with_symbol(numbers[0], symbol)} ({numbers[1]}–{numbers[2]})"


def _in_one_unit(quantity: str, first: float, *others: float | None) -> tuple[list[str], str]:
    unit = unit_for(quantity, first)
    decimals = _decimals(first / unit.factor)
    return [f"{value / unit.factor:.{decimals}f}" for value in (first, *others) if value is not None], unit.symbol


def percent(share: float | None) -> str:
    """Returns a share in percent, such as 12% or 0.4%; a dash if it is None."""
    if share is None:
        return DASH
    return f"{100 * share:.0f}%" if 100 * share >= 1 or not share else f"{100 * share:.2g}%"


def tick(quantity: str, value: float) -> str:
    """Returns the label of a tick on an axis, such as 10 ms."""
    unit = unit_for(quantity, value)
    return _with_symbol(f"{value / unit.factor:g}", unit.symbol) if value else "0"


def title(quantity: str) -> str:
    """Returns the title of a quantity, such as "Transfer time, median"."""
    for name, word in _PERCENTILES.items():
        if name in quantity:
            return f"{title(quantity.replace(name, '', 1))}, {word}"
    return _titles(kinds()).get(quantity) or humanize(_SUFFIX.sub("", quantity) or quantity)


@cache
def _titles(every: tuple[BenchmarkKind, ...]) -> Mapping[str, str]:
    return _TITLES | {name: text for kind in every for name, text in kind.measures.titles.items()}


def humanize(name: str) -> str:
    """Returns a camelCase name as words: "Cache state" for `cacheState`."""
    spaced = re.sub(r"(?<=[a-z0-9])([A-Z])", r" \1", name).lower()
    return {"tls": "TLS", "file size": "File size"}.get(spaced, spaced[:1].upper() + spaced[1:])


def in_sentence(name: str) -> str:
    """Returns words as they are written within a sentence: payload size, TLS."""
    return name if name.isupper() else name[:1].lower() + name[1:]


def join_words(parts: Sequence[str], word: str = "and") -> str:
    """Returns a list as words, such as "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}" if parts else ""


def factor_traits(name: str) -> FactorTraits:
    """Returns how the levels of a factor are formatted and compared."""
    return _factors(kinds()).get(name, _UNKNOWN_FACTOR)


@cache
def _factors(every: tuple[BenchmarkKind, ...]) -> Mapping[str, FactorTraits]:
    return _FACTORS | {name: factor for kind in every for name, factor in kind.factors.items()}


@lru_cache(maxsize=4096)
def level_number(level: str) -> float | None:
    """Returns a level as a number, None if it is not one. `Ratio30`, what compression leaves, is 30."""
    try:
        return float(parse_size(level.removeprefix(_RATIO)))
    except ValueError:
        return None


def are_numbers(factor: str, levels: Iterable[str]) -> bool:
    """Whether all levels of a factor are numbers."""
    return not factor_traits(factor).names and all(level_number(level) is not None for level in levels)


def is_size(factor: str) -> bool:
    """Whether the levels of a factor are numbers of bytes."""
    return "size" in factor.lower()


def is_share(levels: Iterable[str]) -> bool:
    """Whether all levels are shares in percent: Ratio10 to Ratio90."""
    return all(level.startswith(_RATIO) for level in levels)


def show_level(factor: str, level: str) -> str:
    """Returns a level without its factor, such as 512 MB, 4 or Warm."""
    if not are_numbers(factor, (level,)):
        return level
    text = format_size(int(level)) if level.isdigit() and is_size(factor) else level
    match = re.fullmatch(r"(\d+)([A-Za-z]*)", text)
    if match is None or not (match[2] or is_size(factor)):
        return text
    return f"{match[1]} {match[2]}B"


def describe_level(factor: str, level: str) -> str:
    """Returns a level as a sentence names it, such as 512 MB, concurrency 4, or cache state Warm."""
    phrase = factor_traits(factor).phrases.get(level)
    if phrase is not None:
        return phrase
    shown = show_level(factor, level)
    name = humanize(factor)
    if is_size(factor) or shown.lower().startswith(name.lower()):
        return shown
    return f"{name if name.isupper() else name.lower()} {shown}"


def show_levels(levels: Mapping[str, str]) -> str:
    """Returns the levels of a case without the usual ones, such as `1Gi Cold TLSv1.3 x4`."""
    first = [name for name in _factors(kinds()) if name in levels and factor_traits(name).first]
    shown = [levels[name] for name in first]
    for name, level in levels.items():
        traits = factor_traits(name)
        if name not in {"access", *first} and traits.usual != level:
            shown.append(traits.words.format(level))
    return " ".join(shown)
