"""The plan of a benchmark: its spec becomes cases, numbered the same way in every run."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Final

from tierbench.api.benchmark import BenchmarkSpec, ClientPlacement
from tierbench.api.model import IMAGE, OWN_IMAGE
from tierbench.api.run_policy import REFINABLE, Order, OrderType, shares


@dataclass(frozen=True)
class Factor:
    """What a benchmark varies, and the values it takes. With `prepared` a server is made ready for its levels
    before it starts.
    """

    name: str
    levels: tuple[str, ...]
    prepared: bool = False

    @property
    def refinable(self) -> bool:
        """Whether a run may take levels in between, too."""
        return self.name in REFINABLE


STANDALONE: Final = "Standalone"
EXTERNAL: Final = "external"


@dataclass(frozen=True)
class ServerPlacement:
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

    @property
    def image(self) -> str:
        """The name of its image."""
        return dict(self.levels).get(IMAGE, OWN_IMAGE)

    def serves(self, levels: Mapping[str, str]) -> bool:
        """Whether cases of these levels are measured with this server."""
        return dict(self.levels).items() <= levels.items()


@dataclass(frozen=True)
class Case:
    """One combination of levels, server slot and client seat included. `number` counts from 1."""

    number: int
    server: ServerPlacement
    client: ClientPlacement
    levels: Mapping[str, str]

    @property
    def client_class(self) -> str:
        """The class that its client is of, or the first of its clients."""
        return self.client.node_class


def server_placements(spec: BenchmarkSpec) -> tuple[ServerPlacement, ...]:
    """Every place that hosts the server, in the order of the spec."""
    return tuple(
        ServerPlacement(node_class, ordinal)
        for node_class in spec.servers.node_classes
        for ordinal in range(spec.servers.nodes_per_class)
    )


def image_levels(images: Sequence[str]) -> tuple[tuple[tuple[str, str], ...], ...]:
    """What tells apart servers of these images; nothing where none is named."""
    return tuple(((IMAGE, name),) for name in images) or ((),)


def plan(
    spec: BenchmarkSpec, places: Sequence[ServerPlacement], factors: Callable[[ServerPlacement], Sequence[Factor]]
) -> tuple[Case, ...]:
    """All cases in the order of the spec; the last factor varies fastest. `factors` are those of a place's server."""
    combinations = (
        (placement, seat, dict(placement.levels) | levels | dict(seat.levels))
        for placement, seat in product(places, spec.clients.placements)
        for levels in _levels(factors(placement))
    )
    return tuple(Case(number, *combination) for number, combination in enumerate(combinations, start=1))


def refinement_cases(
    planned: int,
    places: Sequence[ServerPlacement],
    factors: Callable[[ServerPlacement], Sequence[Factor]],
    combinations: Iterable[tuple[str, Mapping[str, str]]],
) -> tuple[Case, ...]:
    """Further cases than the `planned` ones: each combination of a client class and levels with every server of it."""
    found = (
        (
            placement,
            ClientPlacement(client_class),
            dict(placement.levels) | {factor.name: levels[factor.name] for factor in factors(placement)},
        )
        for client_class, levels in combinations
        for placement in places
        if placement.serves(levels)
    )
    return tuple(Case(number, *combination) for number, combination in enumerate(found, start=planned + 1))


def _levels(factors: Sequence[Factor]) -> Iterator[dict[str, str]]:
    names = [factor.name for factor in factors]
    for levels in product(*(factor.levels for factor in factors)):
        yield dict(zip(names, levels, strict=True))


MOST_TRIALS: Final = 160
"""Of a block: its client's log is to stay below what a kubelet keeps, and the operator reads."""

ServerGroup = tuple[ServerPlacement, ...]
"""Servers that are up at once, each on a node of its own."""


@dataclass(frozen=True)
class Block:
    """Cases that differ in nothing but where their server stands: their trials alternate. `team` are the servers that
    are up meanwhile, those of blocks to come included; `trials` are those of the pass that it is of, from 1."""

    servers: ServerGroup
    cases: tuple[Case, ...]
    trials: range
    pass_number: int
    last: bool


@dataclass(frozen=True)
class ScheduledTrial:
    """A trial of a case, by their numbers."""

    case: int
    trial: int


def plan_blocks(
    cases: Sequence[Case],
    server_groups: Sequence[ServerGroup],
    order: Order,
    repetitions: int,
    passes: int,
    before: int = 0,
) -> tuple[Block, ...]:
    """The cases as they run: in each pass those of one team together, so that it deploys a server once. Every other
    pass, counted with those `before`, takes the teams backwards (ABBA): a steady drift so falls on all alike."""
    by_pass = shares(repetitions, passes)
    most = max(MOST_TRIALS // len(by_pass[0]), 1)
    grouped = [(servers, _alike(servers, cases, most)) for servers in server_groups]
    if order.type is OrderType.RANDOM:
        random = Random(order.seed)  # noqa: S311 (an order, not a secret)
        random.shuffle(grouped)
        for _, groups in grouped:
            random.shuffle(groups)
    return tuple(
        Block(servers, group, trials, number, last=number == passes)
        for number, trials in enumerate(by_pass, start=1)
        for servers, groups in (grouped if (before + number) % 2 else reversed(grouped))
        for group in groups
    )


def _alike(servers: ServerGroup, cases: Sequence[Case], most: int) -> list[tuple[Case, ...]]:
    alike: dict[tuple[object, ...], list[Case]] = {}
    for case in cases:
        if case.server in servers:
            alike.setdefault((case.client, *sorted(case.levels.items())), []).append(case)
    return [tuple(found[start : start + most]) for found in alike.values() for start in range(0, len(found), most)]


def schedule_trials(block: Block, repetitions: int, seed: int, run: int) -> tuple[ScheduledTrial, ...]:
    """The trials of a block: in each repetition one of every case, in random order, another in each run and block.

    This is a randomised complete block design (Fisher 1935): what drifts during the block falls on all of its cases.
    """
    numbers = [case.number for case in block.cases]
    random = Random(f"{seed}/{run}/{numbers[0]}")  # noqa: S311 (an order, not a secret)
    return tuple(
        ScheduledTrial(number, trial)
        for trial in range(1, repetitions + 1)
        for number in random.sample(numbers, len(numbers))
    )
