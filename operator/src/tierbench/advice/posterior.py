"""The posterior of what a class costs, the comparison of classes, and the verdict on each level of a table.

The posterior follows from the estimates of the nodes of a class at each level. A cost is the value of a quantity where
less is better, and one over the value of a rate. All distributions are of its logarithm.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations, groupby
from math import exp, inf, log, sqrt
from typing import Any, Final

from tierbench.advice.tables import Table, node_estimates, relative_margin, smaller_is_better
from tierbench.results.quantities import RETRIES
from tierbench.stats.distributions import TAIL
from tierbench.stats.estimates import Estimate, EventCount, LogRate, LogRateRatio, pool_rates
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

Pair = tuple[str, str]
LogCost = Mixture | LogRate
Difference = Mixture | LogRateRatio
NodeEstimates = Mapping[str, Estimate]
LevelEstimates = Mapping[Any, NodeEstimates]
"""The estimates of each node, by level."""
SMALLEST_MARGIN: Final = 0.05
"""The smallest relative difference that matters, unless an advice names another one."""
_NORMAL_95: Final = 1.96
_MILLION: Final = 1e6
_ROUNDING_VARIANCE: Final = 1 / 12
_MIN_RELATIVE_VARIANCE: Final = 1e-8
"""Values in one bucket of a histogram are equal. With a variance near 0 the algebra of the model loses all digits."""


@dataclass(frozen=True)
class Posterior:
    """What is known of a class over some levels. `value` is in the unit of the quantity.

    `nodes_log_cost` is about the measured nodes alone. `class_log_cost` includes how nodes of a class differ. With
    `cut_short` the cost is a lower bound, as the slowest trials may be missing.
    """

    value: float
    nodes_log_cost: LogCost
    nodes: int
    trials: int
    cut_short: bool
    _class_log_cost: Callable[[], LogCost]

    @cached_property
    def class_log_cost(self) -> LogCost:
        """The logarithm of the cost of the class, computed when it is first needed."""
        return self._class_log_cost()


@dataclass(frozen=True)
class Ratio:
    """The value of one class divided by that of another, with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """The comparison of classes. `margin` is the smallest relative difference that matters."""

    quantity: str
    posteriors: Mapping[str, Posterior]
    margin: float
    _differences: dict[Pair, Difference] = field(default_factory=dict, compare=False)
    _relations: dict[Pair, Relation] = field(default_factory=dict, compare=False)

    @cached_property
    def one_node(self) -> bool:
        """Whether a class has one node. Then the measured nodes are compared, not their classes."""
        return any(posterior.nodes == 1 for posterior in self.posteriors.values())

    @cached_property
    def ranked(self) -> tuple[str, ...]:
        """The classes by cost, the best first."""
        return tuple(sorted(self.posteriors, key=lambda name: self.log_cost(name).centre))

    def log_cost(self, name: str) -> LogCost:
        """Returns the log cost of a class as it is compared."""
        posterior = self.posteriors[name]
        return posterior.nodes_log_cost if self.one_node else posterior.class_log_cost

    def difference(self, first: str, second: str) -> Difference:
        """Returns the log cost of the first class minus that of the second."""
        if (first, second) not in self._differences:
            self._differences[first, second] = _minus(self.log_cost(first), self.log_cost(second))
        return self._differences[first, second]

    def relation(self, first: str, second: str) -> Relation:
        """Returns the relation of the first class to the second."""
        if (first, second) not in self._relations:
            found = self._relation(first, second)
            self._relations[first, second], self._relations[second, first] = found, found.inverse
        return self._relations[first, second]

    def _relation(self, first: str, second: str) -> Relation:
        """Returns the relation; a class whose cost is a lower bound can be shown to be worse, and nothing else."""
        found = relation(self.difference(first, second), self.margin, may_be_equal=not self.one_node)
        one, two = self.posteriors[first].cut_short, self.posteriors[second].cut_short
        if (one and found in {Relation.BETTER, Relation.AHEAD}) or (two and found in {Relation.WORSE, Relation.BEHIND}):
            return Relation.INCONCLUSIVE
        return Relation.INCONCLUSIVE if found is Relation.EQUAL and (one or two) else found

    def beats(self, first: str, second: str) -> bool:
        """Returns whether the first class is shown to be better than the second."""
        return self.relation(first, second) is Relation.BETTER

    @cached_property
    def leaders(self) -> tuple[str, ...]:
        """The class with the least cost, and those that it is not shown to be better than."""
        if not self.ranked:
            return ()
        top = self.ranked[0]
        return tuple(name for name in self.posteriors if name == top or not self.beats(top, name))

    @cached_property
    def lead(self) -> Relation:
        """The relation among the leaders.

        BETTER: there is only one. EQUAL: all are equal. AHEAD: the first is ahead, perhaps by less than the margin.
        Else INCONCLUSIVE.
        """
        if len(self.leaders) == 1:
            return Relation.BETTER
        if all(self.relation(*pair) is Relation.EQUAL for pair in combinations(self.leaders, 2)):
            return Relation.EQUAL
        top = self.ranked[0]
        found = {self.relation(top, other) for other in self.leaders if other != top}
        return Relation.AHEAD if found <= {Relation.AHEAD, Relation.BETTER} else Relation.INCONCLUSIVE

    @cached_property
    def error_probability(self) -> float:
        """An upper bound of the probability that the class with the least cost is not the best."""
        top, *others = self.ranked
        return min(1.0, sum(1 - self.difference(top, other).cdf(0.0) for other in others))

    def ratio(self, first: str, second: str) -> Ratio:
        """Returns the value of the first class divided by that of the second."""
        difference = self.difference(first, second)
        low, high = (exp(difference.quantile(tail)) for tail in (TAIL, 1 - TAIL))
        one, two = (self.posteriors[name].value for name in (first, second))
        value = one / two if two else inf
        return Ratio(value, low, high) if smaller_is_better(self.quantity) else Ratio(value, 1 / high, 1 / low)

    @cached_property
    def prospects(self) -> Mapping[str, Prospect]:
        """The probability that each class is the best, and the expected loss of choosing it.

        For a class with one node, the variation between nodes is that of the prior.
        """
        return prospects({name: posterior.class_log_cost for name, posterior in self.posteriors.items()})

    def tipping_point(self, first: str, second: str) -> float:
        """Returns how much nodes of a class must differ for the 95% interval of the difference to reach 0.

        The result is a relative standard deviation. The noise of trials is taken as 0.
        """
        distance = abs(self.log_cost(first).centre - self.log_cost(second).centre)
        inverse = sum(1 / self.posteriors[name].nodes for name in (first, second))
        return distance / (_NORMAL_95 * sqrt(inverse))


def _minus(first: LogCost, second: LogCost) -> Difference:
    if isinstance(first, LogRate) and isinstance(second, LogRate):
        return first.minus(second)
    if isinstance(first, Mixture) and isinstance(second, Mixture):
        return first.minus(second)
    raise TypeError("a rate and a mean cannot be compared")


class PosteriorModel:
    """A model of classes. Each posterior uses the variation that is estimated from all levels."""

    def __init__(self, quantity: str, classes: Mapping[str, LevelEstimates]) -> None:
        """Fits the model to the estimates of each class."""
        self._quantity = quantity
        self._classes = classes
        self._models = {} if quantity == RETRIES else _class_models(quantity, classes)

    def posterior(self, name: str, weights: Weights, *, cut_short: bool = False) -> Posterior | None:
        """Returns the posterior of a class over weighted levels; None if a level has too few trials."""
        if self._quantity == RETRIES:
            return self._retries(name, weights)
        model, levels = self._models.get(name, (None, frozenset()))
        if model is None or not weights.keys() <= levels:
            return None
        nodes, trials = self._counts(name, weights)
        log_cost = model.of_nodes(weights)
        value = exp(log_cost.centre if smaller_is_better(self._quantity) else -log_cost.centre)
        return Posterior(value, log_cost, nodes, trials, cut_short, partial(model.of_class, weights))

    def _counts(self, name: str, weights: Weights) -> tuple[int, int]:
        """Returns the number of nodes at the level that has the fewest, and the number of all trials."""
        levels = [self._classes[name][level] for level in weights]
        return min(map(len, levels)), sum(one.count for level in levels for one in level.values())

    def _retries(self, name: str, weights: Weights) -> Posterior | None:
        levels = self._classes[name]
        if not all(levels.get(level) for level in weights):
            return None
        counts = [
            (weight, [EventCount(one.mean * one.count / _MILLION, one.count) for one in levels[level].values()])
            for level, weight in weights.items()
        ]
        total = sum(weight for weight, _ in counts)
        log_rate = pool_rates([(weight / total, events) for weight, events in counts])
        raw = sum(w * sum(c.events for c in of) / sum(c.exposure for c in of) for w, of in counts) / total
        nodes, trials = self._counts(name, weights)
        return Posterior(_MILLION * raw, log_rate, nodes, trials, cut_short=False, _class_log_cost=lambda: log_rate)


def _class_models(
    quantity: str, classes: Mapping[str, LevelEstimates]
) -> dict[str, tuple[ClassModel, frozenset[Hashable]]]:
    """Returns the model of each class, and the levels that it covers."""
    usable = {
        (name, level): {node: _node_trials(quantity, one) for node, one in nodes.items() if _is_usable(one)}
        for name, levels in classes.items()
        for level, nodes in levels.items()
    }
    trials = remove_node_effects({place: nodes for place, nodes in usable.items() if nodes})
    pools = [pool_variances([(one.variance, one.count) for one in nodes.values()]) for nodes in trials.values()]
    variances = {place: each for place, each in zip(trials, shrink_variances(pools), strict=True) if each is not None}
    found = {}
    for name, levels in classes.items():
        by_level = {level: trials[name, level] for level in levels if (name, level) in variances}
        if by_level:
            of_level: dict[Hashable, TrialVariance] = {level: variances[name, level] for level in by_level}
            found[name] = ClassModel(by_level, of_level), frozenset(by_level)
    return found


def _is_usable(one: Estimate) -> bool:
    return one.mean > 0 and (one.count == 1 or one.error is not None)


def _node_trials(quantity: str, one: Estimate) -> NodeTrials:
    """Returns the trials of a node. Their variance comes from the standard error, which accounts for trimmed trials."""
    squares = max((one.error or 0.0) ** 2 * one.count, _ROUNDING_VARIANCE)
    variance = max(squares / one.mean**2, _MIN_RELATIVE_VARIANCE)
    log_mean = log(one.mean)
    return NodeTrials(log_mean if smaller_is_better(quantity) else -log_mean, variance, one.count)


@dataclass(frozen=True)
class LevelVerdict:
    """Which class is ahead at one level.

    `leaders` are the best class and all classes that it is not shown to be better than; empty without data. `relation`
    is that of the best class to the other leaders. `margin` is the distance between the best class and the next one, as
    a share of the value of the latter. `error_probability` is an upper bound of the probability that `best` is not the
    best class. With `one_node` the verdict is about the measured nodes, not about their classes.
    """

    level: str
    leaders: tuple[str, ...]
    best: str = ""
    margin: float | None = None
    only_one: bool = False
    relation: Relation = Relation.INCONCLUSIVE
    error_probability: float = 0.0
    one_node: bool = False
    smallest_margin: float = SMALLEST_MARGIN

    @property
    def is_comparison(self) -> bool:
        """Whether at least two classes have data."""
        return bool(self.leaders) and not self.only_one


@dataclass(frozen=True)
class LevelRange:
    """Neighbouring levels with the same verdict."""

    leaders: tuple[str, ...]
    verdicts: tuple[LevelVerdict, ...]
    only_one: bool
    relation: Relation

    @property
    def has_winner(self) -> bool:
        """Whether one class is shown to be better than all others."""
        return self.relation is Relation.BETTER and not self.only_one

    @property
    def margins(self) -> tuple[float, ...]:
        """The known margins of the levels."""
        return tuple(verdict.margin for verdict in self.verdicts if verdict.margin is not None)


def level_verdicts(
    tables: Sequence[Table], quantity: str, smallest_margin: float = SMALLEST_MARGIN
) -> Iterator[tuple[LevelVerdict, ...]]:
    """Yields the verdicts on the levels of each table. The variation between nodes is estimated from all tables."""
    places: dict[str, dict[Hashable, Mapping[str, Estimate]]] = {}
    for number, table in enumerate(tables):
        for (row, column), cell in table.cells.items():
            places.setdefault(column, {})[number, row] = node_estimates(cell, quantity)
    model = PosteriorModel(quantity, places)

    def compare(number: int, row: str, table: Table) -> Comparison:
        cells = {column: cell for column in table.columns if (cell := table.cell(row, column)).results}
        found = {
            column: model.posterior(column, {(number, row): 1.0}, cut_short=cell.cut_short)
            for column, cell in cells.items()
        }
        known = {column: posterior for column, posterior in found.items() if posterior is not None}
        return Comparison(quantity, known, smallest_margin)

    for number, table in enumerate(tables):
        yield tuple(_level_verdict(row, compare(number, row, table)) for row in table.rows)


def _level_verdict(level: str, comparison: Comparison) -> LevelVerdict:
    ranked, posteriors = comparison.ranked, comparison.posteriors
    if not ranked:
        return LevelVerdict(level, ())
    only_one = len(ranked) == 1
    return LevelVerdict(
        level=level,
        leaders=comparison.leaders,
        best=ranked[0],
        margin=None if only_one else relative_margin(posteriors[ranked[0]].value, posteriors[ranked[1]].value),
        only_one=only_one,
        relation=comparison.lead,
        error_probability=0.0 if only_one else comparison.error_probability,
        one_node=comparison.one_node,
        smallest_margin=comparison.margin,
    )


def level_ranges(verdicts: Sequence[LevelVerdict]) -> tuple[LevelRange, ...]:
    """Returns the levels with neighbours of the same verdict joined."""
    groups = groupby(verdicts, key=lambda each: (_named_leaders(each), each.only_one, each.relation))
    return tuple(
        LevelRange(leaders, tuple(group), only_one, relation) for (leaders, only_one, relation), group in groups
    )


def _named_leaders(verdict: LevelVerdict) -> tuple[str, ...]:
    """Returns the classes that a text names: the one that is perhaps ahead, else all leaders."""
    return (verdict.best,) if verdict.relation is Relation.AHEAD else verdict.leaders


def expected_errors(verdicts: Iterable[LevelVerdict]) -> tuple[int, float]:
    """Returns how many levels name a leader, and an upper bound of how many of these are expected to be wrong.

    The method is that of Gelman, Hill and Yajima, Journal of Research on Educational Effectiveness 5, 2012.
    """
    named = [
        each.error_probability
        for each in verdicts
        if each.is_comparison and each.relation in {Relation.BETTER, Relation.AHEAD}
    ]
    return len(named), sum(named)
