"""Sizes and quantities in the notation of Kubernetes.

`kubernetes.utils.quantity` is not used: importing it loads the whole client, which nothing pure here may, it takes
`NaN`, `-1` and `1_000` for quantities, and it has no shortest notation of a size.
"""

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
_SCALES: Final = {"n": 1e-9, "u": 1e-6, "m": 1e-3, **_FACTORS, "P": 10**15, "E": 10**18, "Pi": 2**50, "Ei": 2**60}
_SIZE: Final = re.compile(QUANTITY_PATTERN)
_QUANTITY: Final = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)(n|u|m|k|[MGTPE]|[KMGTPE]i)?")


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


def distinct(sizes: tuple[str, ...]) -> tuple[str, ...]:
    """The sizes without those that equal an earlier one: 1024 after 1Ki."""
    first: dict[int, str] = {}
    for size in sizes:
        first.setdefault(parse_size(size), size)
    return tuple(first.values())


def format_size(size: int) -> str:
    """The shortest exact notation: 1048576 is 1Mi, 1000000 is 1M, 1500 is 1500."""
    for suffix in ("Ti", "Gi", "Mi", "Ki", "T", "G", "M", "k"):
        if size and size % _FACTORS[suffix] == 0:
            return f"{size // _FACTORS[suffix]}{suffix}"
    return str(size)


def parse_quantity(text: str) -> float:
    """A resource quantity of a node (`3800m`, `16384Ki`, `2`, `1e3`) as a number of its base unit.

    Raises:
        ValueError: `text` is no quantity.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:32]!r} is not a quantity")
    number, suffix = match.groups()
    return float(number) * _SCALES[suffix or ""]
