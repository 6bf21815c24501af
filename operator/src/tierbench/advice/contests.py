"""Whether two estimates differ by more than chance. Nothing here assumes equal variances."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import comb, sqrt
from typing import Final, TypeVar

from tierbench.advice.estimate import Estimate, satterthwaite
from tierbench.results.statistics import CONFIDENCE, student_distribution, student_quantile

SIGNIFICANCE: Final = 1 - CONFIDENCE
_SHOWN_FROM: Final = 0.001
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


def chance(p: float) -> str:
    """A p-value in words."""
    return f"p < {_SHOWN_FROM}" if p < _SHOWN_FROM else f"p = {p:.2g}"
