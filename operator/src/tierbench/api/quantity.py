"""Sizes and quantities in the notation of Kubernetes: parsing, CEL rules, and the resources of containers.

`kubernetes.utils.quantity` is not used. Importing it loads the whole client, it accepts `NaN`, `-1` and `1_000`, and it
cannot format a size.
"""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.alias_generators import to_pascal

from tierbench.api.model import Model, Rule, rules

LONGEST_SIZE: Final = 18
MOST_SIZES: Final = 30
"""The maximum length of a list of sizes. API servers before 1.34 reject a rule that reads more than 31: see
`is_whole_number`."""
QUANTITY_PATTERN: Final = r"^[1-9][0-9]{0,14}(k|M|G|T|Ki|Mi|Gi|Ti)?$"

_DIGITS: Final = [str(digit) for digit in range(10)]
_UNITS: Final = ["k", "M", "G", "T"]
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
    """Returns the number of bytes of a size.

    Raises:
        ValueError: `text` is not a whole-number quantity.
    """
    word = str(text)
    match = _SIZE.match(word)
    if match is None:
        raise ValueError(f"{word!r} is not a size: write a whole number of bytes, as in 512Ki, 1Mi or 5Gi")
    suffix = match.group(1) or ""
    return int(word.removesuffix(suffix)) * _FACTORS[suffix]


def distinct(sizes: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the shortest notation of each size: 1Ki of 1024 and 1Ki."""
    shortest: dict[int, str] = {}
    for size in sizes:
        shortest[parse_size(size)] = min(size, shortest.get(parse_size(size), size), key=lambda text: (len(text), text))
    return tuple(shortest.values())


def format_size(size: int) -> str:
    """Returns the shortest exact notation: 1048576 is 1Mi, 1000000 is 1M, 1500 is 1500."""
    for suffix in ("Ti", "Gi", "Mi", "Ki", "T", "G", "M", "k"):
        if size and size % _FACTORS[suffix] == 0:
            return f"{size // _FACTORS[suffix]}{suffix}"
    return str(size)


def parse_quantity(text: str) -> float:
    """Returns a resource quantity (`3800m`, `16384Ki`, `2`, `1e3`) as a number of its base unit.

    Raises:
        ValueError: `text` is not a quantity.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:32]!r} is not a quantity")
    number, suffix = match.groups()
    return float(number) * _SCALES[suffix or ""]


def is_whole_number(value: str) -> str:
    """Returns the CEL expression that an int-or-string is a whole number of at least 1, optionally with a unit.

    The expression reads one character at a time, and has `in [int]` in place of `== int`. API servers before 1.34
    assume that an int-or-string has 3 MiB, whatever its maxLength. They reject a CustomResourceDefinition that reads
    all of it for each item of a list (ADR 0074).
    """
    size = f"size({value})"
    before, last = (f"{value}.charAt({size} - {distance})" for distance in (2, 1))
    unit = f"i == {size} - 1 && {value}.charAt(i) in {_UNITS}"
    unit += f" || i >= {size} - 2 && {before} in {[one.upper() for one in _UNITS]} && {last} in ['i']"
    character = f"i >= {size} || {value}.charAt(i) in {_DIGITS} || {unit}"
    whole = f"{value}.charAt(0) in {_DIGITS[1:]} && {list(range(LONGEST_SIZE))}.all(i, {character})"
    return f"(type({value}) in [int] ? {value} >= 1 : {whole})"


def quantity_of(value: str) -> str:
    """Returns the CEL expression for the quantity of an int-or-string."""
    return f"(type({value}) in [int] ? quantity('0').add({value}) : quantity({value}))"


def is_size(value: str, largest: str = "16Ti") -> str:
    """Returns the CEL expression that an int-or-string is a size of at most `largest`."""
    return f"{is_whole_number(value)} && {quantity_of(value)}.compareTo(quantity('{largest}')) <= 0"


def is_smaller(size: str, other: str) -> str:
    """Returns the CEL expression that a size is smaller than another one. It also holds if one of them is not a
    size."""
    less = f"{quantity_of(size)}.compareTo({quantity_of(other)}) < 0"
    return f"(!{is_whole_number(size)} || !{is_whole_number(other)} || {less})"


def _checked_size(text: str) -> str:
    parse_size(text)
    return text


Size = Annotated[
    str,
    Field(
        max_length=LONGEST_SIZE,
        description="A size in bytes as a whole-number quantity: 1048576, 512Ki, 1Mi, 5Gi, 5G.",
        json_schema_extra={"x-kubernetes-int-or-string": True}
        | rules(
            Rule(
                is_size("self"),
                "is not a size: write a whole number of bytes up to 16Ti, as in 1048576, 512Ki, 1Mi or 5Gi",
            )
        ),
    ),
    BeforeValidator(str),
    AfterValidator(_checked_size),
]

Cpu = Annotated[
    str,
    Field(
        max_length=8,
        description="CPU in cores or thousandths of a core: 2, 0.5, 500m.",
        json_schema_extra={"x-kubernetes-int-or-string": True}
        | rules(
            Rule(
                "(type(self) in [int] ? self >= 1 : isQuantity(self) && quantity(self).compareTo(quantity('1m')) >= 0)",
                'is not an amount of CPU: write cores or thousandths of one, as in 2, "0.5" or 500m',
            )
        ),
    ),
    BeforeValidator(str),
]


class Compute(Model):
    """CPU, memory and disk of a container."""

    cpu: Cpu | None = Field(default=None, description="CPU in cores or thousandths of a core: 2, 0.5, 500m.")
    memory: Size | None = Field(
        default=None, description="Memory of the program, including a Java heap and the page cache of its files."
    )
    ephemeral_storage: Size | None = Field(
        default=None,
        alias="ephemeral-storage",
        description="Disk of the node for logs and emptyDir volumes.",
    )


class Resources(Model):
    """Resource requests and limits of each container. They affect the numbers, so each result contains them."""

    requests: Compute = Field(default=Compute(), description="Resource requests. The defaults are small.")
    limits: Compute = Field(
        default=Compute(), description="Resource limits. Without a limit, the container can use all that the node has."
    )

    def parameters(self, side: str) -> dict[str, str]:
        """Returns the requests and limits that are set, by names that begin with `side`."""
        given = {"Requests": self.requests, "Limits": self.limits}
        return {
            f"{side}{part}{to_pascal(name)}": amount
            for part, compute in given.items()
            for name, amount in compute.model_dump(exclude_none=True).items()
        }


def _request_within_limit(name: str) -> Rule:
    """Returns the rule that the request of a resource is at most its limit."""
    field = name.replace("-", "__dash__")
    given = f"has(self.requests.{field}) && has(self.limits.{field})"
    asked, limit = (quantity_of(f"self.{part}.{field}") for part in ("requests", "limits"))
    return Rule(
        f"!({given}) || {asked}.compareTo({limit}) <= 0",
        f"requests.{name} is more than limits.{name}, and Kubernetes accepts no such pod: lower the request or raise "
        "the limit",
    )


REQUESTS_WITHIN_LIMITS: Final = rules(*map(_request_within_limit, ("cpu", "memory", "ephemeral-storage")))
