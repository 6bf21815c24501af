"""A hierarchical model: the posterior of a class, which is a population of nodes, from those nodes that were measured.

At level l, node k of a class has the log mean y = μ_l + u_k + v_kl + e_kl. μ_l is the level of the class: it is wanted,
and nothing is assumed of it. u ~ N(0, τ²) is the deviation of the node at every level. v ~ N(0, ω²) is its deviation at
this level. e is the noise of its trials. τ and ω have half-Cauchy priors (Gelman, Bayesian Analysis 1, 2006; Polson and
Scott, Bayesian Analysis 7, 2012). The model integrates them out over a grid with the residual likelihood (Patterson and
Thompson, Biometrika 58, 1971), for each class by itself.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import atan, exp, inf, log, pi, sqrt
from statistics import fmean, variance
from typing import Any, Final, NamedTuple

from tierbench.stats.mixed_model import Fit, LevelReadings, MixedModel
from tierbench.stats.posterior import Component, Mixture, condense, student
from tierbench.stats.special import digamma, trigamma, trigamma_inverse

TAU_SCALE: Final = 0.015
"""The prior median of τ, a standard deviation of logarithms."""
OMEGA_SCALE: Final = 0.01
"""The prior median of ω, a standard deviation of logarithms."""
DEVIATIONS: Final = tuple(0.001 * 1000 ** (step / 19) for step in range(20))
"""The grid of τ: the standard deviations of logarithms that a model considers."""
_OMEGAS: Final = (0.0005, *(0.003 * (0.4 / 0.003) ** (step / 7) for step in range(8)))
_LEAST_WEIGHT: Final = 1e-5
BINS: Final = 16
_FEWEST_TO_SHRINK: Final = 4
_LEAST_EXCESS: Final = 0.001
_MOST_PRIOR_DEGREES: Final = 50.0

Weights = Mapping[Any, float]
"""The weight of each level, by its key."""
Weighted = Sequence[tuple[int, float]]
"""The positions of levels, and their weights."""


@dataclass(frozen=True, slots=True)
class NodeTrials:
    """The trials of one node at one level: the logarithm of their mean, their relative variance, and their number.

    The relative variance is the variance divided by the squared mean.
    """

    log: float
    variance: float
    count: int


class TrialVariance(NamedTuple):
    """The relative variance of one trial, known with `degrees` degrees of freedom."""

    variance: float
    degrees: float


Cells = Mapping[tuple[str, Hashable], Mapping[str, NodeTrials]]
"""By alternative and level: the trials of each node."""


def remove_node_effects(cells: Cells) -> Cells:
    """Removes what a node does to all alternatives alike.

    It does so if at every level all alternatives were measured on the same nodes, otherwise it returns the cells as
    they are. At each level it moves each node by the difference between the node's mean over the alternatives and the
    mean over all nodes. Then it widens the rest by n/(n-1) for n alternatives, which are from then on taken as
    independent. The first square root of this factor gives differences the variance of paired ones (Morey, Tutorials in
    Quantitative Methods for Psychology 4, 2008). The second is needed because n alternatives carry as much information
    on that variance as n - 1 independent ones.
    """
    levels: dict[Hashable, list[str]] = {}
    for name, level in cells:
        levels.setdefault(level, []).append(name)
    if any(
        cells[name, level].keys() != cells[names[0], level].keys() for level, names in levels.items() for name in names
    ):
        return cells
    return {place: _without_node_effects(cells, place, levels[place[1]]) for place in cells}


def _without_node_effects(cells: Cells, place: tuple[str, Hashable], names: list[str]) -> Mapping[str, NodeTrials]:
    own, level = cells[place], place[1]
    if len(names) == 1 or len(own) == 1:
        return own
    wider = len(names) / (len(names) - 1)
    shift = {node: fmean(cells[name, level][node].log for name in names) for node in own}
    mean, common = fmean(one.log for one in own.values()), fmean(shift.values())
    return {
        node: replace(one, log=mean + wider * (one.log - mean - (shift[node] - common))) for node, one in own.items()
    }


def pool_variances(trials: Sequence[tuple[float, int]]) -> TrialVariance:
    """Returns the variance of a trial of one class at one level.

    `trials` hold the relative variance on each node and its number of trials n. The weights are n - 1.
    """
    degrees = sum(count - 1 for _, count in trials)
    if not degrees:
        return TrialVariance(0.0, 0.0)
    return TrialVariance(sum(value * (count - 1) for value, count in trials) / degrees, degrees)


def shrink_variances(found: Sequence[TrialVariance]) -> list[TrialVariance | None]:
    """Shrinks the variances of several classes and levels towards their common one, as far as they are alike.

    This needs four variances with a degree of freedom; otherwise they stay as they are. A variance without a degree of
    freedom becomes the common one, or None.

    Source: the empirical Bayes estimate of Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004,
    article 3, section 6.2.
    """
    known = [each for each in found if each.degrees]
    if len(known) < _FEWEST_TO_SHRINK:
        return [each if each.degrees else None for each in found]
    logs = [log(each.variance) - digamma(each.degrees / 2) + log(each.degrees / 2) for each in known]
    excess = variance(logs) - fmean(trigamma(each.degrees / 2) for each in known)
    half = min(trigamma_inverse(max(excess, _LEAST_EXCESS)), _MOST_PRIOR_DEGREES / 2)
    prior = TrialVariance(exp(fmean(logs) + digamma(half) - log(half)), 2 * half)
    return [_average_variance(each, prior) for each in found]


def _average_variance(one: TrialVariance, prior: TrialVariance) -> TrialVariance:
    degrees = one.degrees + prior.degrees
    return TrialVariance((one.degrees * one.variance + prior.degrees * prior.variance) / degrees, degrees)


class _Spread(NamedTuple):
    """How nodes differ, as τ² and ω², with the posterior weight of these two."""

    weight: float
    tau: float
    omega: float


def half_cauchy(points: Sequence[float], scale: float) -> tuple[float, ...]:
    """Returns the half-Cauchy probability between the geometric midpoints; the ends include the tails."""
    edges = [0.0, *(sqrt(a * b) for a, b in pairwise(points)), inf]
    below = [2 / pi * atan(edge / scale) for edge in edges]
    return tuple(b - a for a, b in pairwise(below))


_TAU_PRIOR: Final = half_cauchy(DEVIATIONS, TAU_SCALE)
_OMEGA_PRIOR: Final = half_cauchy(_OMEGAS, OMEGA_SCALE)


class ClassModel:
    """The model of one class."""

    def __init__(
        self, trials: Mapping[Hashable, Mapping[str, NodeTrials]], variances: Mapping[Hashable, TrialVariance]
    ) -> None:
        """Takes, for each level, the trials of at least one node, and the variance of one trial."""
        nodes = {name: None for of in trials.values() for name in of}
        numbers = {name: number for number, name in enumerate(nodes)}
        self.nodes = len(numbers)
        self._places = {level: place for place, level in enumerate(trials)}
        self._trial_variances = [variances[level] for level in trials]
        self._levels = []
        for level, of in trials.items():
            variance_of_trial = variances[level].variance
            readings = [(numbers[name], one.log, variance_of_trial / one.count) for name, one in of.items()]
            self._levels.append(LevelReadings(readings, self.nodes))
        self._means = [level.mean for level in self._levels]
        self._fits: dict[float, list[tuple[_Spread, Fit]]] = {}

    def of_class(self, weights: Weights) -> Mixture:
        """Returns the posterior of the logarithm of Σ w exp(μ) over levels, for the class.

        The function uses the delta method at each spread of the nodes. What a node does at every level does not average
        out over the levels; everything else does.
        """
        wanted = self._wanted(weights)
        _, shares = _log_sum(wanted, self._means)
        fits = self._fits_for(sum(p * p for p in shares))
        return condense([self._component(spread, fit, wanted) for spread, fit in fits], BINS)

    def of_nodes(self, weights: Weights) -> Mixture:
        """Returns the same posterior for the measured nodes only, each of the same weight. It has only trial noise."""
        wanted = self._wanted(weights)
        centre, shares = _log_sum(wanted, self._means)
        terms = [
            share**2 * sum(self._levels[place].variances) / len(self._levels[place].variances) ** 2
            for (place, _), share in zip(wanted, shares, strict=True)
        ]
        return student(centre, sum(terms), self._uncertainty(wanted, terms))

    def _wanted(self, weights: Weights) -> list[tuple[int, float]]:
        return [(self._places[level], weight) for level, weight in weights.items() if weight]

    def _component(self, spread: _Spread, fit: Fit, wanted: Weighted) -> Component:
        trial_variances = fit.model.trial_variances
        centre, shares = _log_sum(wanted, fit.means)
        weights = [(place, share) for (place, _), share in zip(wanted, shares, strict=True)]
        terms = [share * share * trial_variances[place] for place, share in weights]
        return Component(spread.weight, centre, fit.variance(weights), self._uncertainty(wanted, terms))

    def _uncertainty(self, wanted: Weighted, terms: Sequence[float]) -> float:
        return sum([q * q / self._trial_variances[place].degrees for (place, _), q in zip(wanted, terms, strict=True)])

    def _fits_for(self, concentration: float) -> list[tuple[_Spread, Fit]]:
        """Returns the fits at a few spreads, each of which replaces those of about the same τ² + ω²Σp²."""
        if concentration not in self._fits:
            few = _bin_spreads(self._posterior, concentration)
            self._fits[concentration] = [(each, self._models[each.omega].fit(each.tau)) for each in few]
        return self._fits[concentration]

    @cached_property
    def _models(self) -> dict[float, MixedModel]:
        """The models by their ω². With one level, ω adds nothing to τ."""
        squares = [omega**2 for omega in _OMEGAS] if len(self._levels) > 1 else [0.0]
        return {square: MixedModel(self._levels, self.nodes, square) for square in squares}

    @cached_property
    def _posterior(self) -> list[_Spread]:
        """The spreads of the grid that have a posterior weight worth keeping."""
        found = [
            _Spread(log(omega_prior * tau_prior) + model.log_likelihood(tau**2), tau**2, omega)
            for (omega, model), omega_prior in zip(self._models.items(), _OMEGA_PRIOR, strict=False)
            for tau, tau_prior in zip(DEVIATIONS, _TAU_PRIOR, strict=True)
        ]
        most = max(each.weight for each in found)
        likely = [each._replace(weight=exp(each.weight - most)) for each in found]
        floor = _LEAST_WEIGHT * sum(each.weight for each in likely)
        total = sum(each.weight for each in likely if each.weight >= floor)
        return [each._replace(weight=each.weight / total) for each in likely if each.weight >= floor]


def _bin_spreads(spreads: Sequence[_Spread], concentration: float) -> list[_Spread]:
    """Returns at most BINS spreads, each of which replaces those of about the same τ² + ω² · concentration."""
    sizes = [spread.tau + spread.omega * concentration for spread in spreads]
    low = min(sizes)
    scale = (BINS - 1e-9) / max(log(max(sizes) / low), 1e-9)
    groups: dict[int, list[_Spread]] = {}
    for spread, size in zip(spreads, sizes, strict=True):
        groups.setdefault(int(scale * log(size / low)), []).append(spread)
    return [_average_spread(group, concentration) for group in groups.values()]


def _average_spread(group: Sequence[_Spread], concentration: float) -> _Spread:
    """Returns a spread with their mean τ² + ω² · concentration. Its ω is the next of the grid below their mean."""
    weight = sum(each.weight for each in group)
    tau = sum(each.weight * each.tau for each in group) / weight
    omega = sum(each.weight * each.omega for each in group) / weight
    on_grid = max(each.omega for each in group if each.omega <= omega * (1 + 1e-9))
    return _Spread(weight, tau + (omega - on_grid) * concentration, on_grid)


def _log_sum(wanted: Weighted, means: Sequence[float]) -> tuple[float, list[float]]:
    """Returns log Σ w exp(m) over the wanted levels, and the share of each term."""
    most = max([means[place] for place, _ in wanted])
    terms = [weight * exp(means[place] - most) for place, weight in wanted]
    total = sum(terms)
    return most + log(total), [term / total for term in terms]
