"""What is known of classes from what their nodes say at each level, and how they compare."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations
from math import exp, log, sqrt
from typing import Any, Final

from tierbench.advice.estimate import Estimate, smaller_is_better
from tierbench.results.quantities import RETRIES
from tierbench.stats.hierarchy import (
    ClassModel,
    NodeTrials,
    TrialVariance,
    Weights,
    pool_variances,
    remove_node_effects,
    shrink_variances,
)
from tierbench.stats.posterior import Mixture, Prospect, Relation, prospects, relation
from tierbench.stats.rates import EventCount, LogRate, LogRateRatio, pool_rates
from tierbench.stats.samples import TAIL

Pair = tuple[str, str]
LogCost = Mixture | LogRate
Difference = Mixture | LogRateRatio
_NORMAL_95: Final = 1.96
_MILLION: Final = 1e6
_ROUNDING: Final = 1 / 12
"""The variance of rounding to whole units."""
_LEAST: Final = 1e-8
"""The least relative variance of a trial. Values of one bucket of a histogram are all the same, and with a variance
near 0 the model's algebra would keep no digits."""
NodeEstimates = Mapping[str, Estimate]
LevelEstimates = Mapping[Any, NodeEstimates]
"""By the key of the level."""


def pairs(names: Iterable[str]) -> list[Pair]:
    """Every two of them."""
    return list(combinations(names, 2))


@dataclass(frozen=True)
class Posterior:
    """What is known of a class at one place.

    `value` is in the quantity's unit. Beliefs are of the logarithm of its cost, which is the value, or one over it
    where it is a rate; `of_nodes` is of those that were measured alone. With `cut_short` the cost is a lower bound:
    trials that took longest may be missing.
    """

    value: float
    of_nodes: LogCost
    nodes: int
    trials: int
    cut_short: bool
    _of_class: Callable[[], LogCost]

    @cached_property
    def of_class(self) -> LogCost:
        """How nodes differ is accounted for."""
        return self._of_class()


@dataclass(frozen=True)
class Ratio:
    """The value of one class by that of another, and its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """Classes compared in one place; `margin` is the smallest share that is worth having."""

    quantity: str
    posteriors: Mapping[str, Posterior]
    margin: float
    _differences: dict[Pair, Difference] = field(default_factory=dict, compare=False)
    _outcomes: dict[Pair, Relation] = field(default_factory=dict, compare=False)

    @cached_property
    def one_node(self) -> bool:
        """Whether some class stands on one node: then the nodes that were measured are compared, not their classes."""
        return any(known.nodes == 1 for known in self.posteriors.values())

    @cached_property
    def ranked(self) -> tuple[str, ...]:
        """The classes by what they cost, the best first."""
        return tuple(sorted(self.posteriors, key=lambda name: self.log_cost(name).centre))

    def log_cost(self, name: str) -> LogCost:
        """What the comparison rests on."""
        known = self.posteriors[name]
        return known.of_nodes if self.one_node else known.of_class

    def difference(self, first: str, second: str) -> Difference:
        """The logarithm of the first's cost by the second's."""
        if (first, second) not in self._differences:
            self._differences[first, second] = _minus(self.log_cost(first), self.log_cost(second))
        return self._differences[first, second]

    def outcome(self, first: str, second: str) -> Relation:
        """The first against the second. A lower bound can be shown to be worse, and nothing else."""
        if (first, second) not in self._outcomes:
            found = self._judged(first, second)
            self._outcomes[first, second], self._outcomes[second, first] = found, found.inverse
        return self._outcomes[first, second]

    def _judged(self, first: str, second: str) -> Relation:
        found = relation(self.difference(first, second), self.margin, may_be_equal=not self.one_node)
        one, two = self.posteriors[first].cut_short, self.posteriors[second].cut_short
        if (one and found in {Relation.BETTER, Relation.AHEAD}) or (two and found in {Relation.WORSE, Relation.BEHIND}):
            return Relation.UNKNOWN
        return Relation.UNKNOWN if found is Relation.EQUAL and (one or two) else found

    def beats(self, first: str, second: str) -> bool:
        """Whether `first` is shown to be better than `second`."""
        return self.outcome(first, second) is Relation.BETTER

    @cached_property
    def leaders(self) -> tuple[str, ...]:
        """The class with the least cost, and those that it is not shown to be better than."""
        if not self.ranked:
            return ()
        top = self.ranked[0]
        return tuple(name for name in self.posteriors if name == top or not self.beats(top, name))

    @cached_property
    def lead(self) -> Relation:
        """Of the leaders: BETTER if there is one alone, EQUAL if all are; AHEAD if one is, perhaps by less than the
        margin; else UNKNOWN.
        """
        if len(self.leaders) == 1:
            return Relation.BETTER
        if all(self.outcome(*pair) is Relation.EQUAL for pair in pairs(self.leaders)):
            return Relation.EQUAL
        top = self.ranked[0]
        found = {self.outcome(top, other) for other in self.leaders if other != top}
        return Relation.AHEAD if found <= {Relation.AHEAD, Relation.BETTER} else Relation.UNKNOWN

    @cached_property
    def error_probability(self) -> float:
        """At most how likely the class with the least cost is not the best."""
        top, *others = self.ranked
        return min(1.0, sum(1 - self.difference(top, other).cdf(0.0) for other in others))

    def ratio(self, first: str, second: str) -> Ratio:
        """The first's value by the second's."""
        difference = self.difference(first, second)
        low, high = (exp(difference.quantile(tail)) for tail in (TAIL, 1 - TAIL))
        value = (
            self.posteriors[first].value / self.posteriors[second].value
            if self.posteriors[second].value
            else float("inf")
        )
        return Ratio(value, low, high) if smaller_is_better(self.quantity) else Ratio(value, 1 / high, 1 / low)

    @cached_property
    def prospects(self) -> Mapping[str, Prospect]:
        """Of each class: how likely it is best, and what it costs to follow it. Of one node it assumes how far nodes
        of a class usually differ.
        """
        return prospects({name: known.of_class for name, known in self.posteriors.items()})

    def tipping_point(self, first: str, second: str) -> float:
        """How far nodes of a class would have to differ (a standard deviation, as a share) for the 95% interval of
        the difference to reach 0, were trials without noise.
        """
        apart = abs(self.log_cost(first).centre - self.log_cost(second).centre)
        inverse = sum(1 / self.posteriors[name].nodes for name in (first, second))
        return apart / (_NORMAL_95 * sqrt(inverse))


def _minus(first: LogCost, second: LogCost) -> Difference:
    if isinstance(first, LogRate) and isinstance(second, LogRate):
        return first.minus(second)
    if isinstance(first, Mixture) and isinstance(second, Mixture):
        return first.minus(second)
    raise TypeError("a rate and a mean cannot be compared")


class PosteriorModel:
    """What is known of classes, from all their levels together."""

    def __init__(self, quantity: str, classes: Mapping[str, LevelEstimates]) -> None:
        """`classes` hold what each node says at each level; nothing where it says nothing."""
        self._quantity = quantity
        self._classes = classes
        self._models = {} if quantity == RETRIES else _models(quantity, classes)

    def of(self, name: str, weights: Weights, *, cut_short: bool = False) -> Posterior | None:
        """A class over levels of these weights; None unless all of them are known, with how well."""
        if self._quantity == RETRIES:
            return self._retries(name, weights)
        model, has = self._models.get(name, (None, frozenset()))
        if model is None or not weights.keys() <= has:
            return None
        nodes, trials = self._counts(name, weights)
        of_nodes = model.of_nodes(weights)
        value = exp(of_nodes.centre if smaller_is_better(self._quantity) else -of_nodes.centre)
        return Posterior(value, of_nodes, nodes, trials, cut_short, partial(model.of_class, weights))

    def _counts(self, name: str, weights: Weights) -> tuple[int, int]:
        """How many nodes and trials stand for it: the nodes of the level that has the fewest."""
        places = [self._classes[name][level] for level in weights]
        return min(map(len, places)), sum(one.count for place in places for one in place.values())

    def _retries(self, name: str, weights: Weights) -> Posterior | None:
        places = self._classes[name]
        if not all(places.get(level) for level in weights):
            return None
        counts = [
            (weight, [EventCount(one.mean * one.count / _MILLION, one.count) for one in places[level].values()])
            for level, weight in weights.items()
        ]
        total = sum(weight for weight, _ in counts)
        belief = pool_rates([(weight / total, of) for weight, of in counts])
        raw = sum(w * sum(c.events for c in of) / sum(c.exposure for c in of) for w, of in counts) / total
        nodes, trials = self._counts(name, weights)
        return Posterior(_MILLION * raw, belief, nodes, trials, cut_short=False, _of_class=lambda: belief)


def _models(quantity: str, classes: Mapping[str, LevelEstimates]) -> dict[str, tuple[ClassModel, frozenset[Hashable]]]:
    said = {
        (name, level): {node: _trials(quantity, one) for node, one in nodes.items() if _usable(one)}
        for name, places in classes.items()
        for level, nodes in places.items()
    }
    trials = remove_node_effects({place: of for place, of in said.items() if of})
    pools = [pool_variances([(one.variance, one.count) for one in of.values()]) for of in trials.values()]
    noise = {place: each for place, each in zip(trials, shrink_variances(pools), strict=True) if each is not None}
    found = {}
    for name, places in classes.items():
        of_levels = {level: trials[name, level] for level in places if (name, level) in noise}
        if of_levels:
            of_noise: dict[Hashable, TrialVariance] = {level: noise[name, level] for level in of_levels}
            found[name] = ClassModel(of_levels, of_noise), frozenset(of_levels)
    return found


def _usable(one: Estimate) -> bool:
    return one.mean > 0 and (one.count == 1 or one.error is not None)


def _trials(quantity: str, one: Estimate) -> NodeTrials:
    """The variance is that which the mean's error comes from: it accounts for trials that were trimmed."""
    relative = max(max((one.error or 0.0) ** 2 * one.count, _ROUNDING) / one.mean**2, _LEAST)
    cost = log(one.mean)
    return NodeTrials(cost if smaller_is_better(quantity) else -cost, relative, one.count)
