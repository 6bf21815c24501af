"""What to keep in mind with an advice, and what to measure to be surer."""

from collections.abc import Iterator, Sequence
from math import expm1
from typing import Final

from tierbench.advice.leaders import Crossover
from tierbench.advice.posterior import Comparison, pairs
from tierbench.advice.ranking import HARMLESS, AdviceContext, cost_sign
from tierbench.api.advice_answer import Verdict
from tierbench.api.result import Note
from tierbench.api.run_policy import REFINABLE
from tierbench.results.units import describe_level, humanize, join_words, level_number, percent

MISLEADING: Final = frozenset(
    {
        "OneNode",
        "NotValid",
        "MediansDisagree",
        "NodesDiffer",
        "LimitUnsure",
        "CutShort",
        "LevelsLeftOut",
        "NetworkBound",
    }
)
"""Caveats with which an answer may mislead."""
_WIDE: Final = 2.0
_FEW: Final = 3
_HALF: Final = 0.5


def caveats(inquiry: AdviceContext) -> tuple[Note, ...]:
    """How far the answer carries."""
    found = (
        _one_node(inquiry),
        _not_valid(inquiry),
        _cut_short(inquiry),
        _medians(inquiry),
        _nodes(inquiry),
        _limits(inquiry),
        _one_client(inquiry),
        _network(inquiry),
        _combinations(inquiry),
        _without_workload(inquiry),
    )
    return tuple(note for notes in found for note in notes)


def _one_node(inquiry: AdviceContext) -> Iterator[Note]:
    single = _single(inquiry)
    if single:
        each = " each" * (len(single) > 1)
        carries = "nodes are compared, not yet classes" if inquiry.choice.of_classes else "others may tell otherwise"
        message = f"One node stands for {join_words(single)}{each}: {carries}.{inquiry.scope_note}"
        yield Note(reason="OneNode", message=message[:512])


def _single(inquiry: AdviceContext) -> list[str]:
    """The classes that stand on one node, those that break a constraint among them."""
    judged = inquiry.judgements
    return [
        name
        for name, known in inquiry.posteriors.items()
        if known.nodes == 1 and (name in inquiry.comparable or judged[name].verdict is Verdict.INFEASIBLE)
    ]


def _not_valid(inquiry: AdviceContext) -> Iterator[Note]:
    used = [result for name in inquiry.measured.cells for result in inquiry.measured.results_of(name)]
    reasons = sorted({note.reason for result in used for note in result.status.invalid} - HARMLESS)
    spoiled = sum(any(note.reason in reasons for note in result.status.invalid) for result in used)
    if spoiled:
        yield Note(
            reason="NotValid", message=f"{spoiled} of {len(used)} results may be spoiled: {join_words(reasons)}."[:512]
        )


def _cut_short(inquiry: AdviceContext) -> Iterator[Note]:
    for name in inquiry.comparable:
        if inquiry.posteriors[name].cut_short:
            used = [result for result in inquiry.measured.results_of(name) if result.status.counts.completed]
            completed = sum(result.status.counts.completed for result in used)
            asked = sum(result.spec.trials for result in used)
            message = (
                f"{asked - completed} of {asked} trials on {name} failed or were cut off, perhaps the longest: its "
                "value is a bound, and it may be shown to be worse, but not to be better."
            )
            yield Note(reason="CutShort", message=message[:512])


def _medians(inquiry: AdviceContext) -> Iterator[Note]:
    contest = inquiry.comparison
    known = {name: inquiry.measured.median(name, inquiry.quantity) for name in inquiry.comparable}
    for first, second in pairs(inquiry.comparable):
        winner, loser = (first, second) if contest.beats(first, second) else (second, first)
        ahead, behind = known[winner], known[loser]
        if ahead is None or behind is None or not contest.beats(winner, loser):
            continue
        if cost_sign(inquiry) * (behind - ahead) < 0:
            message = f"By the means {winner} is ahead of {loser}, by the medians it is behind: a few trials decide."
            yield Note(reason="MediansDisagree", message=message[:512])


def _nodes(inquiry: AdviceContext) -> Iterator[Note]:
    """Nodes of a class that differ more than the classes do."""
    ranked = inquiry.comparison.ranked
    if len(ranked) == 1 or not inquiry.choice.of_classes:
        return
    for name in ranked:
        nodes = Comparison(inquiry.quantity, inquiry.measured.nodes(name, inquiry.quantity), inquiry.margin)
        other = ranked[0] if name != ranked[0] else ranked[1]
        between = abs(inquiry.comparison.difference(name, other).centre)
        apart = {
            pair: abs(nodes.difference(*pair).centre)
            for pair in pairs(nodes.ranked)
            if nodes.beats(*pair) and abs(nodes.difference(*pair).centre) > between
        }
        if apart:
            widest = max(apart, key=lambda pair: apart[pair])
            message = (
                f"{join_words(sorted(widest))}, both {name}, differ by {percent(-expm1(-apart[widest]))}, more than "
                f"{name} and {other} do: see what is different about them, or make two classes of them."
            )
            yield Note(reason="NodesDiffer", message=message[:512])


def _limits(inquiry: AdviceContext) -> Iterator[Note]:
    for name, found in inquiry.breaches.items():
        unsure = next((breach for breach in found if breach.uncertain), None)
        if unsure is not None:
            message = f"{name} is near a limit, and more trials could change on which side: {unsure.message}"
            yield Note(reason="LimitUnsure", message=message[:512])


def _one_client(inquiry: AdviceContext) -> Iterator[Note]:
    """The servers' nodes may be many: what they are measured from is a class, too."""
    used = [result.spec for name in inquiry.comparable for result in inquiry.measured.results_of(name)]
    nodes = {place.node for spec in used for place in (spec.client, *spec.clients) if place.node}
    if len(nodes) == 1:
        message = f"All was measured from {min(nodes)}: one node stands for {used[0].client.node_class}, the clients."
        yield Note(reason="OneClientNode", message=message[:512])


def _network(inquiry: AdviceContext) -> Iterator[Note]:
    """Classes whose network was the limit: then that is what was compared."""
    for name in inquiry.comparable:
        used = inquiry.measured.results_of(name)
        bound = sum(any(fact.reason == "NetworkBound" for fact in result.status.facts) for result in used)
        if bound:
            message = (
                f"In {bound} of {len(used)} results of {name} the network was the limit: its nodes may be faster than "
                "these numbers, and another network would change them."
            )
            yield Note(reason="NetworkBound", message=message[:512])


def _combinations(inquiry: AdviceContext) -> Iterator[Note]:
    for name, lacking in inquiry.measured.left_out.items():
        levels = [", ".join(describe_level(factor, level) for factor, level in each) for each in lacking[:_FEW]]
        more = f" and {len(lacking) - _FEW} more" if len(lacking) > _FEW else ""
        message = f"{name} has nothing at {'; '.join(levels)}{more}: what others have there is left out."
        yield Note(reason="LevelsLeftOut", message=message[:512])


def _without_workload(inquiry: AdviceContext) -> Iterator[Note]:
    if inquiry.spec.workload is None and len(inquiry.measured.combinations) > 1:
        message = "No workload is given, so every measured level counts the same: name yours in spec.workload."
        yield Note(reason="NoWorkload", message=message)


def next_measurements(inquiry: AdviceContext, crossovers: Sequence[Crossover]) -> tuple[Note, ...]:
    """What would make the answer surer, the most telling first."""
    found = (
        _more_classes(inquiry),
        _more_nodes(inquiry),
        _more_trials(inquiry),
        *(_more_levels(inquiry, each) for each in crossovers),
    )
    return tuple({note: None for notes in found for note in notes})[:16]


def _more_classes(inquiry: AdviceContext) -> Iterator[Note]:
    for name, said in inquiry.judgements.items():
        if said.verdict is Verdict.NO_DATA:
            yield Note(reason=said.reason, message=f"{name}: {said.message}"[:512])


def _more_nodes(inquiry: AdviceContext) -> Iterator[Note]:
    single = _single(inquiry)
    if single:
        message = (
            f"Measure further nodes of {join_words(single)}: servers.nodesPerClass of 2 or, better, 3. More trials or "
            "levels cannot replace them."
        )
        yield Note(reason="MoreNodes", message=message[:512])


def _more_trials(inquiry: AdviceContext) -> Iterator[Note]:
    """Where it is not known which of the two that have the best values is ahead: trials, if their noise is most of what
    is not known, else nodes.
    """
    open_ones = [name for name in inquiry.comparison.ranked if inquiry.judgements[name].verdict is Verdict.NOT_KNOWN][
        :2
    ]
    if len(open_ones) < 2 or inquiry.blocker is not None:  # noqa: PLR2004 (a pair)
        return
    noise = sum(inquiry.posteriors[name].of_nodes.deviation ** 2 for name in open_ones)
    if inquiry.comparison.one_node or noise > _HALF * sum(
        inquiry.posteriors[name].of_class.deviation ** 2 for name in open_ones
    ):
        message = f"Repeat more often: that trials differ is most of why {join_words(open_ones)} are not told apart."
        yield Note(reason="MoreTrials", message=message[:512])
    else:
        message = f"Measure further nodes of {join_words(open_ones)}: that nodes differ is why they are not told apart."
        yield Note(reason="MoreNodes", message=message[:512])


def _more_levels(inquiry: AdviceContext, crossover: Crossover) -> Iterator[Note]:
    """Levels within a crossover's bracket, where that is wide."""
    low, high = level_number(crossover.lower), level_number(crossover.upper)
    if low and high and high / low > _WIDE:
        ends = join_words([describe_level(crossover.factor, level) for level in (crossover.lower, crossover.upper)])
        message = (
            f"Measure at levels of {humanize(crossover.factor).lower()} between {ends}: "
            f"{crossover.above} comes ahead of {crossover.below} there."
        )
        if crossover.factor in REFINABLE and inquiry.choice.noun == "class":
            message += " With runPolicy.refine the next run does so by itself."
        yield Note(reason="MoreLevels", message=message[:512])
