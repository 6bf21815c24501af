"""The plan of a benchmark: its spec becomes cases, numbered the same way in every run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Final

from tierbench.api.benchmark import BenchmarkSpec, Order, OrderType


@dataclass(frozen=True)
class Factor:
    """What a benchmark varies, and the values it takes."""

    name: str
    levels: tuple[str, ...]


STANDALONE: Final = "Standalone"
EXTERNAL: Final = "external"


@dataclass(frozen=True)
class Slot:
    """A place for a server: the `ordinal`-th node, from 0, of a class; EXTERNAL if it is there already.

    `levels` are those of the factors that say which server it is, `provider` brings it up.
    """

    node_class: str
    ordinal: int
    levels: tuple[tuple[str, str], ...] = ()
    provider: str = STANDALONE

    @property
    def external(self) -> bool:
        """Whether the server is not ours."""
        return self.provider == EXTERNAL


@dataclass(frozen=True)
class Case:
    """One combination of levels, server slot and client class included. `number` counts from 1."""

    number: int
    server: Slot
    client_class: str
    levels: Mapping[str, str]


def slots(spec: BenchmarkSpec) -> tuple[Slot, ...]:
    """Every place that hosts the server, in the order of the spec."""
    return tuple(
        Slot(node_class, ordinal)
        for node_class in spec.servers.node_classes
        for ordinal in range(spec.servers.nodes_per_class)
    )


def plan(spec: BenchmarkSpec, places: Sequence[Slot], factors: Callable[[Slot], Sequence[Factor]]) -> tuple[Case, ...]:
    """All cases in the order of the spec; the last factor varies fastest. `factors` are those of a place's server."""
    combinations = (
        (slot, client_class, dict(slot.levels) | levels)
        for slot, client_class in product(places, spec.clients.in_turn)
        for levels in _levels(factors(slot))
    )
    return tuple(Case(number, *combination) for number, combination in enumerate(combinations, start=1))


def _levels(factors: Sequence[Factor]) -> Iterator[dict[str, str]]:
    names = [factor.name for factor in factors]
    for levels in product(*(factor.levels for factor in factors)):
        yield dict(zip(names, levels, strict=True))


def in_order(cases: Sequence[Case], order: Order) -> tuple[Case, ...]:
    """The cases as they run: those of one slot together, so that a server is deployed once."""
    if order.type is OrderType.SEQUENTIAL:
        return tuple(cases)
    random = Random(order.seed)  # noqa: S311 (an order, not a secret)
    blocks: dict[Slot, list[Case]] = {}
    for case in cases:
        blocks.setdefault(case.server, []).append(case)
    places = list(blocks)
    random.shuffle(places)
    for place in places:
        random.shuffle(blocks[place])
    return tuple(case for place in places for case in blocks[place])
