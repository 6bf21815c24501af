"""Two sets of results, place by place: has something changed, and for the worse?"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tierbench.advice.contests import SIGNIFICANCE, Difference, adjusted
from tierbench.advice.derived import with_quantities
from tierbench.advice.estimate import Estimate, estimate, smaller_is_better
from tierbench.advice.matrix import Cell
from tierbench.advice.workload import Levels, same
from tierbench.api.result import BenchmarkResult

Place = tuple[str, str, Levels]
"""Server class (empty where classes are compared), client class and levels."""


@dataclass(frozen=True)
class Change:
    """What lies between `first` and `second` at one place; `p` is adjusted for all places."""

    server: str
    client: str
    levels: Mapping[str, str]
    quantity: str
    difference: Difference
    p: float

    @property
    def first(self) -> Estimate:
        """The first of the two."""
        return self.difference.first

    @property
    def second(self) -> Estimate:
        """The second of the two."""
        return self.difference.second

    @property
    def share(self) -> float | None:
        """The second less the first, as a share of the first; None if that is 0."""
        return -self.difference.value / self.first.mean if self.first.mean else None

    @property
    def shown(self) -> bool:
        """Whether there is more than chance between them."""
        return self.p <= SIGNIFICANCE

    def worse(self, tolerance: float = 0) -> bool:
        """Whether the second is shown to be worse, by more than a share of the first."""
        sign = -1 if smaller_is_better(self.quantity) else 1
        beyond = sign * self.difference.value > tolerance * abs(self.first.mean)
        return self.shown and beyond


def compare(
    first: Iterable[BenchmarkResult], second: Iterable[BenchmarkResult], quantity: str, *, classes: bool = False
) -> tuple[Change, ...]:
    """Every place that both have. With `classes` it is two server classes that are compared."""
    ones, others = _places(first, quantity, classes), _places(second, quantity, classes)
    found: dict[Place, Difference] = {}
    for place in ones:
        one, other = estimate(ones[place], quantity), estimate(others.get(place, Cell(())), quantity)
        if one is not None and other is not None:
            found[place] = Difference(one, other)
    p = adjusted({place: difference.p for place, difference in found.items()})
    return tuple(
        Change(server, client, ones[server, client, levels].results[0].spec.levels, quantity, difference, p[place])
        for place, difference in found.items()
        for server, client, levels in [place]
    )


def _places(results: Iterable[BenchmarkResult], quantity: str, classes: bool) -> dict[Place, Cell]:
    found: dict[Place, list[BenchmarkResult]] = {}
    for result in results:
        spec = result.spec
        levels = tuple(sorted((name, same(level)) for name, level in spec.levels.items()))
        server = "" if classes else spec.server.node_class
        found.setdefault((server, spec.client.node_class, levels), []).append(with_quantities(result, [quantity]))
    return {place: Cell(tuple(group)) for place, group in found.items()}
