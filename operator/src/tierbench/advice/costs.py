"""What each factor costs: all its effects, and its knee; and of these what is worth a reader's first look. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tierbench.advice.effect_words import statement
from tierbench.advice.effects import Effect, effects
from tierbench.advice.factorial import factorial
from tierbench.advice.knee import Knee, knees
from tierbench.advice.matrix import RunResults
from tierbench.advice.words import SMALLEST_MARGIN
from tierbench.advice.workload import Item
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.registry import kind_of
from tierbench.results.quantities import main_quantity, rate_quantity

EVERYTHING: Final = (Item({}, 1),)
"""The workload of which every measured level is a part."""
_TRANSFER: Final = "durationNanoseconds"


@dataclass(frozen=True)
class Costs:
    """Of one quantity: effects, the largest first, and knees."""

    quantity: str
    effects: tuple[Effect, ...]
    knees: tuple[Knee, ...]

    @property
    def factors(self) -> frozenset[str]:
        """Those of which something is said."""
        return frozenset(each.factor for each in self.effects) | {knee.factor for knee in self.knees}


def sentences(found: Iterable[Costs]) -> list[str]:
    """One for each factor of each: its knee if it has one, else its largest effect. Effects that are shown first, the
    largest before others, and those of which nothing is shown last.
    """
    every: list[tuple[int, float, str]] = []
    for one in found:
        with_knee = {knee.factor for knee in one.knees}
        largest = {effect.factor: effect for effect in reversed(one.effects) if effect.factor not in with_knee}
        every += [(0 if effect.size else 2, -effect.size, statement(effect)) for effect in largest.values()]
        every += [(1, 0.0, str(knee)) for knee in one.knees]
    return [text for _, _, text in sorted(every, key=lambda each: each[:2])]


def costs(
    results: Iterable[BenchmarkResult],
    quantity: str,
    wanted: Sequence[Item] = EVERYTHING,
    margin: float = SMALLEST_MARGIN,
    without: Sequence[str] = (),
) -> Costs:
    """Of all factors that vary but those `without`, over what a workload asks for."""
    every = factorial(results, quantity, wanted)
    factors = [factor for factor in every.levels if factor not in without]
    return Costs(quantity, tuple(effects(every, factors, margin)), tuple(knees(every, factors, margin)))


def costs_of_run(run: RunResults, without: Sequence[str] = ()) -> tuple[Costs, ...]:
    """By the bytes or bits a second, by what its kind is read by first if the rate is not just one over it, and by
    what only costs compare.
    """
    kind = run.benchmark.kind
    rate = rate_quantity(kind).replace("Messages", "Bytes")
    there = {name for result in run.results for name in result.status.statistics}
    alone = [name for name in kind_of(kind).measures.costs if name in there]
    names = dict.fromkeys(name for name in (rate, main_quantity(kind, there), *alone) if name != _TRANSFER)
    return tuple(costs(run.results, name, without=() if name in alone else without) for name in names)
