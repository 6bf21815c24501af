"""What to keep in mind with an advice, and what to measure to be surer."""

from collections.abc import Iterator, Sequence
from math import ceil, exp, log
from statistics import NormalDist
from typing import Final

from tierbench.advice.contests import SIGNIFICANCE, Difference, adjusted, pairs
from tierbench.advice.crossover import Crossover
from tierbench.advice.verdicts import HARMLESS, Inquiry
from tierbench.advice.words import joined
from tierbench.api.placement_advice import Verdict
from tierbench.api.result import Note
from tierbench.results.levels import show_number
from tierbench.results.statistics import CONFIDENCE
from tierbench.results.units import percent, words

MISLEADING: Final = frozenset({"OneNode", "NotValid", "MediansDisagree", "NodesDiffer", "LimitUnsure", "TrialsFailed"})
"""Caveats with which an answer may mislead."""
_POWER: Final = 0.8
_MOST_REPETITIONS: Final = 30
_WIDE: Final = 2.0


def caveats(inquiry: Inquiry) -> tuple[Note, ...]:
    """How far the answer carries."""
    found = (
        _one_node(inquiry),
        _not_valid(inquiry),
        _failed(inquiry),
        _medians(inquiry),
        _nodes(inquiry),
        _limits(inquiry),
        _network(inquiry),
        _combinations(inquiry),
        _without_workload(inquiry),
    )
    return tuple(note for notes in found for note in notes)


def _one_node(inquiry: Inquiry) -> Iterator[Note]:
    single = [name for name in inquiry.compared if inquiry.estimates[name].nodes == 1]
    if single:
        each = " each" * (len(single) > 1)
        message = f"One node stands for {joined(single)}{each}: machines are compared, not yet classes."
        yield Note(reason="OneNode", message=message[:512])


def _not_valid(inquiry: Inquiry) -> Iterator[Note]:
    used = [result for name in inquiry.measured.cells for result in inquiry.measured.used(name)]
    reasons = sorted({note.reason for result in used for note in result.status.invalid} - HARMLESS)
    spoiled = sum(any(note.reason in reasons for note in result.status.invalid) for result in used)
    if spoiled:
        yield Note(
            reason="NotValid", message=f"{spoiled} of {len(used)} results may be spoiled: {joined(reasons)}."[:512]
        )


def _failed(inquiry: Inquiry) -> Iterator[Note]:
    for name in inquiry.compared:
        counts = [result.status.counts for result in inquiry.measured.used(name)]
        failed, completed = sum(count.failed for count in counts), sum(count.completed for count in counts)
        if failed:
            message = f"{failed} of {failed + completed} trials on {name} failed, and are outside times and rates."
            yield Note(reason="TrialsFailed", message=message)


def _medians(inquiry: Inquiry) -> Iterator[Note]:
    known = {name: inquiry.measured.median(name, inquiry.quantity) for name in inquiry.compared}
    for first, second in pairs(inquiry.compared):
        winner, loser = (first, second) if inquiry.contest.beats(first, second) else (second, first)
        ahead, behind = known[winner], known[loser]
        if ahead is None or behind is None or not inquiry.contest.beats(winner, loser):
            continue
        mean = inquiry.estimates[loser].mean - inquiry.estimates[winner].mean
        if mean * (behind - ahead) < 0:
            message = f"By the means {winner} is ahead of {loser}, by the medians it is behind: a few trials decide."
            yield Note(reason="MediansDisagree", message=message)


def _nodes(inquiry: Inquiry) -> Iterator[Note]:
    """Nodes of a class that differ more than the classes do."""
    ranked = inquiry.contest.ranked
    if len(ranked) == 1:
        return
    for name in ranked:
        nodes = inquiry.measured.nodes(name, inquiry.quantity)
        other = ranked[0] if name != ranked[0] else ranked[1]
        between = abs(inquiry.estimates[name].mean - inquiry.estimates[other].mean)
        tests = {pair: Difference(nodes[pair[0]], nodes[pair[1]]) for pair in pairs(nodes)}
        shown = adjusted({pair: test.p for pair, test in tests.items()})
        apart = {pair: abs(test.value) for pair, test in tests.items() if shown[pair] <= SIGNIFICANCE}
        widest = max(apart, key=lambda pair: apart[pair], default=None)
        if widest is not None and apart[widest] > between:
            share = percent(apart[widest] / max(nodes[node].mean for node in widest))
            message = (
                f"{joined(sorted(widest))}, both {name}, differ by {share}, more than {name} and {other} do: "
                "see what is different about them, or make two classes of them."
            )
            yield Note(reason="NodesDiffer", message=message[:512])


def _limits(inquiry: Inquiry) -> Iterator[Note]:
    for name, found in inquiry.breaches.items():
        unsure = next((breach for breach in found if breach.unsure), None)
        if unsure is not None:
            message = f"{name} is near a limit, and more trials could change on which side: {unsure.message}"
            yield Note(reason="LimitUnsure", message=message[:512])


def _network(inquiry: Inquiry) -> Iterator[Note]:
    """Classes whose network was the limit: then that is what was compared."""
    for name in inquiry.compared:
        used = inquiry.measured.used(name)
        bound = sum(any(fact.reason == "NetworkBound" for fact in result.status.facts) for result in used)
        if bound:
            message = (
                f"In {bound} of {len(used)} results of {name} the network was the limit: its nodes may be faster than "
                "these numbers, and another network would change them."
            )
            yield Note(reason="NetworkBound", message=message)


def _combinations(inquiry: Inquiry) -> Iterator[Note]:
    if inquiry.measured.left_out:
        count = inquiry.measured.left_out
        message = f"{count} combination{'s' * (count != 1)} of levels not measured on all classes are left out."
        yield Note(reason="LevelsLeftOut", message=message)


def _without_workload(inquiry: Inquiry) -> Iterator[Note]:
    if inquiry.spec.workload is None and len(inquiry.measured.combinations) > 1:
        message = "No workload is given, so every measured level counts the same: name yours in spec.workload."
        yield Note(reason="NoWorkload", message=message)


def next_measurements(inquiry: Inquiry, crossovers: Sequence[Crossover]) -> tuple[Note, ...]:
    """What would make the answer surer, the most telling first."""
    found = (_more_classes(inquiry), _more_nodes(inquiry), _more_trials(inquiry), *map(_more_levels, crossovers))
    return tuple({note: None for notes in found for note in notes})[:16]


def _more_classes(inquiry: Inquiry) -> Iterator[Note]:
    for name, said in inquiry.judgements.items():
        if said.verdict is Verdict.NO_DATA:
            yield Note(reason=said.reason, message=f"{name}: {said.message}"[:512])


def _more_nodes(inquiry: Inquiry) -> Iterator[Note]:
    single = [name for name in inquiry.compared if inquiry.estimates[name].nodes == 1]
    if single:
        message = f"Measure further nodes of {joined(single)}: servers.nodesPerClass of 2 or, better, 3."
        yield Note(reason="MoreNodes", message=message[:512])


def _more_trials(inquiry: Inquiry) -> Iterator[Note]:
    """For the two best, if they are tied: n = (z(0.975) + z(0.8))² (s1² + s2²) / d² a class, for a power of 80 %
    (Chow, Shao and Wang, Sample Size Calculations in Clinical Research, 2008, section 3.2).
    """
    tied = [name for name in inquiry.contest.ranked if inquiry.judgements[name].reason == "NotToldApart"][:2]
    if len(tied) < 2:  # noqa: PLR2004 (a pair)
        return
    first, second = (inquiry.estimates[name] for name in tied)
    variance = sum((item.error or 0) ** 2 * item.size for item in (first, second))
    apart = first.mean - second.mean
    if not apart or not variance:
        return
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) + NormalDist().inv_cdf(_POWER)
    needed = max(first.size, second.size) + 1, ceil(z**2 * variance / apart**2)
    share, unit = percent(abs(apart) / (first.mean or second.mean)), "nodes" if first.nodes > 1 else "trials"
    message = f"To tell {share} between {joined(tied)} takes about {max(needed)} {unit} a class."
    if unit == "trials" and max(needed) > _MOST_REPETITIONS:
        message = f"{message} Unless so little matters, take them as equal."
    yield Note(reason="MoreTrials" if unit == "trials" else "MoreNodes", message=message)


def _more_levels(crossover: Crossover) -> Iterator[Note]:
    """A level in the middle of a crossover's interval, where that is wide."""
    low, high = crossover.low, crossover.high
    if low is None or high is None or high / low < _WIDE:
        return
    middle = show_number(crossover.factor, exp((log(low) + log(high)) / 2), crossover.lower)
    name = words(crossover.factor).lower()
    message = f"Measure at {name} {middle}: {crossover.above} comes ahead of {crossover.below} somewhere near."
    yield Note(reason="MoreLevels", message=message)
