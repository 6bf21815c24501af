"""The answer to a PlacementAdvice, from the results that are there. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from tierbench.advice.answer import describe_retries, describe_tables
from tierbench.advice.caveats import MISLEADING, caveats, next_measurements
from tierbench.advice.estimate import with_derived_quantities
from tierbench.advice.factor_summary import factor_effects, factor_knees, summarize_factors
from tierbench.advice.leaders import Crossover, LevelVerdict, crossovers, level_verdicts
from tierbench.advice.ranking import AdviceContext
from tierbench.advice.selection import Choice, Selection, Settings, objective_of, quantities_read, quantity_of, select
from tierbench.advice.tables import ResultSet, Table
from tierbench.advice.workload import canonical_level, group_by_workload, workload_items
from tierbench.api.advice_answer import (
    MOST_ALTERNATIVES,
    Confidence,
    LevelCrossover,
    NodeAffinity,
    NodeRequirement,
    NodeSelectorTerm,
    PlacementAdviceStatus,
    Ranked,
    RequiredNodes,
    Verdict,
)
from tierbench.api.model import Condition
from tierbench.api.node_class import NodeClass, SelectorOperator
from tierbench.api.placement_advice import Dimension, PlacementAdviceSpec
from tierbench.api.result import BenchmarkResult, Note
from tierbench.kube.clock import format_time
from tierbench.results.quantities import RETRIES, levels_and_parameters
from tierbench.results.units import join_words, percent, title
from tierbench.stats.posterior import Prospect

ANSWERED: Final = "Answered"
ORDER_CHANGES: Final = "OrderChanges"
_STRICT: Final = 0.01
_LEAST_LOSS: Final = 0.0001
_LONGEST: Final = 1024
_LONGEST_MESSAGE: Final = 4096
_MOST_CROSSOVERS: Final = 32
_HOSTNAME: Final = "kubernetes.io/hostname"
Tables = Sequence[tuple[Table, Sequence[LevelVerdict]]]


def advise(
    spec: PlacementAdviceSpec,
    results: Iterable[BenchmarkResult],
    now: datetime,
    classes: Sequence[NodeClass] = (),
) -> PlacementAdviceStatus:
    """The whole status, `observedGeneration` aside.

    `results` are all that might be meant; those of runs before the newest tell whether runs contradict each other.
    `classes` give the labels of the affinity; without them it names nodes. Conditions bear `now`.
    """
    known = list(results)
    selection = select(spec, known)
    if len(selection.kinds) != 1:
        return _nothing(*_why_nothing(spec, selection, known), now)
    kind = selection.kinds[0]
    there = {name for result in selection.results for name in result.status.statistics}
    quantity = quantity_of(objective_of(spec), kind, there)
    wanted = workload_items(spec.workload)
    read = quantities_read(spec, kind, there)
    selection = selection.map_results(
        lambda results: tuple(with_derived_quantities(result, read) for result in results)
    )
    choice = Choice(spec.choose, selection.results, frozenset(name for item in wanted for name in item.levels))
    if not 0 < len(choice.alternatives) <= MOST_ALTERNATIVES:
        return _nothing(*_why_no_ranking(choice), now)
    told = selection.map_results(choice.relabel)
    inquiry = AdviceContext(spec, choice, told, kind, quantity, wanted, group_by_workload(told.results, wanted))
    without = spec.choose if len(spec.choose) == 1 else ()
    factors = summarize_factors(selection.results, quantity, wanted, inquiry.margin, without)
    kept = _tables(inquiry)
    tables = list(zip(kept, level_verdicts(kept, quantity, inquiry.margin), strict=True))
    every = [crossover for table, found in tables for crossover in crossovers(table, found)]
    found = tuple(every[:_MOST_CROSSOVERS])
    best = next((item for item in inquiry.ranking if item.verdict is Verdict.BEST), None)
    notes = caveats(inquiry)
    return PlacementAdviceStatus(
        **_columns(inquiry, best, notes),
        settings={} if best is None else _settings(choice.alternatives[best.name]),
        answer=_answer(inquiry, tables),
        estimand=inquiry.estimand if inquiry.comparison.ranked else "",
        tipping_point="" if inquiry.tipping_point is None else percent(inquiry.tipping_point),
        quantity=inquiry.quantity,
        ranking=inquiry.ranking,
        crossovers=tuple(map(_level_crossover, found)),
        node_affinity=None if best is None else _affinity(inquiry, best.name, classes),
        effects=factor_effects(factors),
        knees=factor_knees(factors),
        caveats=notes,
        next=next_measurements(inquiry, found),
        conditions=(_answered(inquiry, best, now), _order_changes(tables, found, now)),
    )


def _why_nothing(
    spec: PlacementAdviceSpec, selection: Selection, results: Sequence[BenchmarkResult]
) -> tuple[str, str]:
    if selection.kinds:
        names = join_words(selection.kinds)
        return "DifferentKinds", f"{names} measure different things: name benchmarks of one kind in spec.benchmarks."
    clients = sorted({result.spec.client.node_class for result in results})
    there = f"there are some with clients on {join_words(clients)}" if clients else "there are none at all"
    message = f"No result that is asked for has clients on {spec.client_class} ({there}): measure, or ask otherwise."
    return "NoResults", message


def _why_no_ranking(choice: Choice) -> tuple[str, str]:
    number = len(choice.alternatives)
    if number:
        message = f"There are {number} alternatives, and {MOST_ALTERNATIVES} can be ranked: choose among fewer things."
        return "TooManyAlternatives", message
    there = {name for result in choice.results for name in levels_and_parameters(result)}
    known = [Dimension.NODE_CLASS, *(name for name in Dimension if name in there)]
    message = f"No result says anything of {join_words(choice.dimensions, 'or')}: choose among {join_words(known)}."
    return "NothingToChoose", message


def _nothing(reason: str, message: str, now: datetime) -> PlacementAdviceStatus:
    unknown = _condition(ORDER_CHANGES, False, reason, "Not known.", now)
    return PlacementAdviceStatus(
        answer=message, conditions=(_condition(ANSWERED, False, reason, message, now), unknown)
    )


def _tables(inquiry: AdviceContext) -> tuple[Table, ...]:
    """The results along the factor with the most levels; of the others those that the workload names."""
    every = ResultSet(inquiry.selection.results)
    held: Mapping[str, set[str]] = {}
    for item in inquiry.wanted:
        held = {name: {canonical_level(level)} | held.get(name, set()) for name, level in item.levels.items()}
    free = {name: levels for name, levels in held.items() if name != every.row_factor}
    kept = [
        result
        for result in every.results
        if all(canonical_level(levels_and_parameters(result).get(name, "")) in levels for name, levels in free.items())
    ]
    return ResultSet(tuple(kept)).tables


def _columns(inquiry: AdviceContext, best: Ranked | None, notes: Sequence[Note]) -> dict[str, str | Confidence]:
    ranked = inquiry.comparison.ranked
    known = len(ranked) > 1 and inquiry.quantity != RETRIES
    loss = {"expected_loss": _loss(inquiry.comparison.prospects[ranked[0]])} if known else {}
    if best is None:
        return {**loss}
    second = next((name for name in ranked if name != best.name), "")
    share = inquiry.margin_between(best.name, second) if second else None
    return {
        **loss,
        "best": best.name,
        "runner_up": second,
        "margin": percent(share) if second else "",
        "confidence": _confidence(inquiry, second, notes),
    }


def _confidence(inquiry: AdviceContext, second: str, notes: Sequence[Note]) -> Confidence:
    if any(note.reason in MISLEADING for note in notes):
        return Confidence.LOW
    return Confidence.HIGH if second and inquiry.comparison.error_probability <= _STRICT else Confidence.MODERATE


def _answer(inquiry: AdviceContext, tables: Tables) -> str:
    """The verdict, who is ahead where, and where retries happened; what does not fit is left out."""
    text = _verdict(inquiry)
    parts = [describe_tables(tables), *(describe_retries(table) for table, _ in tables if len(tables) == 1)]
    for part in parts:
        if len(text) + len(part) < _LONGEST:
            text = f"{text} {part}"
    return text[:_LONGEST]


def _verdict(inquiry: AdviceContext) -> str:
    ranking = inquiry.ranking
    of = f"for {inquiry.workload_text}, by {title(inquiry.quantity).lower()}"
    best = next((item for item in ranking if item.verdict is Verdict.BEST), None)
    if best is not None:
        return f"{best.name} is best {of}: {best.message}{inquiry.scope_note}{_odds(inquiry, best.name)}"
    none = f"No {inquiry.choice.noun} is"
    if inquiry.blocker is not None:
        return f"{none} best {of}: {inquiry.blocker.message}"
    equal = [item.name for item in ranking if item.verdict is Verdict.EQUAL]
    if equal:
        return f"{join_words(equal)} are equal within {percent(inquiry.margin)} {of}.{_odds(inquiry, equal[0])}"
    first = ranking[0]
    if first.verdict is Verdict.NOT_KNOWN:
        return f"{none} shown to be best {of}. {first.name}: {first.message}{_odds(inquiry, first.name)}"
    return f"{none} best {of}: {' '.join(f'{item.name}: {item.message}' for item in ranking)}"


def _odds(inquiry: AdviceContext, name: str) -> str:
    """How likely one is best, and what it is expected to cost to follow it."""
    if name not in inquiry.comparison.ranked or len(inquiry.comparison.ranked) == 1:
        return ""
    found = inquiry.comparison.prospects[name]
    likely = f"{min(100 * found.best, 99.9):.3g}%"
    assumed = ", if nodes differ as they usually do" if inquiry.comparison.one_node else ""
    loss = "" if inquiry.quantity == RETRIES else f"; the expected loss of choosing it is {_loss(found)}"
    return f" It is the best {inquiry.choice.noun} with a probability of {likely}{loss}{assumed}."


def _loss(found: Prospect) -> str:
    return percent(found.loss) if found.loss >= _LEAST_LOSS else f"< {percent(_LEAST_LOSS)}"


def _answered(inquiry: AdviceContext, best: Ranked | None, now: datetime) -> Condition:
    reason = inquiry.ranking[0].reason if inquiry.ranking else "NotMeasured"
    if best is None and inquiry.ranking[0].verdict is Verdict.INFEASIBLE:
        reason = "NoneFeasible"
    return _condition(ANSWERED, best is not None, reason, _verdict(inquiry)[:_LONGEST_MESSAGE], now)


def _order_changes(tables: Tables, found: Sequence[Crossover], now: datetime) -> Condition:
    if found:
        message = " ".join(_sentence(crossover, len(tables) > 1) for crossover in found)
        return _condition(ORDER_CHANGES, True, "Crossovers", message[:_LONGEST_MESSAGE], now)
    return _condition(ORDER_CHANGES, False, "NoneInRange", "None is shown in the measured range.", now)


def _sentence(crossover: Crossover, say_held: bool) -> str:
    held = ", ".join(f"{name} {level}" for name, level in crossover.held.items())
    return f"{held}: {crossover}" if say_held and held else str(crossover)


def _level_crossover(crossover: Crossover) -> LevelCrossover:
    return LevelCrossover(
        factor=crossover.factor,
        held=dict(crossover.held),
        lower_level=crossover.lower,
        upper_level=crossover.upper,
        ahead_below=crossover.below,
        ahead_above=crossover.above,
        confidence_parts_per_million=round(1e6 * crossover.confidence),
    )


def _settings(chosen: Settings) -> dict[str, str]:
    return {name: level for name, level in chosen.items() if name != Dimension.NODE_CLASS}


def _affinity(inquiry: AdviceContext, name: str, classes: Sequence[NodeClass]) -> NodeAffinity | None:
    node_class = inquiry.choice.alternatives[name].get(Dimension.NODE_CLASS)
    if node_class is None:
        return None
    nodes = sorted({result.spec.server.node for result in inquiry.measured.results_of(name)} - {""})
    chosen = next((item.spec.node_selector for item in classes if item.metadata.name == node_class), None)
    if chosen is not None:
        requirements = [
            NodeRequirement(key=key, operator=SelectorOperator.IN, values=(value,))
            for key, value in chosen.match_labels.items()
        ] + [NodeRequirement.model_validate(each.model_dump()) for each in chosen.match_expressions]
    elif nodes:
        requirements = [NodeRequirement(key=_HOSTNAME, operator=SelectorOperator.IN, values=tuple(nodes))]
    else:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(requirements))
    return NodeAffinity(required_during_scheduling_ignored_during_execution=RequiredNodes(node_selector_terms=(term,)))


def _condition(kind: str, status: bool, reason: str, message: str, now: datetime) -> Condition:
    return Condition(
        type=kind,
        status=str(status),
        reason=reason,
        message=message,
        last_transition_time=format_time(now),
        observed_generation=0,
    )
