"""The columns of a long table of results: which there are, and what a cell of each may hold."""

import re
from collections.abc import Mapping
from functools import cache
from math import isfinite
from typing import Final

from tierbench.api.contract import Computer, Outcome
from tierbench.api.quantity import parse_size
from tierbench.kinds.registry import BENCHMARKS
from tierbench.results.levels import is_size
from tierbench.results.quantities import names

PLACES: Final = (
    "namespace", "kind", "benchmark", "run", "case", "serverClass", "serverNode", "clientClass", "clientNode",
    "clientAccessNetwork",
)  # fmt: skip
"""What was measured, and where."""
OF_A_TRIAL: Final = ("trial", "warmup", "outcome", "failure", "startTime")
TRIALS: Final = "trials"
"""Of a mean: how many trials it is of."""
DEVIATION: Final = "StandardDeviation"
"""After the name of a quantity: of a mean, the sample standard deviation."""
_LONGER_UNITS: Final = {
    "Nanoseconds": {"Microseconds": 1e3, "Milliseconds": 1e6, "Seconds": 1e9},
    "BitsPerSecond": {"KilobitsPerSecond": 1e3, "MegabitsPerSecond": 1e6, "GigabitsPerSecond": 1e9},
    "BytesPerSecond": {"KilobytesPerSecond": 1e3, "MegabytesPerSecond": 1e6},
    "PartsPerMillion": {"Percent": 1e4},
}
_SIDES: Final = tuple(
    f"{side}{name[0].upper()}{name[1:]}"
    for side in ("client", "server")
    for name in ("cpuLimitMillicores", *(field.alias or name for name, field in Computer.model_fields.items()))
)
_WHOLE: Final = frozenset({"run", "case", "trial", TRIALS})
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "warmup": ("true", "false"),
    "outcome": tuple(Outcome),
}
_CAMEL_CASE: Final = re.compile(r"[a-z][A-Za-z0-9]*")
_REASON: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_LONGEST_NAME: Final = 253
_LONGEST: Final = 63
_MOST: Final = {"trial": 1000}
_MOST_AT_ALL: Final = 10**9
_HOW: Final = "write names as `export` does: kind, benchmark, serverClass, clientClass, payloadSize, durationSeconds"


def check_columns(columns: list[str]) -> None:
    """Refuses names that no table has.

    Raises:
        ValueError: one is none, is there twice, or `kind` is missing.
    """
    for number, column in enumerate(columns, start=1):
        if not _CAMEL_CASE.fullmatch(column):
            raise ValueError(f"column {number}: {column!r} is no column: {_HOW}")
        if column in columns[: number - 1]:
            raise ValueError(f"column {number}: there are two columns {column}: leave out one")
    if "kind" not in columns:
        raise ValueError(f"no column kind: it says of each row which benchmark it is of, {' or '.join(BENCHMARKS)}")


@cache
def quantities_of(kind: str) -> Mapping[str, tuple[str, float]]:
    """The columns that hold a quantity of a kind: which one, and what a number there is multiplied with."""
    found: dict[str, tuple[str, float]] = {name: (name, 1) for name in names(kind)}
    for name in names(kind):
        for unit, longer in _LONGER_UNITS.items():
            if name.endswith(unit):
                stem = name.removesuffix(unit)
                found |= {stem + other: (name, factor) for other, factor in longer.items() if stem + other not in found}
    return found


def is_passed_over(column: str) -> bool:
    """Whether `export` writes it and no result is made of it: the state of a computer, and of the network before."""
    return column in _SIDES or column.startswith("preflight")


def place(column: str, text: str) -> str:
    """What a cell of PLACES, OF_A_TRIAL or TRIALS holds.

    Raises:
        ValueError: that is not allowed there.
    """
    most = _MOST.get(column, _MOST_AT_ALL)
    if column in _WHOLE and not (text.isdecimal() and 0 < int(text) <= most):
        raise ValueError(f"{text!r} is not a number from 1 to {most}")
    if column == "failure" and not _REASON.fullmatch(text):
        raise ValueError(f"{text!r} is not one word as in TimedOut")
    allowed = tuple(BENCHMARKS) if column == "kind" else _WORDS.get(column)
    if allowed is not None and text not in allowed:
        raise ValueError(f"{text!r} is not {' or '.join(allowed)}")
    longest = _LONGEST if column.endswith(("Class", "Network")) else _LONGEST_NAME
    if len(text) > longest:
        raise ValueError(f"it is longer than {longest} characters")
    return text


def number(text: str) -> float:
    """What a cell of a quantity holds.

    Raises:
        ValueError: it is none, or less than 0.
    """
    try:
        value = int(text) if text.isdecimal() else float(text)
    except ValueError:
        value = -1
    if not isfinite(value) or value < 0:
        raise ValueError(f"{text!r} is not a number from 0 on, as in 5.53")
    return value


def level(kind: str, column: str, text: str) -> str:
    """What a cell of any other column holds: the level of a factor, or a condition.

    Raises:
        ValueError: the column is a quantity's, and the kind has none of that name; or it is no level.
    """
    elsewhere = any(column in names(other) for other in BENCHMARKS)
    if elsewhere or column.removesuffix(DEVIATION).endswith(tuple(_LONGER_UNITS)):
        raise ValueError(f"a {kind} has no such quantity; it has {', '.join(names(kind))}")
    if len(text) > _LONGEST:
        raise ValueError(f"a level has at most {_LONGEST} characters")
    if is_size(column):
        parse_size(text)
    return text
