"""Levels as a person reads them: one alone, one in a sentence, and all of a case."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from tierbench.api.quantity import format_size, parse_size
from tierbench.results.units import BINARY_SIZES, DECIMAL_SIZES, in_three_digits, words

_USUAL: Final = {
    "concurrency": "1",
    "cacheState": "Natural",
    "tls": "None",
    "content": "Random",
    "encryption": "None",
    "compression": "None",
    "pairs": "1",
    "streams": "1",
    "together": "Alone",
    "image": "default",
    "codec": "None",
    "partitions": "1",
    "lingerMilliseconds": "0",
    "batchSize": "1Mi",
}
_PHRASES: Final = {("together", "Alone"): "alone", ("together", "AllAtOnce"): "all at once"}
_SIZES: Final = ("fileSize", "payloadSize")
_WORDS: Final = {
    "concurrency": "x{}",
    "pairs": "x{}",
    "streams": "x{}",
    "partitions": "{} partitions",
    "lingerMilliseconds": "linger {} ms",
    "batchSize": "batches of {}",
    "image": "image {}",
}


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
    return in_three_digits(number, BINARY_SIZES if "i" in show_level(factor, like) else DECIMAL_SIZES)


def is_size(factor: str) -> bool:
    """Whether the levels of a factor are numbers of bytes."""
    return "size" in factor.lower()


def level_in_words(factor: str, level: str) -> str:
    """A level as a sentence names it: 512 MB, concurrency 4, cache state Warm, all at once."""
    if (factor, level) in _PHRASES:
        return _PHRASES[factor, level]
    shown = show_level(factor, level)
    name = words(factor)
    if is_size(factor) or shown.lower().startswith(name.lower()):
        return shown
    return f"{name if name.isupper() else name.lower()} {shown}"


def levels_in_short(levels: Mapping[str, str]) -> str:
    """The levels that tell a case from the usual: `1Gi Cold TLSv1.3 x4`."""
    said = [levels["broker"]] if "broker" in levels else []
    said += [levels[name] for name in _SIZES if name in levels]
    for name, level in levels.items():
        if name in {"broker", "access", *_SIZES} or _USUAL.get(name) == level:
            continue
        said.append(_WORDS.get(name, "{}").format(level))
    return " ".join(said)
