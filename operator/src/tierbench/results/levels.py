"""Levels as a person reads them: one alone, one in a sentence, and all of a case."""

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Final

from tierbench.api.quantity import format_size, parse_size
from tierbench.kinds.registry import BenchmarkKind, FactorTraits, kinds
from tierbench.results.units import BINARY_SIZES, DECIMAL_SIZES, in_three_digits, words

_RATIO: Final = "Ratio"
_FACTORS: Final = {
    "nodeClass": FactorTraits(names=True),
    "clientClass": FactorTraits(names=True),
    "accessNetwork": FactorTraits(names=True),
    "client": FactorTraits(names=True),
    "tls": FactorTraits(usual="None"),
    "image": FactorTraits(usual="default", words="image {}"),
}
"""Factors of several kinds of benchmark."""
_UNKNOWN: Final = FactorTraits()


def factor_of(name: str) -> FactorTraits:
    """How the levels of a factor are read."""
    return _factors(kinds()).get(name, _UNKNOWN)


@cache
def _factors(every: tuple[BenchmarkKind, ...]) -> Mapping[str, FactorTraits]:
    return _FACTORS | {name: factor for kind in every for name, factor in kind.factors.items()}


@lru_cache(maxsize=4096)
def number_of_level(level: str) -> float | None:
    """The number that a level is, if it is one: of `Ratio30` the 30 % that compression leaves."""
    try:
        return float(parse_size(level.removeprefix(_RATIO)))
    except ValueError:
        return None


def are_numbers(factor: str, levels: Iterable[str]) -> bool:
    """Whether all levels of a factor are numbers."""
    return not factor_of(factor).names and all(number_of_level(level) is not None for level in levels)


def show_level(factor: str, level: str) -> str:
    """A level alone: 512 MB, 4, Warm."""
    if not are_numbers(factor, (level,)):
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
    return in_three_digits(number, BINARY_SIZES if "i" in show_level(factor, like) else DECIMAL_SIZES)


def is_size(factor: str) -> bool:
    """Whether the levels of a factor are numbers of bytes."""
    return "size" in factor.lower()


def is_share(levels: Iterable[str]) -> bool:
    """Whether levels are shares of a whole, in percent: Ratio10 to Ratio90."""
    return all(level.startswith(_RATIO) for level in levels)


def level_in_words(factor: str, level: str) -> str:
    """A level as a sentence names it: 512 MB, concurrency 4, cache state Warm, all at once."""
    phrase = factor_of(factor).phrases.get(level)
    if phrase is not None:
        return phrase
    shown = show_level(factor, level)
    name = words(factor)
    if is_size(factor) or shown.lower().startswith(name.lower()):
        return shown
    return f"{name if name.isupper() else name.lower()} {shown}"


def levels_in_short(levels: Mapping[str, str]) -> str:
    """The levels that tell a case from the usual: `1Gi Cold TLSv1.3 x4`."""
    first = [name for name in _factors(kinds()) if name in levels and factor_of(name).first]
    said = [levels[name] for name in first]
    for name, level in levels.items():
        factor = factor_of(name)
        if name not in {"access", *first} and factor.usual != level:
            said.append(factor.words.format(level))
    return " ".join(said)
