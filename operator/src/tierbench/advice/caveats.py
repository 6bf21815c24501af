"""What limits an answer: caveats, crossovers between measured levels, and what to measure next.

A crossover is a change of the winner along a factor. The answer there is not known between two levels.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import expm1, floor, log10, sqrt
from typing import Final

from tierbench.advice.posterior import Comparison, LevelVerdict, level_verdicts
from tierbench.advice.ranking import HARMLESS, AdviceContext, cost_sign
from tierbench.advice.tables import RunResults, Table, measured_quantities
from tierbench.api.advice_answer import Verdict
from tierbench.api.quantity import parse_size
from tierbench.api.result import Note, ResultPhase
from tierbench.results.units import describe_level, factor_traits, humanize, join_words, level_number, percent
from tierbench.stats.posterior import Relation

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
"""The caveats with which the confidence of an answer is low."""
_WIDE: Final = 2.0
_MAX_NAMED: Final = 3
_MAX_NEXT: Final = 16
_MAX_MESSAGE: Final = 512
_DIGITS: Final = 3
_SMALLEST: Final = 10 ** (_DIGITS - 1)
_BINARY_PREFIXES: Final = ("Ti", "Gi", "Mi", "Ki", "")
_DECIMAL_PREFIXES: Final = ("T", "G", "M", "k", "")


@dataclass(frozen=True)
class Crossover:
    """A change of the lead: `below` is ahead up to the level `lower`, `above` is ahead from the level `upper` on.

    The point between the two levels is not estimated, as times may jump at a limit. `confidence` is a lower bound of
    the probability that both are right.
    """

    factor: str
    held: Mapping[str, str]
    below: str
    above: str
    lower: str
    upper: str
    confidence: float

    def __str__(self) -> str:
        """Returns the crossover as a sentence."""
        first, last = describe_level(self.factor, self.lower), describe_level(self.factor, self.upper)
        return f"Between {first} and {last}, {self.above} overtakes {self.below}."


def crossovers(table: Table, verdicts: Sequence[LevelVerdict]) -> tuple[Crossover, ...]:
    """Returns every change of the winner along a factor of numbers. `verdicts` are those of the table.

    A crossover spans the levels without a winner that lie between two winners.
    """
    if not all(level_number(level) for level in table.rows):
        return ()
    decided = [each for each in verdicts if each.relation is Relation.BETTER and not each.only_one]
    return tuple(
        Crossover(
            factor=table.factor,
            held=table.held,
            below=before.best,
            above=after.best,
            lower=before.level,
            upper=after.level,
            confidence=max(0.0, 1 - before.error_probability - after.error_probability),
        )
        for before, after in pairwise(decided)
        if before.best != after.best
    )


def caveats(context: AdviceContext) -> tuple[Note, ...]:
    """Returns what limits the answer or may distort it."""
    rules = (
        _one_node,
        _not_valid,
        _cut_short,
        _medians_disagree,
        _nodes_differ,
        _near_limits,
        _one_client_node,
        _network_bound,
        _left_out_levels,
        _no_workload,
    )
    return tuple(note for rule in rules for note in rule(context))


def _note(reason: str, message: str) -> Note:
    return Note(reason=reason, message=message[:_MAX_MESSAGE])


def _one_node(context: AdviceContext) -> Iterator[Note]:
    single = _single_node_names(context)
    if single:
        verb, each = ("were", " each") if len(single) > 1 else ("was", "")
        what = "the comparison is between nodes, not classes" if context.choice.of_classes else "other nodes may differ"
        text = f"{join_words(single)} {verb} measured on one node{each}: {what}.{context.scope_note}"
        yield _note("OneNode", text)


def _single_node_names(context: AdviceContext) -> list[str]:
    """Returns the alternatives that were measured on one node, including those that violate a constraint."""
    judgements = context.judgements
    return [
        name
        for name, posterior in context.posteriors.items()
        if posterior.nodes == 1 and (name in context.comparable or judgements[name].verdict is Verdict.INFEASIBLE)
    ]


def _not_valid(context: AdviceContext) -> Iterator[Note]:
    results = [result for name in context.measured.cells for result in context.measured.results_of(name)]
    reasons = sorted({note.reason for result in results for note in result.status.invalid} - HARMLESS)
    invalid = sum(any(note.reason in reasons for note in result.status.invalid) for result in results)
    if invalid:
        yield _note("NotValid", f"{invalid} of {len(results)} results may be distorted: {join_words(reasons)}.")


def _cut_short(context: AdviceContext) -> Iterator[Note]:
    for name in context.comparable:
        if context.posteriors[name].cut_short:
            results = [result for result in context.measured.results_of(name) if result.status.counts.completed]
            completed = sum(result.status.counts.completed for result in results)
            trials = sum(result.spec.trials for result in results)
            yield _note(
                "CutShort",
                f"{trials - completed} of {trials} trials on {name} failed or were cut off, perhaps the slowest ones. "
                "Its value is a bound: it can be shown to be worse, but not to be better.",
            )


def _medians_disagree(context: AdviceContext) -> Iterator[Note]:
    comparison = context.comparison
    medians = {name: context.measured.median(name, context.quantity) for name in context.comparable}
    for first, second in combinations(context.comparable, 2):
        winner, loser = (first, second) if comparison.beats(first, second) else (second, first)
        ahead, behind = medians[winner], medians[loser]
        if ahead is None or behind is None or not comparison.beats(winner, loser):
            continue
        if cost_sign(context) * (behind - ahead) < 0:
            yield _note(
                "MediansDisagree",
                f"By the means, {winner} is ahead of {loser}; by the medians, it is behind. A few trials decide.",
            )


def _nodes_differ(context: AdviceContext) -> Iterator[Note]:
    """Yields a note for each class whose nodes differ more than the classes do."""
    ranked = context.comparison.ranked
    if len(ranked) == 1 or not context.choice.of_classes:
        return
    for name in ranked:
        posteriors = context.measured.node_posteriors(name, context.quantity)
        nodes = Comparison(context.quantity, posteriors, context.margin)
        other = ranked[0] if name != ranked[0] else ranked[1]
        between = abs(context.comparison.difference(name, other).centre)
        differences = {
            pair: abs(nodes.difference(*pair).centre) for pair in combinations(nodes.ranked, 2) if nodes.beats(*pair)
        }
        widest = max(differences, key=lambda pair: differences[pair], default=None)
        if widest is not None and differences[widest] > between:
            share = percent(-expm1(-differences[widest]))
            yield _note(
                "NodesDiffer",
                f"{join_words(sorted(widest))}, both {name}, differ by {share}, more than {name} and {other} do. "
                "Find the cause, or make two classes of them.",
            )


def _near_limits(context: AdviceContext) -> Iterator[Note]:
    for name, found in context.violations.items():
        uncertain = next((violation for violation in found if violation.uncertain), None)
        if uncertain is not None:
            message = f"{name} is near a limit, and more trials may change the result: {uncertain.message}"
            yield _note("LimitUnsure", message)


def _one_client_node(context: AdviceContext) -> Iterator[Note]:
    specs = [result.spec for name in context.comparable for result in context.measured.results_of(name)]
    nodes = {facts.node for spec in specs for facts in (spec.client, *spec.clients) if facts.node}
    if len(nodes) == 1:
        message = f"All results were measured from {min(nodes)}, the only node of the client class "
        yield _note("OneClientNode", f"{message}{specs[0].client.node_class}.")


def _network_bound(context: AdviceContext) -> Iterator[Note]:
    for name in context.comparable:
        results = context.measured.results_of(name)
        bound = sum(any(fact.reason == "NetworkBound" for fact in result.status.facts) for result in results)
        if bound:
            yield _note(
                "NetworkBound",
                f"The network was the limit in {bound} of {len(results)} results of {name}. Its nodes may be faster, "
                "and another network would change the results.",
            )


def _left_out_levels(context: AdviceContext) -> Iterator[Note]:
    for name, lacking in context.measured.left_out.items():
        levels = [", ".join(describe_level(factor, level) for factor, level in each) for each in lacking[:_MAX_NAMED]]
        more = f" and {len(lacking) - _MAX_NAMED} more" if len(lacking) > _MAX_NAMED else ""
        message = f"{name} has no results at {'; '.join(levels)}{more}. These levels are left out for all."
        yield _note("LevelsLeftOut", message)


def _no_workload(context: AdviceContext) -> Iterator[Note]:
    if context.spec.workload is None and len(context.measured.combinations) > 1:
        yield _note("NoWorkload", "Without a workload every measured level has the same weight. Set spec.workload.")


def next_measurements(context: AdviceContext, crossovers: Sequence[Crossover]) -> tuple[Note, ...]:
    """Returns what to measure to make the answer more certain, the most useful first."""
    found = (
        _more_classes(context),
        _more_nodes(context),
        _more_trials(context),
        *(_more_levels(context, each) for each in crossovers),
    )
    return tuple(dict.fromkeys(note for notes in found for note in notes))[:_MAX_NEXT]


def _more_classes(context: AdviceContext) -> Iterator[Note]:
    for name, judgement in context.judgements.items():
        if judgement.verdict is Verdict.NO_DATA:
            yield _note(judgement.reason, f"{name}: {judgement.message}")


def _more_nodes(context: AdviceContext) -> Iterator[Note]:
    single = _single_node_names(context)
    if single:
        yield _note(
            "MoreNodes",
            f"Measure more nodes of {join_words(single)}: set servers.nodesPerClass to 2, or better to 3. More trials "
            "or levels do not replace nodes.",
        )


def _more_trials(context: AdviceContext) -> Iterator[Note]:
    """Yields whether more trials or more nodes decide between the two best alternatives.

    It is trials if the noise of trials is more than half of the variance, else nodes.
    """
    judgements = context.judgements
    open_names = [name for name in context.comparison.ranked if judgements[name].verdict is Verdict.INCONCLUSIVE][:2]
    if len(open_names) < 2 or context.blocker is not None:  # noqa: PLR2004 (a pair)
        return
    posteriors, names = [context.posteriors[name] for name in open_names], join_words(open_names)
    noise = sum(posterior.nodes_log_cost.deviation**2 for posterior in posteriors)
    if context.comparison.one_node or 2 * noise > sum(each.class_log_cost.deviation**2 for each in posteriors):
        message = f"Run more repetitions: the noise of trials is the main reason why {names} are inconclusive."
        yield _note("MoreTrials", message)
    else:
        message = (
            f"Measure more nodes of {names}: differences between nodes are the main reason why they are inconclusive."
        )
        yield _note("MoreNodes", message)


def _more_levels(context: AdviceContext, crossover: Crossover) -> Iterator[Note]:
    """Yields the levels to measure within a wide crossover."""
    low, high = level_number(crossover.lower), level_number(crossover.upper)
    if low and high and high / low > _WIDE:
        ends = join_words([describe_level(crossover.factor, level) for level in (crossover.lower, crossover.upper)])
        message = (
            f"Measure levels of {humanize(crossover.factor).lower()} between {ends}, where {crossover.above} overtakes "
            f"{crossover.below}."
        )
        if factor_traits(crossover.factor).refinable and context.choice.noun == "class":
            message += " With runPolicy.refine the next run does this itself."
        yield _note("MoreLevels", message)


@dataclass(frozen=True)
class RefinementLevel:
    """A level in the middle of a crossover. `levels` are those of all factors of the case, including this one."""

    crossover: Crossover
    client_class: str
    level: str
    levels: Mapping[str, str]

    def __str__(self) -> str:
        """Returns the crossover and the level that is measured next."""
        known = self.crossover
        held = "".join(f", {name} {level}" for name, level in known.held.items())
        between = f"{known.lower} and {known.upper}{held}"
        return f"{known.above} overtakes {known.below} between {between}: measures {self.level}"


def refinements(run: RunResults, factor: str, within: float) -> tuple[RefinementLevel, ...]:
    """Returns the middle of every crossover along a factor of sizes that is wider than the share `within`.

    A crossover with a failed case has none, as the order there follows from the failure. It also has none if the middle
    was measured already and the result is inconclusive.
    """
    tables = run.tables_by(factor)
    verdicts = level_verdicts(tables, next(iter(measured_quantities(run)), ""))
    return tuple(
        level
        for table, of_table in zip(tables, verdicts, strict=True)
        for crossover in crossovers(table, of_table)
        for level in _refinement(table, crossover, within)
    )


def _refinement(table: Table, crossover: Crossover, within: float) -> Iterator[RefinementLevel]:
    level = midpoint(crossover.lower, crossover.upper, within)
    measured = {level_number(row) for row in table.rows}
    if level is None or level_number(level) in measured or _has_failed_case(table, crossover):
        return
    spec = table.cell(crossover.lower, crossover.below).results[0].spec
    yield RefinementLevel(crossover, spec.client.node_class, level, {**spec.levels, table.factor: level})


def _has_failed_case(table: Table, crossover: Crossover) -> bool:
    first, last = table.rows.index(crossover.lower), table.rows.index(crossover.upper)
    cells = (table.cell(row, column) for row in table.rows[first : last + 1] for column in table.columns)
    return any(result.status.phase is ResultPhase.FAILED for cell in cells for result in cell.results)


def midpoint(lower: str, upper: str, within: float) -> str | None:
    """Returns the geometric mean of two sizes, rounded to three digits and with the kind of prefix that they have.

    It is None if the sizes differ by no more than the share `within`, or if no size of three digits lies between them.
    """
    low, high = parse_size(lower), parse_size(upper)
    if high <= low * (1 + within):
        return None
    middle, prefixes = sqrt(low * high), _prefixes(lower + upper)
    unit = next(unit for unit in map(_unit, prefixes) if unit == 1 or middle >= _SMALLEST * unit)
    number = middle / unit
    size = int(round(number, min(_DIGITS - 1 - floor(log10(number)), 0))) * unit
    if not low < size < high:
        return None
    shortest = next(prefix for prefix in prefixes if size % _unit(prefix) == 0)
    return f"{size // _unit(shortest)}{shortest}"


def _unit(prefix: str) -> int:
    return parse_size(f"1{prefix}")


def _prefixes(levels: str) -> Sequence[str]:
    if levels.isdigit():
        return ("",)
    return _BINARY_PREFIXES if "i" in levels else _DECIMAL_PREFIXES
