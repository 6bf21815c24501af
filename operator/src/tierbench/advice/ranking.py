"""Ranks the alternatives of an advice: a verdict on each of them, with its reason."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from math import exp
from typing import Final

from tierbench.advice.posterior import Comparison, Posterior
from tierbench.advice.requirements import (
    Levels,
    Violation,
    WorkloadItem,
    WorkloadResults,
    architecture_violations,
    describe_workload,
    group_by_workload,
    violations,
)
from tierbench.advice.selection import Choice, Selection
from tierbench.advice.tables import RunResults, relative_margin, smaller_is_better
from tierbench.api.advice_answer import RankedAlternative, Verdict
from tierbench.api.placement_advice import PlacementAdviceSpec
from tierbench.results.quantities import RETRIES, is_bare_mean
from tierbench.results.units import join_words, percent, title
from tierbench.stats.distributions import TAIL
from tierbench.stats.posterior import Relation

HARMLESS: Final = frozenset({"SpreadTooWide", "TrialsFailed", "TrialsMissing", "ServerNotObserved"})
"""The reasons of invalid results that do not exclude an alternative. Intervals and caveats account for them."""
_MAX_NUMBER: Final = 10**15
"""The largest number in a status."""
_MAX_MESSAGE: Final = 512


@dataclass(frozen=True)
class Judgement:
    """The verdict on an alternative, with its reason."""

    verdict: Verdict
    reason: str
    message: str


@dataclass(frozen=True)
class AdviceContext:
    """The question of an advice and the results that answer it. `quantity` ranks the alternatives of `choice`."""

    spec: PlacementAdviceSpec
    choice: Choice
    selection: Selection
    kind: str
    quantity: str
    items: tuple[WorkloadItem, ...]
    measured: WorkloadResults

    @cached_property
    def violations(self) -> Mapping[str, tuple[Violation, ...]]:
        """The constraints that each alternative violates, or may violate."""
        return {
            name: (
                *architecture_violations(self.measured, name, self.spec.constraints),
                *violations(self.measured, name, self.spec.constraints, self.kind, self.items),
            )
            for name in self.measured.cells
        }

    @cached_property
    def posteriors(self) -> Mapping[str, Posterior]:
        """The posterior over the workload, for each alternative that was measured at all of it."""
        return self.measured.posteriors(self.quantity)

    @property
    def margin(self) -> float:
        """The smallest relative difference that matters."""
        return self.spec.min_margin_percent / 100

    @cached_property
    def excluded(self) -> Mapping[str, Judgement]:
        """The alternatives that cannot be compared or must not be chosen."""
        found = {name: self._exclude(name) for name in self.measured.cells}
        return {name: judgement for name, judgement in found.items() if judgement is not None}

    def _exclude(self, name: str) -> Judgement | None:
        known = [violation for violation in self.violations[name] if not violation.uncertain]
        violated = next((violation for violation in known if not violation.unknown), None)
        if violated is not None:
            return Judgement(Verdict.INFEASIBLE, violated.reason, violated.message)
        if not self.measured.combinations or not self.measured.has_all(name, self.quantity):
            return self._unmeasured(name)
        results = [result for result in self.measured.results_of(name) if result.status.counts.completed]
        invalid = [{note.reason for note in result.status.invalid} - HARMLESS for result in results]
        if all(invalid):
            reasons = join_words(sorted(set().union(*invalid)))
            message = f"None of its results is valid ({reasons}). Fix the cause and rerun the benchmark."
            return Judgement(Verdict.NO_DATA, "NotValid", message)
        if name not in self.posteriors:
            message = "There are too few successful trials per level for a confidence interval. Run more repetitions."
            if any(map(is_bare_mean, self.measured.results_of(name))):
                message = "A published mean without its number of trials and standard deviation cannot be compared."
            return Judgement(Verdict.NO_DATA, "TooFewTrials", message)
        if known:
            return Judgement(Verdict.NO_DATA, "NotMeasured", known[0].message)
        return None

    def _unmeasured(self, name: str) -> Judgement:
        missing = [item for item in self.measured.missing.get(name, ()) if item]
        reasons = {result.status.reason for cell in self.measured.cells[name].values() for result in cell.results}
        failures = join_words(sorted(reasons - {""}))
        if failures:
            message = f"Cases failed ({failures}). See `kubectl get results -o yaml`."
            return Judgement(Verdict.NO_DATA, "CasesFailed", message[:_MAX_MESSAGE])
        where = join_words(missing) if missing else "the levels of the others"
        return Judgement(Verdict.NO_DATA, "NotMeasured", f"It was not measured at {where}."[:_MAX_MESSAGE])

    @cached_property
    def comparable(self) -> tuple[str, ...]:
        """The alternatives that are compared."""
        return tuple(name for name in self.measured.cells if name not in self.excluded)

    @cached_property
    def comparison(self) -> Comparison:
        """The comparison of the alternatives over the workload."""
        return Comparison(self.quantity, {name: self.posteriors[name] for name in self.comparable}, self.margin)

    @cached_property
    def contradictions(self) -> tuple[tuple[str, str], ...]:
        """Pairs of alternatives of which one run shows the first to be better, and another run the second."""
        found: dict[frozenset[str], set[tuple[str, str]]] = {}
        for run in self._comparable_runs():
            posteriors = group_by_workload(run.results, self.items).posteriors(self.quantity)
            known = {name: posteriors[name] for name in self.comparable if name in posteriors}
            comparison = Comparison(self.quantity, known, self.margin)
            for winner, loser in permutations(known, 2):
                if comparison.beats(winner, loser):
                    found.setdefault(frozenset((winner, loser)), set()).add((winner, loser))
        return tuple(min(winners) for winners in found.values() if len(winners) > 1)

    def _comparable_runs(self) -> Iterable[RunResults]:
        """Returns the runs that measured all that is compared, if there are several."""
        runs = (*self.selection.current, *self.selection.before)
        if len(runs) == 1:
            return ()
        levels = _levels(self.measured)
        return [run for run in runs if _levels(group_by_workload(run.results, self.items)) == levels]

    @cached_property
    def blocker(self) -> Judgement | None:
        """The reason why nothing can be ranked, if there is one."""
        versions = {
            f"{result.status.engine.name} {result.status.engine.version}"
            for name in self.comparable
            for result in self.measured.results_of(name)
            if result.status.engine is not None
        }
        if len(versions) > 1:
            message = f"Results of {join_words(sorted(versions))} cannot be compared. Rerun the older benchmarks."
            return Judgement(Verdict.NO_DATA, "DifferentVersions", message)
        if self.contradictions:
            first, second = self.contradictions[0]
            message = (
                f"One run shows {first} ahead of {second}, and another run shows the opposite. Something else changed: "
                "find it, then rerun the benchmark."
            )
            return Judgement(Verdict.INCONCLUSIVE, "ContradictingRuns", message)
        return None

    @cached_property
    def judgements(self) -> Mapping[str, Judgement]:
        """The verdict on every alternative."""
        if self.blocker is not None:
            return dict(self.excluded) | dict.fromkeys(self.comparable, self.blocker)
        return dict(self.excluded) | {name: self._judge(name) for name in self.comparable}

    def _judge(self, name: str) -> Judgement:
        comparison, others = self.comparison, [other for other in self.comparison.ranked if other != name]
        if not others:
            return self._judge_only_one()
        winner = next((other for other in others if comparison.beats(other, name)), None)
        if winner is not None:
            return Judgement(Verdict.WORSE, "ShownWorse", f"{self._describe_margin(name, winner)}.")
        if comparison.leaders == (name,):
            return Judgement(Verdict.BEST, "ShownBetter", f"{self._describe_margin(name, others[0])}.")
        unbeaten = [other for other in others if not comparison.beats(name, other)]
        relations = {comparison.relation(name, other) for other in unbeaten}
        text = self._describe_margin(name, unbeaten[0])
        if relations == {Relation.EQUAL}:
            message = f"{text}: equal within {percent(self.margin)}."
            return Judgement(Verdict.EQUAL, "EqualWithinMargin", message)
        if relations <= {Relation.AHEAD, Relation.BEHIND, Relation.EQUAL}:
            message = f"{text}, perhaps by less than {percent(self.margin)}."
            return Judgement(Verdict.INCONCLUSIVE, "PerhapsWithinMargin", message)
        return Judgement(Verdict.INCONCLUSIVE, "CouldGoEitherWay", f"{text}, but the difference is inconclusive.")

    def _describe_margin(self, name: str, other: str) -> str:
        """Returns the margin between two alternatives, with their ratio and its interval."""
        ahead = self.comparison.ranked.index(name) < self.comparison.ranked.index(other)
        share = self.margin_between(name, other) if ahead else self.margin_between(other, name)
        ratio = self.comparison.ratio(name, other)
        nodes = ", on the nodes measured" if self.comparison.one_node else ""
        interval = f"ratio {ratio.value:.3g}, 95% CI {ratio.low:.3g}–{ratio.high:.3g}{nodes}"
        return f"{percent(share)} {'ahead of' if ahead else 'behind'} {other} ({interval})"

    def _judge_only_one(self) -> Judgement:
        infeasible = [name for name, each in self.excluded.items() if each.verdict is Verdict.INFEASIBLE]
        if infeasible:
            verb = "violates" if len(infeasible) == 1 else "violate"
            return Judgement(Verdict.BEST, "OnlyFeasible", f"{join_words(infeasible)} {verb} a constraint.")
        message = f"There is no other {self.choice.noun} to compare it with. Measure another one."
        return Judgement(Verdict.NO_DATA, "OneClassOnly" if self.choice.noun == "class" else "OneChoiceOnly", message)

    def margin_between(self, best: str, other: str) -> float | None:
        """Returns the margin between two alternatives, as a share of the value of `other`."""
        return relative_margin(self.posteriors[best].value, self.posteriors[other].value)

    @cached_property
    def tipping_point(self) -> float | None:
        """How much nodes must differ for the order of the two best to be inconclusive; None unless one has one node."""
        best = self.comparison.ranked[:2]
        if len(best) < 2 or not self.comparison.one_node or self.quantity == RETRIES:  # noqa: PLR2004 (two best)
            return None
        return self.comparison.tipping_point(*best)

    @property
    def estimand(self) -> str:
        """What is compared, in words."""
        what = "the nodes measured" if self.comparison.one_node else "the classes"
        if self.choice.noun != "class":
            what = "choices, on the nodes measured" if self.comparison.one_node else "choices"
        return f"ratio of means of {title(self.quantity).lower()} for {self.workload_text}, between {what}"[:512]

    @property
    def scope_note(self) -> str:
        """A sentence on how far the answer holds beyond the measured nodes, with a leading space; or nothing."""
        if self.tipping_point is None:
            return ""
        limit = percent(self.tipping_point)
        if self.choice.of_classes:
            return f" This holds for the classes unless their nodes differ by more than about {limit}."
        return f" This holds for other nodes unless they change the difference by more than about {limit}."

    @property
    def workload_text(self) -> str:
        """The workload in words."""
        return describe_workload(self.items)

    @cached_property
    def ranking(self) -> tuple[RankedAlternative, ...]:
        """Every alternative, by verdict, then by value."""
        by_value = Comparison(self.quantity, self.posteriors, self.margin).ranked
        place = {name: number for number, name in enumerate(by_value)}
        found, order = self.judgements, list(Verdict)
        names = sorted(found, key=lambda name: (order.index(found[name].verdict), place.get(name, len(place))))
        return tuple(_ranked(self, name) for name in names)


def _levels(measured: WorkloadResults) -> set[Levels]:
    return {combination.levels for combination in measured.combinations}


def _ranked(context: AdviceContext, name: str) -> RankedAlternative:
    judgement, posterior = context.judgements[name], context.posteriors.get(name)
    results = context.measured.results_of(name)
    return RankedAlternative(
        name=name,
        verdict=judgement.verdict,
        reason=judgement.reason,
        message=judgement.message[:_MAX_MESSAGE],
        nodes=len({result.spec.server.node for result in results}),
        trials=sum(result.status.counts.completed for result in results),
        retries=sum(result.status.counts.retries for result in results),
        **({} if posterior is None else _value(context, posterior)),
        **_relative_values(context, name),
    )


def _value(context: AdviceContext, posterior: Posterior) -> dict[str, int]:
    """Returns the value and its interval, in the unit of the quantity."""
    log_cost = posterior.nodes_log_cost if context.comparison.one_node else posterior.class_log_cost
    ends = sorted(cost_sign(context) * log_cost.quantile(tail) for tail in (TAIL, 1 - TAIL))
    unit = 1e6 if context.quantity == RETRIES else 1.0
    low, high = (min(round(unit * exp(end)), _MAX_NUMBER) for end in ends)
    return {"value": round(posterior.value), "confidence_low": low, "confidence_high": high}


def cost_sign(context: AdviceContext) -> int:
    """Returns 1 if a larger value costs more, else -1."""
    return 1 if smaller_is_better(context.quantity) else -1


def _relative_values(context: AdviceContext, name: str) -> dict[str, int | None]:
    """Returns the values of an alternative relative to the leader, or those of the leader relative to the next."""
    ranked = context.comparison.ranked
    if name not in ranked or len(ranked) == 1:
        return {}
    leader, other = ranked[0], name if name != ranked[0] else ranked[1]
    share = context.margin_between(leader, other)
    ratio = context.comparison.ratio(name, other if name == leader else leader)
    prospect = context.comparison.prospects[name]
    found = {
        "margin_parts_per_million": None if share is None else round(1e6 * share),
        "ratio_parts_per_million": parts_per_million(ratio.value),
        "ratio_low_parts_per_million": parts_per_million(ratio.low),
        "ratio_high_parts_per_million": parts_per_million(ratio.high),
        "probability_best_parts_per_million": parts_per_million(min(prospect.best, 1.0)),
    }
    if context.quantity == RETRIES:
        return found
    return found | {"expected_loss_parts_per_million": parts_per_million(prospect.loss)}


def parts_per_million(share: float) -> int:
    """Returns a share in parts per million, at most the largest number of a status."""
    return round(1e6 * min(share, _MAX_NUMBER / 1e6))
