"""A class from the nodes that stand for it.

At level l, node k of a class has the log mean y = μ_l + u_k + v_kl + e_kl: the class's own level, which is what is
asked for and of which nothing is assumed; how the node differs at every level, u ~ N(0, τ²); how it differs at this
one, v ~ N(0, ω²); and the noise of its trials. τ and ω have half-Cauchy priors (Gelman, Bayesian Analysis 1, 2006;
Polson and Scott, Bayesian Analysis 7, 2012) and are integrated out over a grid with the residual likelihood (Patterson
and Thompson, Biometrika 58, 1971), each class by itself.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import atan, exp, inf, log, pi, sqrt
from typing import Any, Final, NamedTuple

from tierbench.advice.inference.layer import Layer, Level, Solution
from tierbench.advice.inference.mixture import Mixture, Part, gathered, single
from tierbench.advice.inference.noise import Noise

TAU_SCALE: Final = 0.015
"""Half of all classes have nodes that differ by less than this (a standard deviation of logarithms)."""
OMEGA_SCALE: Final = 0.01
"""The same, of how a node differs at one level from how it does at all."""
_TAUS: Final = tuple(0.001 * 1000 ** (step / 19) for step in range(20))
_OMEGAS: Final = (0.0005, *(0.003 * (0.4 / 0.003) ** (step / 7) for step in range(8)))
_LEAST_WEIGHT: Final = 1e-5
BINS: Final = 16

Weights = Mapping[Any, float]
"""How much each level counts, by its key."""
Wanted = Sequence[tuple[int, float]]
"""Places of levels, and their weights."""


@dataclass(frozen=True, slots=True)
class Trials:
    """What the trials of one node at one level say: the logarithm of their mean, their variance by the squared mean,
    and how many there were.
    """

    log: float
    variance: float
    count: int


class _Spread(NamedTuple):
    """How nodes may differ: τ² and ω², and how far that is believed."""

    weight: float
    tau: float
    omega: float


def _prior(points: Sequence[float], scale: float) -> tuple[float, ...]:
    """The half-Cauchy probability between the geometric midpoints; the ends take the tails."""
    edges = [0.0, *(sqrt(a * b) for a, b in pairwise(points)), inf]
    below = [2 / pi * atan(edge / scale) for edge in edges]
    return tuple(b - a for a, b in pairwise(below))


_TAU_PRIOR: Final = _prior(_TAUS, TAU_SCALE)
_OMEGA_PRIOR: Final = _prior(_OMEGAS, OMEGA_SCALE)


class ClassModel:
    """One class: its nodes' trials at each level, and the noise of a trial there."""

    def __init__(self, trials: Mapping[Hashable, Mapping[str, Trials]], noise: Mapping[Hashable, Noise]) -> None:
        """Every level has a node and its noise."""
        nodes = {name: None for of in trials.values() for name in of}
        numbers = {name: number for number, name in enumerate(nodes)}
        self.nodes = len(numbers)
        self._places = {level: place for place, level in enumerate(trials)}
        self._noise = [noise[level] for level in trials]
        self._levels = [
            Level([(numbers[name], one.log, noise[level].variance / one.count) for name, one in of.items()], self.nodes)
            for level, of in trials.items()
        ]
        self._means = [level.mean for level in self._levels]
        self._solved: dict[float, list[tuple[_Spread, Solution]]] = {}

    def of_class(self, weights: Weights) -> Mixture:
        """The logarithm of Σ w exp(μ) over levels, for the class: the delta method, at each spread of the nodes.

        How a node differs everywhere does not average out over levels, the rest does.
        """
        wanted = self._wanted(weights)
        _, shares = _sum(wanted, self._means)
        parts = [self._part(spread, found, wanted) for spread, found in self._solutions(sum(p * p for p in shares))]
        return gathered(parts, BINS)

    def of_nodes(self, weights: Weights) -> Mixture:
        """The same for the nodes that were measured and no others, each counting equally: trial noise alone."""
        wanted = self._wanted(weights)
        centre, shares = _sum(wanted, self._means)
        noise = [
            share**2 * sum(self._levels[place].errors) / len(self._levels[place].errors) ** 2
            for (place, _), share in zip(wanted, shares, strict=True)
        ]
        return single(centre, sum(noise), self._unsure(wanted, noise))

    def _wanted(self, weights: Weights) -> list[tuple[int, float]]:
        return [(self._places[level], weight) for level, weight in weights.items() if weight]

    def _part(self, spread: _Spread, found: Solution, wanted: Wanted) -> Part:
        of_trials = found.layer.noise
        centre, shares = _sum(wanted, found.means)
        weights = [(place, share) for (place, _), share in zip(wanted, shares, strict=True)]
        noise = [share * share * of_trials[place] for place, share in weights]
        return Part(spread.weight, centre, found.variance(weights), self._unsure(wanted, noise))

    def _unsure(self, wanted: Wanted, noise: Sequence[float]) -> float:
        return sum([q * q / self._noise[place].degrees for (place, _), q in zip(wanted, noise, strict=True)])

    def _solutions(self, concentration: float) -> list[tuple[_Spread, Solution]]:
        """The class at few spreads that stand for all: those of about the same τ² + ω²Σp² taken together."""
        if concentration not in self._solved:
            few = _few(self._posterior, concentration)
            self._solved[concentration] = [(each, self._layers[each.omega].solve(each.tau)) for each in few]
        return self._solved[concentration]

    @cached_property
    def _layers(self) -> dict[float, Layer]:
        """By ω²; with one level τ is all there is."""
        squares = [omega**2 for omega in _OMEGAS] if len(self._levels) > 1 else [0.0]
        return {square: Layer(self._levels, self.nodes, square) for square in squares}

    @cached_property
    def _posterior(self) -> list[_Spread]:
        """The spreads of the grid that are believed at all."""
        found = [
            _Spread(log(belief * prior) + layer.log_likelihood(tau**2), tau**2, omega)
            for (omega, layer), belief in zip(self._layers.items(), _OMEGA_PRIOR, strict=False)
            for tau, prior in zip(_TAUS, _TAU_PRIOR, strict=True)
        ]
        most = max(each.weight for each in found)
        likely = [each._replace(weight=exp(each.weight - most)) for each in found]
        floor = _LEAST_WEIGHT * sum(each.weight for each in likely)
        total = sum(each.weight for each in likely if each.weight >= floor)
        return [each._replace(weight=each.weight / total) for each in likely if each.weight >= floor]


def _few(spreads: Sequence[_Spread], concentration: float) -> list[_Spread]:
    """At most BINS spreads, each for those of about the same τ² + ω² · concentration."""
    sizes = [spread.tau + spread.omega * concentration for spread in spreads]
    low = min(sizes)
    scale = (BINS - 1e-9) / max(log(max(sizes) / low), 1e-9)
    groups: dict[int, list[_Spread]] = {}
    for spread, size in zip(spreads, sizes, strict=True):
        groups.setdefault(int(scale * log(size / low)), []).append(spread)
    return [_average(group, concentration) for group in groups.values()]


def _average(group: Sequence[_Spread], concentration: float) -> _Spread:
    """Their mean τ² + ω² · concentration, with an ω of the grid, the next below their mean."""
    weight = sum(each.weight for each in group)
    tau = sum(each.weight * each.tau for each in group) / weight
    omega = sum(each.weight * each.omega for each in group) / weight
    on_grid = max(each.omega for each in group if each.omega <= omega * (1 + 1e-9))
    return _Spread(weight, tau + (omega - on_grid) * concentration, on_grid)


def _sum(wanted: Wanted, means: Sequence[float]) -> tuple[float, list[float]]:
    """log Σ w exp(m) over the levels that are wanted, and the share of each term."""
    most = max([means[place] for place, _ in wanted])
    terms = [weight * exp(means[place] - most) for place, weight in wanted]
    total = sum(terms)
    return most + log(total), [term / total for term in terms]
