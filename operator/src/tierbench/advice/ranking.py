"""A verdict on each alternative, with its reason."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp
from typing import Final

from tierbench.advice.constraints import Violation, architecture_violations, violations
from tierbench.advice.estimate import relative_margin, smaller_is_better
from tierbench.advice.posterior import Comparison, Posterior, pairs
from tierbench.advice.selection import Choice, Selection
from tierbench.advice.tables import RunResults
from tierbench.advice.workload import Levels, WorkloadItem, WorkloadResults, describe_workload, group_by_workload
from tierbench.api.advice_answer import Ranked, Verdict
from tierbench.api.placement_advice import PlacementAdviceSpec
from tierbench.results.published import is_bare_mean
from tierbench.results.quantities import RETRIES
from tierbench.results.units import join_words, percent, title
from tierbench.stats.posterior import Relation
from tierbench.stats.samples import TAIL

HARMLESS: Final = frozenset({"SpreadTooWide", "TrialsFailed", "TrialsMissing", "ServerNotObserved"})
"""Reasons of results that are not valid which intervals and caveats account for."""
_MOST: Final = 10**15
"""What numbers in a status do not go beyond."""


@dataclass(frozen=True)
class Judgement:
    """A verdict, and why."""

    verdict: Verdict
    reason: str
    message: str


@dataclass(frozen=True)
class AdviceContext:
    """A question and all that is known of it. `quantity` is what the alternatives of `choice` are ranked by."""

    spec: PlacementAdviceSpec
    choice: Choice
    selection: Selection
    kind: str
    quantity: str
    wanted: tuple[WorkloadItem, ...]
    measured: WorkloadResults

    @cached_property
    def breaches(self) -> Mapping[str, tuple[Violation, ...]]:
        """The constraints that a class does not keep to, or might not."""
        return {
            name: (
                *architecture_violations(self.measured, name, self.spec.constraints),
                *violations(self.measured, name, self.spec.constraints, self.kind, self.wanted),
            )
            for name in self.measured.cells
        }

    @cached_property
    def posteriors(self) -> Mapping[str, Posterior]:
        """The quantity over the workload, of every class that has all of it."""
        return self.measured.posteriors(self.quantity)

    @property
    def margin(self) -> float:
        """The smallest share that is worth having."""
        return parse_percent(self.spec.smallest_margin)

    @cached_property
    def excluded(self) -> Mapping[str, Judgement]:
        """The classes that cannot be compared, or must not be chosen."""
        found = {name: self._excluded(name) for name in self.measured.cells}
        return {name: said for name, said in found.items() if said is not None}

    def _excluded(self, name: str) -> Judgement | None:
        sure = [breach for breach in self.breaches[name] if not breach.uncertain]
        broken = next((breach for breach in sure if not breach.unknown), None)
        if broken is not None:
            return Judgement(Verdict.INFEASIBLE, broken.reason, broken.message)
        if not self.measured.combinations or not self.measured.has_all(name, self.quantity):
            return self._unmeasured(name)
        used = [result for result in self.measured.results_of(name) if result.status.counts.completed]
        spoiled = [{note.reason for note in result.status.invalid} - HARMLESS for result in used]
        if all(spoiled):
            reasons = join_words(sorted(set().union(*spoiled)))
            return Judgement(
                Verdict.NO_DATA, "NotValid", f"Not one of its results is valid ({reasons}): mend it, run again."
            )
        if name not in self.posteriors:
            message = "So few good trials a level give no interval for this: repeat more often."
            if any(map(is_bare_mean, self.measured.results_of(name))):
                message = "Published means without their number of trials and deviation decide nothing: measure it."
            return Judgement(Verdict.NO_DATA, "TooFewTrials", message)
        if sure:
            return Judgement(Verdict.NO_DATA, "NotMeasured", sure[0].message)
        return None

    def _unmeasured(self, name: str) -> Judgement:
        missing = [item for item in self.measured.missing.get(name, ()) if item]
        failures = {result.status.reason for of in self.measured.cells[name].values() for result in of.results}
        failed = join_words(sorted(failures - {""}))
        if failed:
            return Judgement(
                Verdict.NO_DATA, "CasesFailed", f"Cases failed ({failed}): see `kubectl get results -o yaml`."[:512]
            )
        where = f" at {join_words(missing)}" if missing else " at the levels of the others"
        return Judgement(Verdict.NO_DATA, "NotMeasured", f"It was not measured{where}."[:512])

    @cached_property
    def comparable(self) -> tuple[str, ...]:
        """The classes that are compared."""
        return tuple(name for name in self.measured.cells if name not in self.excluded)

    @cached_property
    def comparison(self) -> Comparison:
        """The comparison."""
        return Comparison(self.quantity, {name: self.posteriors[name] for name in self.comparable}, self.margin)

    @cached_property
    def contradictions(self) -> tuple[tuple[str, str], ...]:
        """Pairs of classes of which one run shows one to be better, and another the other."""
        found: dict[frozenset[str], set[tuple[str, str]]] = {}
        for run in self._comparable_runs():
            known = group_by_workload(run.results, self.wanted).posteriors(self.quantity)
            contest = Comparison(
                self.quantity, {name: known[name] for name in self.comparable if name in known}, self.margin
            )
            for first, second in pairs(contest.posteriors):
                for winner, loser in ((first, second), (second, first)):
                    if contest.beats(winner, loser):
                        found.setdefault(frozenset((first, second)), set()).add((winner, loser))
        return tuple(next(iter(sorted(winners))) for winners in found.values() if len(winners) > 1)

    def _comparable_runs(self) -> Iterable[RunResults]:
        """Runs that measured all that is compared, if there are several."""
        every = (*self.selection.current, *self.selection.before)
        if len(every) == 1:
            return ()
        wanted = _levels(self.measured)
        return [run for run in every if _levels(group_by_workload(run.results, self.wanted)) == wanted]

    @cached_property
    def blocker(self) -> Judgement | None:
        """What stands against any ranking."""
        versions = {
            f"{result.status.engine.name} {result.status.engine.version}"
            for name in self.comparable
            for result in self.measured.results_of(name)
            if result.status.engine is not None
        }
        if len(versions) > 1:
            message = f"Results of {join_words(sorted(versions))} cannot be compared: run the older benchmarks again."
            return Judgement(Verdict.NO_DATA, "DifferentVersions", message)
        if self.contradictions:
            first, second = self.contradictions[0]
            message = (
                f"One run shows {first} ahead of {second}, and another the other way round: "
                "something else has changed. Find it, and run again."
            )
            return Judgement(Verdict.NOT_KNOWN, "ContradictingRuns", message)
        return None

    @cached_property
    def judgements(self) -> Mapping[str, Judgement]:
        """The verdict on every class."""
        if self.blocker is not None:
            return dict(self.excluded) | dict.fromkeys(self.comparable, self.blocker)
        return dict(self.excluded) | {name: self._compare(name) for name in self.comparable}

    def _compare(self, name: str) -> Judgement:
        contest, others = self.comparison, [other for other in self.comparison.ranked if other != name]
        if not others:
            return self._alone()
        ahead = next((other for other in others if contest.beats(other, name)), None)
        if ahead is not None:
            return Judgement(Verdict.WORSE, "ShownWorse", f"{self._describe_margin(name, ahead)}.")
        if contest.leaders == (name,):
            return Judgement(Verdict.BEST, "ShownBetter", f"{self._describe_margin(name, others[0])}.")
        rivals = [other for other in others if not contest.beats(name, other)]
        outcomes = {contest.outcome(name, other) for other in rivals}
        if outcomes == {Relation.EQUAL}:
            message = f"{self._describe_margin(name, rivals[0])}: equal within {percent(self.margin)}."
            return Judgement(Verdict.EQUAL, "EqualWithinMargin", message)
        perhaps = outcomes <= {Relation.AHEAD, Relation.BEHIND, Relation.EQUAL}
        reason = "PerhapsWithinMargin" if perhaps else "CouldGoEitherWay"
        words = f"perhaps by less than {percent(self.margin)}" if perhaps else "but it could go either way"
        return Judgement(Verdict.NOT_KNOWN, reason, f"{self._describe_margin(name, rivals[0])}, {words}.")

    def _describe_margin(self, name: str, other: str) -> str:
        """How far a class lies from another, with the ratio and its interval."""
        ahead = self.comparison.ranked.index(name) < self.comparison.ranked.index(other)
        share = self.margin_between(name, other) if ahead else self.margin_between(other, name)
        found = self.comparison.ratio(name, other)
        interval = f"{found.low:.3g} to {found.high:.3g}"
        of = ", on the nodes measured" if self.comparison.one_node else ""
        return f"{percent(share)} {'ahead of' if ahead else 'behind'} {other} (ratio {found.value:.3g}, {interval}{of})"

    def _alone(self) -> Judgement:
        infeasible = [name for name, said in self.excluded.items() if said.verdict is Verdict.INFEASIBLE]
        if infeasible:
            return Judgement(Verdict.BEST, "OnlyFeasible", f"{join_words(infeasible)} cannot be chosen.")
        message = f"There is no other {self.choice.noun} to compare it with: measure another."
        return Judgement(Verdict.NO_DATA, "OneClassOnly" if self.choice.noun == "class" else "OneChoiceOnly", message)

    def margin_between(self, best: str, other: str) -> float | None:
        """How far `best` lies from `other`, as a share of the other's value."""
        return relative_margin(self.posteriors[best].value, self.posteriors[other].value)

    @cached_property
    def tipping_point(self) -> float | None:
        """How far nodes must differ for the order of the two best to be open; None unless a class stands on one."""
        ranked = self.comparison.ranked
        if len(ranked) < 2 or not self.comparison.one_node or self.quantity == RETRIES:  # noqa: PLR2004 (two best)
            return None
        return self.comparison.tipping_point(ranked[0], ranked[1])

    @property
    def estimand(self) -> str:
        """What is compared, in words."""
        of = "the nodes measured" if self.comparison.one_node else "the classes"
        if self.choice.noun != "class":
            of = "choices, on the nodes measured" if self.comparison.one_node else "choices"
        return f"ratio of means of {title(self.quantity).lower()} for {self.workload_text}, between {of}"[:512]

    @property
    def scope_note(self) -> str:
        """How far the answer carries beyond the nodes that were measured, a sentence after others; or nothing."""
        if self.tipping_point is None:
            return ""
        most = percent(self.tipping_point)
        if self.choice.of_classes:
            return f" It holds for the classes unless their nodes differ by more than about {most}."
        return f" It holds for other nodes unless these change what lies between by more than about {most}."

    @property
    def workload_text(self) -> str:
        """The workload in words."""
        return describe_workload(self.wanted)

    @cached_property
    def ranking(self) -> tuple[Ranked, ...]:
        """Every alternative: by verdict, then by value."""
        place = {name: number for number, name in enumerate(_by_value(self))}
        found, order = self.judgements, list(Verdict)
        names = sorted(found, key=lambda name: (order.index(found[name].verdict), place.get(name, len(place))))
        return tuple(_ranked(self, name) for name in names)


def _levels(measured: WorkloadResults) -> set[Levels]:
    return {combination.levels for combination in measured.combinations}


def _by_value(inquiry: AdviceContext) -> Sequence[str]:
    return Comparison(inquiry.quantity, inquiry.posteriors, inquiry.margin).ranked


def parse_percent(text: str) -> float:
    """The share that a percentage as in `5%` is."""
    return float(text.removesuffix("%")) / 100


def _ranked(inquiry: AdviceContext, name: str) -> Ranked:
    said, found = inquiry.judgements[name], inquiry.posteriors.get(name)
    used = inquiry.measured.results_of(name)
    return Ranked(
        name=name,
        verdict=said.verdict,
        reason=said.reason,
        message=said.message[:512],
        nodes=len({result.spec.server.node for result in used}),
        trials=sum(result.status.counts.completed for result in used),
        retries=sum(result.status.counts.retries for result in used),
        **({} if found is None else _value(inquiry, found)),
        **_rival(inquiry, name),
    )


def _value(inquiry: AdviceContext, found: Posterior) -> dict[str, int]:
    """The value of a class and its interval, in the quantity's unit."""
    belief = found.of_nodes if inquiry.comparison.one_node else found.of_class
    ends = sorted(cost_sign(inquiry) * belief.quantile(tail) for tail in (TAIL, 1 - TAIL))
    unit = 1e6 if inquiry.quantity == RETRIES else 1.0
    low, high = (min(round(unit * exp(end)), _MOST) for end in ends)
    return {"value": round(found.value), "confidence_low": low, "confidence_high": high}


def cost_sign(inquiry: AdviceContext) -> int:
    """Which way costs go with values."""
    return 1 if smaller_is_better(inquiry.quantity) else -1


def _rival(inquiry: AdviceContext, name: str) -> dict[str, int | None]:
    """How a class stands to the leader, or the leader to the next; and how likely it is best."""
    ranked = inquiry.comparison.ranked
    if name not in ranked or len(ranked) == 1:
        return {}
    leader, other = ranked[0], name if name != ranked[0] else ranked[1]
    share = inquiry.margin_between(leader, other)
    ratio = inquiry.comparison.ratio(name, other if name == leader else leader)
    prospect = inquiry.comparison.prospects[name]
    found = {
        "margin_parts_per_million": None if share is None else round(1e6 * share),
        "ratio_parts_per_million": parts_per_million(ratio.value),
        "ratio_low_parts_per_million": parts_per_million(ratio.low),
        "ratio_high_parts_per_million": parts_per_million(ratio.high),
        "probability_best_parts_per_million": parts_per_million(min(prospect.best, 1.0)),
    }
    if inquiry.quantity == RETRIES:
        return found
    return found | {"expected_loss_parts_per_million": parts_per_million(prospect.loss)}


def parts_per_million(share: float) -> int:
    """A share in parts per million, bounded."""
    return round(1e6 * min(share, _MOST / 1e6))
