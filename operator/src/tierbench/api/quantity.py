"""Whole-number sizes in the notation of Kubernetes quantities."""

import re
from typing import Final

from tierbench.api.model import QUANTITY_PATTERN

_FACTORS: Final = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
_SIZE: Final = re.compile(QUANTITY_PATTERN)


def parse_size(text: str | int) -> int:
    """The number of bytes that a size names.

    Raises:
        ValueError: `text` is no whole-number quantity.
    """
    word = str(text)
    match = _SIZE.match(word)
    if match is None:
        raise ValueError(f"{word!r} is not a size: write a whole number of bytes, as in 512Ki, 1Mi or 5Gi")
    suffix = match.group(1) or ""
    return int(word.removesuffix(suffix)) * _FACTORS[suffix]


def format_size(size: int) -> str:
    """The shortest exact notation: 1048576 is 1Mi, 1000000 is 1M, 1500 is 1500."""
    for suffix in ("Ti", "Gi", "Mi", "Ki", "T", "G", "M", "k"):
        if size and size % _FACTORS[suffix] == 0:
            return f"{size // _FACTORS[suffix]}{suffix}"
    return str(size)


def parse_quantity(text: str) -> float:
    """A resource quantity of a node (`3800m`, `16384Ki`, `2`) as a number of its base unit.

    Raises:
        ValueError: `text` is no quantity.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(m|k|M|G|T|Ki|Mi|Gi|Ti)?", text)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity")
    number, suffix = float(match.group(1)), match.group(2) or ""
    return number / 1000 if suffix == "m" else number * _FACTORS[suffix]
