"""Whether two estimates differ by more than chance. Nothing here assumes equal variances."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb, sqrt
from typing import Final, TypeVar

from tierbench.advice.estimate import Estimate, satterthwaite, smaller_is_better
from tierbench.results.statistics import CONFIDENCE, student_distribution, student_quantile

SIGNIFICANCE: Final = 1 - CONFIDENCE
_ROUNDING: Final = 1e-9
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Difference:
    """`first` minus `second` by Welch's t-test (Biometrika 34, 1947)."""

    first: Estimate
    second: Estimate

    @property
    def value(self) -> float:
        """The difference of the means."""
        return self.first.mean - self.second.mean

    @cached_property
    def error(self) -> float | None:
        """Its standard error."""
        if self.first.error is None or self.second.error is None:
            return None
        return sqrt(self.first.error**2 + self.second.error**2)

    @cached_property
    def degrees(self) -> float:
        """The degrees of freedom of its error."""
        return satterthwaite([((item.error or 0) ** 2, item.degrees) for item in (self.first, self.second)])

    @property
    def interval(self) -> tuple[float, float] | None:
        """Its 95 % confidence interval."""
        if self.error is None:
            return None
        half = student_quantile((1 + CONFIDENCE) / 2, self.degrees) * self.error if self.error else 0.0
        return self.value - half, self.value + half

    @property
    def p(self) -> float:
        """Two-sided; 1 if an error is not known.

        Where no value of either varies there is no t: then that of the permutation test of values that lie wholly
        apart (Pitman, Supplement to the Journal of the Royal Statistical Society 4, 1937).
        """
        if self.error is None or not self.value:
            return 1.0
        if not self.error:
            return min(1.0, 2 / comb(self.first.size + self.second.size, self.first.size))
        return 2 * (1 - student_distribution(abs(self.value) / self.error, self.degrees))


def adjusted(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """p-values that hold for all comparisons together (Holm, Scandinavian Journal of Statistics 6, 1979)."""
    found: dict[Key, float] = {}
    least = 0.0
    for rank, key in enumerate(sorted(p_values, key=lambda key: p_values[key])):
        least = max(least, min(1.0, p_values[key] * (len(p_values) - rank)))
        found[key] = least
    return found


Pair = tuple[str, str]


def pairs(names: Iterable[str]) -> list[Pair]:
    """Every two of them."""
    return list(combinations(names, 2))


@dataclass(frozen=True)
class Contest:
    """Classes compared in one place. `p` has the adjusted p-value of each pair, `quantity` says which way is better."""

    quantity: str
    estimates: Mapping[str, Estimate]
    p: Mapping[Pair, float]

    def p_between(self, first: str, second: str) -> float:
        """The adjusted p-value of a pair, in either order."""
        return self.p[(first, second) if (first, second) in self.p else (second, first)]

    def beats(self, first: str, second: str) -> bool:
        """Whether `first` is shown to be better than `second`."""
        sign = 1 if smaller_is_better(self.quantity) else -1
        ahead = sign * (self.estimates[second].mean - self.estimates[first].mean) > 0
        return ahead and self.p_between(first, second) <= SIGNIFICANCE + _ROUNDING

    @property
    def ranked(self) -> tuple[str, ...]:
        """The classes by their means, the best first."""
        sign = 1 if smaller_is_better(self.quantity) else -1
        return tuple(sorted(self.estimates, key=lambda name: sign * self.estimates[name].mean))

    @property
    def leaders(self) -> tuple[str, ...]:
        """The classes that no other is shown to be better than. A sole leader is better than every other: whoever
        beats one is beaten in turn, up to the leader, and adjusted p-values hold together."""
        return tuple(
            name
            for name in self.estimates
            if not any(self.beats(other, name) for other in self.estimates if other != name)
        )


def contests(places: Mapping[Key, Mapping[str, Estimate]], quantity: str) -> dict[Key, Contest]:
    """A contest a place; p-values are adjusted for all pairs of all places."""
    raw = {
        (place, pair): Difference(found[pair[0]], found[pair[1]]).p
        for place, found in places.items()
        for pair in pairs(found)
    }
    together = adjusted(raw)
    return {
        place: Contest(quantity, found, {pair: together[place, pair] for pair in pairs(found)})
        for place, found in places.items()
    }
