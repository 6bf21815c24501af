"""Answers a PlacementAdvice from the results that exist."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from tierbench.advice.answer import (
    FactorSummary,
    describe_retries,
    describe_tables,
    effect_statement,
    knee_statement,
    summarize_factors,
)
from tierbench.advice.caveats import MISLEADING, Crossover, caveats, crossovers, next_measurements
from tierbench.advice.posterior import LevelVerdict, level_verdicts
from tierbench.advice.ranking import AdviceContext, parts_per_million
from tierbench.advice.requirements import canonical_level, group_by_workload, workload_items
from tierbench.advice.selection import Choice, Selection, Settings, objective_of, quantities_read, quantity_of, select
from tierbench.advice.tables import ResultSet, Table, with_derived_quantities
from tierbench.api.advice_answer import (
    MOST_ALTERNATIVES,
    MOST_EFFECTS,
    MOST_KNEES,
    Confidence,
    EffectAt,
    EffectVerdict,
    FactorEffect,
    FactorKnee,
    LevelCrossover,
    NodeAffinity,
    NodeRequirement,
    NodeSelectorTerm,
    PlacementAdviceStatus,
    RankedAlternative,
    RequiredNodes,
    Verdict,
)
from tierbench.api.model import Condition
from tierbench.api.node_class import NodeClass, SelectorOperator
from tierbench.api.placement_advice import Dimension, PlacementAdviceSpec
from tierbench.api.result import BenchmarkResult, Note
from tierbench.kube.meta import format_time
from tierbench.results.quantities import RETRIES, levels_and_parameters
from tierbench.results.units import join_words, percent, title
from tierbench.stats.posterior import Prospect

BEST_FOUND: Final = "BestFound"
ORDER_CHANGES: Final = "OrderChanges"
_HIGH_CONFIDENCE: Final = 0.01
_MIN_LOSS: Final = 0.0001
_MAX_ANSWER: Final = 1024
_MAX_MESSAGE: Final = 4096
_MAX_STATEMENT: Final = 1024
_MAX_CROSSOVERS: Final = 32
_HOSTNAME: Final = "kubernetes.io/hostname"
Tables = Sequence[tuple[Table, Sequence[LevelVerdict]]]


def advise(
    spec: PlacementAdviceSpec,
    results: Iterable[BenchmarkResult],
    now: datetime,
    classes: Sequence[NodeClass] = (),
) -> PlacementAdviceStatus:
    """Returns the status of an advice, without `observedGeneration`.

    `results` are all results in the namespace, as earlier runs show whether runs contradict each other. The affinity
    has the selectors of `classes`. For a class that is not among them, it has the names of nodes. `now` is the
    transition time of the conditions.
    """
    every = list(results)
    selection = select(spec, every)
    if len(selection.kinds) != 1:
        return unanswered(*_why_no_results(spec, selection, every), now)
    kind = selection.kinds[0]
    there = {name for result in selection.results for name in result.status.statistics}
    quantity = quantity_of(objective_of(spec), kind, there)
    items = workload_items(spec.workload)
    read = quantities_read(spec, kind, there)
    selection = selection.map_results(
        lambda results: tuple(with_derived_quantities(result, read) for result in results)
    )
    choice = Choice(spec.choose, selection.results, frozenset(name for item in items for name in item.levels))
    if not 0 < len(choice.alternatives) <= MOST_ALTERNATIVES:
        return unanswered(*_why_no_ranking(choice), now)
    relabelled = selection.map_results(choice.relabel)
    context = AdviceContext(
        spec, choice, relabelled, kind, quantity, items, group_by_workload(relabelled.results, items)
    )
    without = spec.choose if len(spec.choose) == 1 else ()
    factors = summarize_factors(selection.results, quantity, items, context.margin, without)
    laid_out = _tables(context)
    tables = list(zip(laid_out, level_verdicts(laid_out, quantity, context.margin), strict=True))
    found = tuple(crossover for table, verdicts in tables for crossover in crossovers(table, verdicts))
    found = found[:_MAX_CROSSOVERS]
    best = next((item for item in context.ranking if item.verdict is Verdict.BEST), None)
    notes = caveats(context)
    return PlacementAdviceStatus(
        **_columns(context, best, notes),
        settings={} if best is None else _settings(choice.alternatives[best.name]),
        answer=_answer(context, tables),
        comparison=context.estimand if context.comparison.ranked else "",
        tolerated_node_deviation="" if context.tipping_point is None else percent(context.tipping_point),
        quantity=context.quantity,
        ranking=context.ranking,
        crossovers=tuple(map(_level_crossover, found)),
        node_affinity=None if best is None else _affinity(context, best.name, classes),
        effects=_factor_effects(factors),
        knees=_factor_knees(factors),
        caveats=notes,
        recommendations=next_measurements(context, found),
        conditions=(_answered(context, best, now), _order_changes(tables, found, now)),
    )


def _why_no_results(
    spec: PlacementAdviceSpec, selection: Selection, results: Sequence[BenchmarkResult]
) -> tuple[str, str]:
    """Returns the reason and the message of an advice whose selection has no results, or results of several kinds."""
    if selection.kinds:
        names = join_words(selection.kinds)
        message = f"{names} measure different quantities. Name benchmarks of one kind in spec.benchmarks."
        return "DifferentKinds", message
    clients = sorted({result.spec.client.node_class for result in results})
    there = f"there are results with clients on {join_words(clients)}" if clients else "there are no results at all"
    message = (
        f"No selected result has clients on {spec.client_class_name}; {there}. Run a benchmark, or change the spec."
    )
    return "NoResults", message


def _why_no_ranking(choice: Choice) -> tuple[str, str]:
    """Returns the reason and the message of an advice that has no alternatives, or too many."""
    number = len(choice.alternatives)
    if number:
        message = (
            f"There are {number} alternatives, but at most {MOST_ALTERNATIVES} can be ranked. Choose less at once."
        )
        return "TooManyAlternatives", message
    there = {name for result in choice.results for name in levels_and_parameters(result)}
    known = [Dimension.NODE_CLASS, *(name for name in Dimension if name in there)]
    message = f"No result has {join_words(choice.dimensions, 'or')}. You can choose {join_words(known, 'or')}."
    return "NothingToChoose", message


def unanswered(reason: str, message: str, now: datetime) -> PlacementAdviceStatus:
    """Returns the status of an advice without an answer."""
    unknown = _condition(ORDER_CHANGES, False, reason, "Unknown, as there is no answer.", now)
    return PlacementAdviceStatus(
        answer=message, conditions=(_condition(BEST_FOUND, False, reason, message, now), unknown)
    )


def _tables(context: AdviceContext) -> tuple[Table, ...]:
    """Returns the results along the factor with the most levels, at the levels of other factors that are asked for."""
    every = ResultSet(context.selection.results)
    wanted: dict[str, set[str]] = {}
    for item in context.items:
        for name, level in item.levels.items():
            if name != every.row_factor:
                wanted.setdefault(name, set()).add(canonical_level(level))
    kept = [
        result
        for result in every.results
        if all(
            canonical_level(levels_and_parameters(result).get(name, "")) in levels for name, levels in wanted.items()
        )
    ]
    return ResultSet(tuple(kept)).tables


def _columns(
    context: AdviceContext, best: RankedAlternative | None, notes: Sequence[Note]
) -> dict[str, str | Confidence]:
    """Returns the fields that `kubectl get` shows."""
    ranked = context.comparison.ranked
    has_loss = len(ranked) > 1 and context.quantity != RETRIES
    loss = {"expected_loss": _loss(context.comparison.prospects[ranked[0]])} if has_loss else {}
    if best is None:
        return {**loss}
    second = next((name for name in ranked if name != best.name), "")
    share = context.margin_between(best.name, second) if second else None
    return {
        **loss,
        "best": best.name,
        "runner_up": second,
        "margin": percent(share) if second else "",
        "confidence": _confidence(context, second, notes),
    }


def _confidence(context: AdviceContext, second: str, notes: Sequence[Note]) -> Confidence:
    if any(note.reason in MISLEADING for note in notes):
        return Confidence.LOW
    is_high = second and context.comparison.error_probability <= _HIGH_CONFIDENCE
    return Confidence.HIGH if is_high else Confidence.MODERATE


def _answer(context: AdviceContext, tables: Tables) -> str:
    """Returns the verdict, the leaders at each level, and the retries, as far as they fit into the field."""
    text = _verdict(context)
    retries = describe_retries(tables[0][0]) if len(tables) == 1 else ""
    for part in filter(None, (describe_tables(tables), retries)):
        if len(text) + len(part) < _MAX_ANSWER:
            text = f"{text} {part}"
    return text[:_MAX_ANSWER]


def _verdict(context: AdviceContext) -> str:
    ranking = context.ranking
    basis = f"for {context.workload_text}, by {title(context.quantity).lower()}"
    best = next((item for item in ranking if item.verdict is Verdict.BEST), None)
    if best is not None:
        return f"{best.name} is best {basis}: {best.message}{context.scope_note}{_prospect(context, best.name)}"
    none = f"No {context.choice.noun} is"
    if context.blocker is not None:
        return f"{none} best {basis}: {context.blocker.message}"
    equal = [item.name for item in ranking if item.verdict is Verdict.EQUAL]
    if equal:
        prospect = _prospect(context, equal[0])
        return f"{join_words(equal)} are equal within {percent(context.margin)} {basis}.{prospect}"
    first = ranking[0]
    if first.verdict is Verdict.INCONCLUSIVE:
        return f"{none} shown to be best {basis}. {first.name}: {first.message}{_prospect(context, first.name)}"
    return f"{none} best {basis}: {' '.join(f'{item.name}: {item.message}' for item in ranking)}"


def _prospect(context: AdviceContext, name: str) -> str:
    """Returns a sentence with the probability that an alternative is best, and the expected loss of choosing it."""
    if name not in context.comparison.ranked or len(context.comparison.ranked) == 1:
        return ""
    prospect = context.comparison.prospects[name]
    probability = f"{min(100 * prospect.best, 99.9):.3g}%"
    assumption = ", if nodes differ as they usually do" if context.comparison.one_node else ""
    loss = "" if context.quantity == RETRIES else f"; the expected loss of choosing it is {_loss(prospect)}"
    return f" It is the best {context.choice.noun} with a probability of {probability}{loss}{assumption}."


def _loss(prospect: Prospect) -> str:
    return percent(prospect.loss) if prospect.loss >= _MIN_LOSS else f"< {percent(_MIN_LOSS)}"


def _answered(context: AdviceContext, best: RankedAlternative | None, now: datetime) -> Condition:
    reason = context.ranking[0].reason if context.ranking else "NotMeasured"
    if best is None and context.ranking[0].verdict is Verdict.INFEASIBLE:
        reason = "NoneFeasible"
    return _condition(BEST_FOUND, best is not None, reason, _verdict(context)[:_MAX_MESSAGE], now)


def _order_changes(tables: Tables, found: Sequence[Crossover], now: datetime) -> Condition:
    if found:
        message = " ".join(_sentence(crossover, len(tables) > 1) for crossover in found)
        return _condition(ORDER_CHANGES, True, "Crossovers", message[:_MAX_MESSAGE], now)
    return _condition(ORDER_CHANGES, False, "NoneInRange", "No crossover is shown in the measured range.", now)


def _sentence(crossover: Crossover, with_held: bool) -> str:
    held = ", ".join(f"{name} {level}" for name, level in crossover.held.items())
    return f"{held}: {crossover}" if with_held and held else str(crossover)


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


def _factor_effects(summary: FactorSummary) -> tuple[FactorEffect, ...]:
    """Returns the largest effects as the status of an advice has them."""
    return tuple(
        FactorEffect(
            factor=effect.factor,
            from_level=effect.first,
            to_level=effect.second,
            by=effect.by,
            statement=effect_statement(effect)[:_MAX_STATEMENT],
            at=tuple(
                EffectAt(
                    level=each.level,
                    verdict=EffectVerdict[each.relation.name],
                    ratio_parts_per_million=parts_per_million(each.ratio.value),
                    low_parts_per_million=parts_per_million(each.ratio.low),
                    high_parts_per_million=parts_per_million(each.ratio.high),
                )
                for each in effect.level_effects
            ),
        )
        for effect in summary.effects[:MOST_EFFECTS]
    )


def _factor_knees(summary: FactorSummary) -> tuple[FactorKnee, ...]:
    """Returns the knees as the status of an advice has them."""
    return tuple(
        FactorKnee(
            factor=knee.factor,
            by=knee.by,
            statement=knee_statement(knee)[:_MAX_STATEMENT],
            at=knee.level_knees,
        )
        for knee in summary.knees[:MOST_KNEES]
    )


def _settings(settings: Settings) -> dict[str, str]:
    """Returns the settings of an alternative without its node class."""
    return {name: level for name, level in settings.items() if name != Dimension.NODE_CLASS}


def _affinity(context: AdviceContext, name: str, classes: Sequence[NodeClass]) -> NodeAffinity | None:
    """Returns the affinity to the nodes of an alternative; None if it has no node class or no node."""
    node_class = context.choice.alternatives[name].get(Dimension.NODE_CLASS)
    if node_class is None:
        return None
    nodes = sorted({result.spec.server.node for result in context.measured.results_of(name)} - {""})
    selector = next((item.spec.node_selector for item in classes if item.metadata.name == node_class), None)
    if selector is not None:
        requirements = [
            NodeRequirement(key=key, operator=SelectorOperator.IN, values=(value,))
            for key, value in selector.match_labels.items()
        ] + [NodeRequirement.model_validate(each.model_dump()) for each in selector.match_expressions]
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
