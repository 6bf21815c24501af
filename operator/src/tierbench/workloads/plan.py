"""The plan of a benchmark: the spec becomes cases, with the same numbers in every run, and blocks of trials."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf
from random import Random
from typing import Final

from tierbench.api.benchmark import BenchmarkSpec, ClientPlacement
from tierbench.api.contract import MAXIMUM_TRIALS
from tierbench.api.link import LINK, Link
from tierbench.api.model import IMAGE, OWN_IMAGE
from tierbench.api.run_policy import Order, OrderType, trials_of_passes
from tierbench.api.trial_plan import MAXIMUM_TARGETS


@dataclass(frozen=True)
class Factor:
    """A factor of a benchmark and its levels. With `prepared`, a server is prepared for all levels before it starts.

    `unless` is the name and a level of an earlier factor: cases with this level do not have the factor.
    """

    name: str
    levels: tuple[str, ...]
    prepared: bool = False
    unless: tuple[str, str] | None = None


STANDALONE: Final = "Standalone"
EXTERNAL: Final = "external"


@dataclass(frozen=True)
class ServerPlacement:
    """The place of a server: node number `ordinal` of a class, counted from 0, or EXTERNAL.

    `levels` are those of the factors that the server decides. `provider` deploys the server.
    """

    node_class: str
    ordinal: int
    levels: tuple[tuple[str, str], ...] = ()
    provider: str = STANDALONE

    @property
    def external(self) -> bool:
        """Whether the server is outside the cluster and not deployed by tierbench."""
        return self.provider == EXTERNAL

    @property
    def image(self) -> str:
        """The name of the server's image."""
        return dict(self.levels).get(IMAGE, OWN_IMAGE)

    def serves(self, levels: Mapping[str, str]) -> bool:
        """Returns whether the server measures cases with these levels."""
        return dict(self.levels).items() <= levels.items()


@dataclass(frozen=True)
class Case:
    """One combination of levels, including the places of server and client. `number` counts from 1."""

    number: int
    server: ServerPlacement
    client: ClientPlacement
    levels: Mapping[str, str]

    @property
    def client_class(self) -> str:
        """The node class of the client, or of the first of several clients."""
        return self.client.node_class


def server_placements(spec: BenchmarkSpec) -> tuple[ServerPlacement, ...]:
    """Returns the places of servers, in the order of the spec."""
    return tuple(
        ServerPlacement(node_class, ordinal)
        for node_class in spec.servers.node_class_names
        for ordinal in range(spec.servers.nodes_per_class)
    )


def image_levels(images: Sequence[str]) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Returns the levels that distinguish servers with these images. There are none if no image is named."""
    return tuple(((IMAGE, name),) for name in images) or ((),)


def plan(
    spec: BenchmarkSpec, places: Sequence[ServerPlacement], factors: Callable[[ServerPlacement], Sequence[Factor]]
) -> tuple[Case, ...]:
    """Returns all cases in the order of the spec. The last factor varies fastest."""
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
    """Returns further cases than the `planned` ones: each combination of a client class and levels, with every server
    that serves them."""
    found = (
        (
            placement,
            ClientPlacement(client_class),
            dict(placement.levels)
            | {factor.name: levels[factor.name] for factor in factors(placement) if factor.name in levels},
        )
        for client_class, levels in combinations
        for placement in places
        if placement.serves(levels)
    )
    return tuple(Case(number, *combination) for number, combination in enumerate(found, start=planned + 1))


def _levels(factors: Sequence[Factor]) -> list[dict[str, str]]:
    combinations: list[dict[str, str]] = [{}]
    for factor in factors:
        combinations = [given | level for given in combinations for level in _further(factor, given)]
    return combinations


def _further(factor: Factor, given: Mapping[str, str]) -> list[dict[str, str]]:
    """Returns the levels of a factor in cases with the given levels of earlier factors."""
    if factor.unless is not None and factor.unless in given.items():
        return [{}]
    return [{factor.name: level} for level in factor.levels]


def link_factors(spec: BenchmarkSpec) -> tuple[Factor, ...]:
    """Returns the link as a factor. Without links there is none."""
    return (Factor(LINK, tuple(link.name for link in spec.links)),) if spec.links else ()


def link_of(spec: BenchmarkSpec, case: Case) -> Link | None:
    """Returns the link of a case. Returns None if it is the network as it is."""
    named = (link for link in spec.links if link.name == case.levels.get(LINK))
    return next((link for link in named if not link.is_direct), None)


def link_rate(spec: BenchmarkSpec, case: Case) -> float:
    """Returns the bits per second of the slower direction of a case's link; infinity if it has no rate."""
    link = link_of(spec, case)
    rates = () if link is None else (path.kilobits_per_second for path in link.paths)
    return min((1000 * rate for rate in rates if rate is not None), default=inf)


ServerGroup = tuple[ServerPlacement, ...]
"""Servers that are up at the same time, each on a node of its own."""


@dataclass(frozen=True)
class Block:
    """Cases that differ only in their server, so that their trials alternate.

    `servers` are all servers that are up meanwhile, including those of later blocks. `trials` are those of the pass,
    counted from 1.
    """

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
    warmup: int = 0,
) -> tuple[Block, ...]:
    """Returns the blocks of a run in order.

    In each pass, the blocks of one server group follow each other, so that each server is deployed once. Every other
    pass, including those `before`, takes the server groups backwards (ABBA), so that a steady drift affects all servers
    alike. The cases of a block are as many as one client can take, and print the trials of.
    """
    by_pass = trials_of_passes(repetitions, passes)
    most = max(min(MAXIMUM_TRIALS // (len(by_pass[0]) + warmup), MAXIMUM_TARGETS), 1)
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
    """Returns the trials of a block in order.

    Each repetition has one trial of every case, in a random order that differs between runs and blocks. This is a
    randomized complete block design (Fisher 1935): a drift during the block affects all of its cases alike.
    """
    numbers = [case.number for case in block.cases]
    random = Random(f"{seed}/{run}/{numbers[0]}")  # noqa: S311 (an order, not a secret)
    return tuple(
        ScheduledTrial(number, trial)
        for trial in range(1, repetitions + 1)
        for number in random.sample(numbers, len(numbers))
    )
