"""From what nodes say at each level to what is known of their classes."""

from collections.abc import Hashable, Mapping
from functools import partial
from math import exp, log
from typing import Any, Final

from tierbench.advice.classes import Known
from tierbench.advice.derived import RETRIES
from tierbench.advice.estimate import Estimate, smaller_is_better
from tierbench.advice.inference.hierarchy import ClassModel, Trials, Weights
from tierbench.advice.inference.noise import Noise, pooled, shrunken
from tierbench.advice.inference.paired import paired
from tierbench.advice.inference.rates import Count, rate

_MILLION: Final = 1e6
_ROUNDING: Final = 1 / 12
"""The variance of rounding to whole units."""
_LEAST: Final = 1e-8
"""The least relative variance of a trial. Values of one bucket of a histogram are all the same, and with a variance
near 0 the model's algebra would keep no digits."""

ByNode = Mapping[str, Estimate]
Places = Mapping[Any, ByNode]
"""By the key of the level."""


class Knowledge:
    """What is known of classes, from all their levels together."""

    def __init__(self, quantity: str, classes: Mapping[str, Places]) -> None:
        """`classes` hold what each node says at each level; nothing where it says nothing."""
        self._quantity = quantity
        self._classes = classes
        self._models = {} if quantity == RETRIES else _models(quantity, classes)

    def of(self, name: str, weights: Weights, *, cut_short: bool = False) -> Known | None:
        """A class over levels of these weights; None unless all of them are known, with how well."""
        if self._quantity == RETRIES:
            return self._retries(name, weights)
        model, has = self._models.get(name, (None, frozenset()))
        if model is None or not weights.keys() <= has:
            return None
        nodes, trials = self._counts(name, weights)
        of_nodes = model.of_nodes(weights)
        value = exp(of_nodes.centre if smaller_is_better(self._quantity) else -of_nodes.centre)
        return Known(value, of_nodes, nodes, trials, cut_short, partial(model.of_class, weights))

    def _counts(self, name: str, weights: Weights) -> tuple[int, int]:
        """How many nodes and trials stand for it: the nodes of the level that has the fewest."""
        places = [self._classes[name][level] for level in weights]
        return min(map(len, places)), sum(one.count for place in places for one in place.values())

    def _retries(self, name: str, weights: Weights) -> Known | None:
        places = self._classes[name]
        if not all(places.get(level) for level in weights):
            return None
        counts = [
            (weight, [Count(one.mean * one.count / _MILLION, one.count) for one in places[level].values()])
            for level, weight in weights.items()
        ]
        total = sum(weight for weight, _ in counts)
        belief = rate([(weight / total, of) for weight, of in counts])
        raw = sum(w * sum(c.events for c in of) / sum(c.exposure for c in of) for w, of in counts) / total
        nodes, trials = self._counts(name, weights)
        return Known(_MILLION * raw, belief, nodes, trials, cut_short=False, _of_class=lambda: belief)


def _models(quantity: str, classes: Mapping[str, Places]) -> dict[str, tuple[ClassModel, frozenset[Hashable]]]:
    said = {
        (name, level): {node: _trials(quantity, one) for node, one in nodes.items() if _usable(one)}
        for name, places in classes.items()
        for level, nodes in places.items()
    }
    trials = paired({place: of for place, of in said.items() if of})
    pools = [pooled([(one.variance, one.count) for one in of.values()]) for of in trials.values()]
    noise = {place: each for place, each in zip(trials, shrunken(pools), strict=True) if each is not None}
    found = {}
    for name, places in classes.items():
        of_levels = {level: trials[name, level] for level in places if (name, level) in noise}
        if of_levels:
            of_noise: dict[Hashable, Noise] = {level: noise[name, level] for level in of_levels}
            found[name] = ClassModel(of_levels, of_noise), frozenset(of_levels)
    return found


def _usable(one: Estimate) -> bool:
    return one.mean > 0 and (one.count == 1 or one.error is not None)


def _trials(quantity: str, one: Estimate) -> Trials:
    """The variance is that which the mean's error comes from: it accounts for trials that were trimmed."""
    relative = max(max((one.error or 0.0) ** 2 * one.count, _ROUNDING) / one.mean**2, _LEAST)
    cost = log(one.mean)
    return Trials(cost if smaller_is_better(quantity) else -cost, relative, one.count)
