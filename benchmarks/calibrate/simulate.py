"""Simulates classes, nodes and trials, and checks the inference on them.

A time is the mean of the level times three factors. They are the deviation of the node at every level (τ), that of the
node at this level (ω = τ/3), and that of the trial. The distribution of trials is normal, or has a heavy tail: one
trial in twenty takes 1.5 times as long.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, log1p
from random import Random

from tests.unit.stats.estimates import sample
from tierbench.advice.posterior import Comparison, PosteriorModel
from tierbench.stats.distributions import TAIL
from tierbench.stats.estimates import Estimate
from tierbench.stats.posterior import Mixture

QUANTITY = "durationNanoseconds"
MARGIN = 0.05
_BASE = 1e9
_SLOW_SHARE, _SLOW_FACTOR = 0.05, 1.5
_TRIAL_SDS = (0.01, 0.03, 0.10, 0.02, 0.05, 0.30, 0.04)


@dataclass(frozen=True)
class Point:
    """A point of the grid. `nodes` and `trials` have a number per class.

    `ratios` are the times of each class as multiples of the first one's. `noise` is the deviation of trials at one
    level. With `steady`, the nodes of the second class do not differ. `day` is the deviation by which the day of a run
    shifts each class. If `shared` is set, classes are settings on the same nodes, and it is the deviation of these
    nodes. With `cut_off`, trials of the first class that take longer than usual are lost. Its two quickest ones remain.
    """

    nodes: tuple[int, ...] = (2, 2)
    trials: tuple[int, ...] = (10, 10)
    tau: float = 0.03
    heavy: bool = False
    levels: int = 7
    ratios: tuple[float, ...] = (1.0, 1.0)
    drift: float = 0.0
    steady: bool = False
    day: float = 0.0
    cut_off: bool = False
    noise: float = 0.03
    shared: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the classes: a, b, c."""
        return tuple("abcdefgh"[: len(self.nodes)])

    def spread(self, level: int) -> float:
        """Returns the deviation of trials at a level."""
        return _TRIAL_SDS[level % len(_TRIAL_SDS)] if self.levels > 1 else self.noise


def draw(point: Point, random: Random) -> dict[str, dict[int, dict[str, Estimate]]]:
    """Returns the estimates of each class, level and node.

    Drift makes times longer during a run. Classes take turns in the trials of a level, so it affects them equally.
    """
    found: dict[str, dict[int, dict[str, Estimate]]] = {name: {} for name in point.names}
    alike = [random.gauss(0, point.shared) for _ in range(max(point.nodes))] if point.shared else []
    for name, nodes, trials, ratio in zip(point.names, point.nodes, point.trials, point.ratios, strict=True):
        tau = 0.0 if point.steady and name == "b" else point.tau
        shift = random.gauss(0, point.day)
        throughout = [shift + random.gauss(0, tau) for _ in range(nodes)]
        if alike:
            throughout = [u + common for u, common in zip(throughout, alike, strict=False)]
        for level in range(point.levels):
            here = [ratio * exp(u + random.gauss(0, tau / 3)) for u in throughout]
            cut_off = point.cut_off and name == "a"
            found[name][level] = {
                f"{'' if alike else name}{node}": sample(_times(point, level, mean, trials, random, cut_off=cut_off))
                for node, mean in enumerate(here)
            }
    return found


def _times(point: Point, level: int, mean: float, trials: int, random: Random, *, cut_off: bool) -> list[float]:
    shares = [_trial(point, level, random) * _drifted(point, level, number / trials) for number in range(trials)]
    if cut_off:
        quickest = sorted(shares)[:2]
        shares = [share for share in shares if share <= 1 or share in quickest]
    return [_BASE * mean * share for share in shares]


def _trial(point: Point, level: int, random: Random) -> float:
    value = max(0.05, random.gauss(1, point.spread(level)))
    if not point.heavy:
        return value
    slow = random.random() < _SLOW_SHARE
    return value * (_SLOW_FACTOR if slow else 1) / (1 + _SLOW_SHARE * (_SLOW_FACTOR - 1))


def _drifted(point: Point, level: int, share: float) -> float:
    return 1 + point.drift * (level + share) / point.levels


def contests(
    point: Point, drawn: Mapping[str, Mapping[int, Mapping[str, Estimate]]]
) -> tuple[Comparison, list[Comparison]]:
    """Returns the comparison over the workload, with equal weights of levels, and the comparison at each level."""
    knowledge = PosteriorModel(QUANTITY, drawn)
    cut_off = {"a"} if point.cut_off else set()
    return (
        _contest(knowledge, point.names, cut_off, range(point.levels)),
        [_contest(knowledge, point.names, cut_off, [level]) for level in range(point.levels)],
    )


def _contest(knowledge: PosteriorModel, names: Sequence[str], cut_off: set[str], levels: Sequence[int]) -> Comparison:
    weights = dict.fromkeys(levels, 1.0)
    known = {name: knowledge.posterior(name, weights, cut_short=name in cut_off) for name in names}
    return Comparison(QUANTITY, {name: each for name, each in known.items() if each is not None}, MARGIN)


@dataclass
class Tally:
    """Counts how often something was true."""

    hits: int = 0
    of: int = 0

    def add(self, hit: bool) -> None:
        """Counts one case, and whether it was a hit."""
        self.hits += hit
        self.of += 1

    @property
    def share(self) -> float:
        """Returns the share of hits."""
        return self.hits / self.of if self.of else 0.0


@dataclass
class Figures:
    """The tallies of one point: how often intervals contain the truth, and how often each verdict occurs.

    `mistaken` counts verdicts Best that remain after the true difference is removed.
    """

    level_coverage: Tally
    workload_coverage: Tally
    mistaken: Tally
    called: Tally
    wrong: Tally
    right: Tally
    equal: Tally


def run(point: Point, repetitions: int, seed: int) -> Figures:
    """Simulates the point, and compares the first two classes."""
    random = Random(seed)
    found = Figures(*(Tally() for _ in range(7)))
    truth = log(point.ratios[0] / point.ratios[1])
    for _ in range(repetitions):
        whole, levels = contests(point, draw(point, random))
        between = _between(whole)
        held = _holds(between, truth)
        found.workload_coverage.add(held)
        found.mistaken.add(not held and abs(between.centre - truth) >= log1p(MARGIN))
        for each in levels:
            found.level_coverage.add(_holds(_between(each), truth))
        better, worse = whole.beats("a", "b"), whole.beats("b", "a")
        found.called.add(better or worse)
        found.right.add(better and truth < 0)
        found.wrong.add(worse if truth <= 0 else better)
        found.equal.add(whole.lead.value == "equal")
    return found


def _between(contest: Comparison) -> Mixture:
    """Returns the distribution of the logarithm of the ratio of the classes."""
    first, second = (contest.posteriors[name].class_log_cost for name in "ab")
    assert isinstance(first, Mixture) and isinstance(second, Mixture)
    return first.minus(second)


def _holds(between: Mixture, truth: float) -> bool:
    """Returns whether the 95% interval contains the truth."""
    return TAIL <= between.cdf(truth) <= 1 - TAIL
