"""A verdict on each class, with its reason."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tierbench.advice.constraints import Breach, architecture_breaches, breaches
from tierbench.advice.contests import Contest, contests, pairs
from tierbench.advice.estimate import Estimate, margin
from tierbench.advice.matrix import RunResults
from tierbench.advice.selection import Selection
from tierbench.advice.words import joined
from tierbench.advice.workload import Item, Levels, Measured, asked, sort_results
from tierbench.api.placement_advice import PlacementAdviceSpec, RankedClass, Verdict
from tierbench.results.units import percent

HARMLESS: Final = frozenset({"SpreadTooWide", "TrialsFailed", "TrialsMissing", "ServerNotObserved"})
"""Reasons of results that are not valid which intervals and caveats account for."""
_SHOWN_FROM: Final = 0.001


@dataclass(frozen=True)
class Judgement:
    """A verdict, and why."""

    verdict: Verdict
    reason: str
    message: str


@dataclass(frozen=True)
class Inquiry:
    """A question and all that is known of it. `quantity` is what classes are ranked by."""

    spec: PlacementAdviceSpec
    selection: Selection
    kind: str
    quantity: str
    wanted: tuple[Item, ...]
    measured: Measured

    @cached_property
    def breaches(self) -> Mapping[str, tuple[Breach, ...]]:
        """The constraints that a class does not keep to, or might not."""
        return {
            name: (
                *architecture_breaches(self.measured, name, self.spec.constraints),
                *breaches(self.measured, name, self.spec.constraints, self.kind),
            )
            for name in self.measured.cells
        }

    @cached_property
    def estimates(self) -> Mapping[str, Estimate]:
        """The quantity over the workload, of every class that has all of it."""
        found = {name: self.measured.estimate(name, self.quantity) for name in self.measured.cells}
        return {name: known for name, known in found.items() if known is not None}

    @cached_property
    def excluded(self) -> Mapping[str, Judgement]:
        """The classes that cannot be compared, or must not be chosen."""
        found = {name: self._excluded(name) for name in self.measured.cells}
        return {name: said for name, said in found.items() if said is not None}

    def _excluded(self, name: str) -> Judgement | None:
        sure = [breach for breach in self.breaches[name] if not breach.unsure]
        broken = next((breach for breach in sure if not breach.unknown), None)
        if broken is not None:
            return Judgement(Verdict.INFEASIBLE, broken.reason, broken.message)
        if name not in self.estimates:
            return self._unmeasured(name)
        used = [result for result in self.measured.used(name) if result.status.counts.completed]
        spoiled = [{note.reason for note in result.status.invalid} - HARMLESS for result in used]
        if all(spoiled):
            reasons = joined(sorted(set().union(*spoiled)))
            return Judgement(
                Verdict.NO_DATA, "NotValid", f"Not one of its results is valid ({reasons}): mend it, run again."
            )
        if self.estimates[name].error is None:
            trials = self.estimates[name].count
            message = f"{trials} good trial{'s' * (trials != 1)} a level give no interval for this: repeat more often."
            return Judgement(Verdict.NO_DATA, "TooFewTrials", message)
        if sure:
            return Judgement(Verdict.NO_DATA, "NotMeasured", sure[0].message)
        return None

    def _unmeasured(self, name: str) -> Judgement:
        missing = [item for item in self.measured.missing.get(name, ()) if item]
        failures = {result.status.reason for of in self.measured.cells[name].values() for result in of.results}
        failed = joined(sorted(failures - {""}))
        if failed:
            return Judgement(
                Verdict.NO_DATA, "CasesFailed", f"Cases failed ({failed}): see `kubectl get results -o yaml`."[:512]
            )
        where = f" at {joined(missing)}" if missing else " at the levels of the others"
        return Judgement(Verdict.NO_DATA, "NotMeasured", f"It was not measured{where}."[:512])

    @cached_property
    def compared(self) -> tuple[str, ...]:
        """The classes that are compared."""
        return tuple(name for name in self.measured.cells if name not in self.excluded)

    @cached_property
    def contest(self) -> Contest:
        """The comparison."""
        return contests({"": {name: self.estimates[name] for name in self.compared}}, self.quantity)[""]

    @cached_property
    def contradictions(self) -> tuple[tuple[str, str], ...]:
        """Pairs of classes of which one run shows one to be better, and another the other."""
        found: dict[frozenset[str], set[tuple[str, str]]] = {}
        for run in self._comparable_runs():
            contest = sort_results(run.results, self.wanted).contest(self.compared, self.quantity)
            for first, second in pairs(contest.estimates):
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
        return [run for run in every if _levels(sort_results(run.results, self.wanted)) == wanted]

    @cached_property
    def obstacle(self) -> Judgement | None:
        """What stands against any ranking."""
        versions = {
            f"{result.status.engine.name} {result.status.engine.version}"
            for name in self.compared
            for result in self.measured.used(name)
            if result.status.engine is not None
        }
        if len(versions) > 1:
            message = f"Results of {joined(sorted(versions))} cannot be compared: run the older benchmarks again."
            return Judgement(Verdict.NO_DATA, "DifferentVersions", message)
        if self.contradictions:
            first, second = self.contradictions[0]
            message = (
                f"One run shows {first} ahead of {second}, and another the other way round: "
                "something else has changed. Find it, and run again."
            )
            return Judgement(Verdict.TIED, "ContradictingRuns", message)
        return None

    @cached_property
    def judgements(self) -> Mapping[str, Judgement]:
        """The verdict on every class."""
        if self.obstacle is not None:
            return dict(self.excluded) | dict.fromkeys(self.compared, self.obstacle)
        return dict(self.excluded) | {name: self._compare(name) for name in self.compared}

    def _compare(self, name: str) -> Judgement:
        contest, others = self.contest, [other for other in self.contest.ranked if other != name]
        if not others:
            return self._alone()
        if name not in contest.leaders:
            ahead = next(other for other in others if contest.beats(other, name))
            behind = percent(self.margin(ahead, name))
            return Judgement(
                Verdict.WORSE, "ShownWorse", f"{behind} behind {ahead} ({chance(contest.p_between(name, ahead))})."
            )
        if contest.leaders == (name,):
            lead = percent(self.margin(name, others[0]))
            message = f"{lead} ahead of {others[0]} ({chance(contest.p_between(name, others[0]))})."
            return Judgement(Verdict.BEST, "ShownBetter", message)
        even = [other for other in contest.leaders if other != name]
        highest = max(contest.p_between(name, other) for other in even)
        return Judgement(Verdict.TIED, "NotToldApart", f"Not told apart from {joined(even)} ({chance(highest)}).")

    def _alone(self) -> Judgement:
        infeasible = [name for name, said in self.excluded.items() if said.verdict is Verdict.INFEASIBLE]
        if infeasible:
            return Judgement(Verdict.BEST, "OnlyFeasible", f"{joined(infeasible)} cannot be chosen.")
        return Judgement(
            Verdict.NO_DATA, "OneClassOnly", "There is no other class to compare it with: measure another."
        )

    def margin(self, best: str, other: str) -> float | None:
        """How far `best` lies from `other`."""
        return margin(self.estimates[best].mean, self.estimates[other].mean)

    @property
    def asked(self) -> str:
        """The workload in words."""
        return asked(self.wanted)

    @cached_property
    def ranking(self) -> tuple[RankedClass, ...]:
        """Every class: by verdict, then by value."""
        place = {name: number for number, name in enumerate(_by_value(self))}
        found, order = self.judgements, list(Verdict)
        names = sorted(found, key=lambda name: (order.index(found[name].verdict), place.get(name, len(place))))
        return tuple(_ranked(self, name) for name in names)


def _levels(measured: Measured) -> set[Levels]:
    return {combination.levels for combination in measured.combinations}


def _by_value(inquiry: Inquiry) -> Sequence[str]:
    return Contest(inquiry.quantity, inquiry.estimates, {}).ranked


def _ranked(inquiry: Inquiry, name: str) -> RankedClass:
    said, found = inquiry.judgements[name], inquiry.estimates.get(name)
    used = inquiry.measured.used(name)
    return RankedClass(
        node_class=name,
        verdict=said.verdict,
        reason=said.reason,
        message=said.message,
        value=None if found is None else round(found.mean),
        confidence_low=None if found is None or found.low is None else round(found.low),
        confidence_high=None if found is None or found.high is None else round(found.high),
        margin_parts_per_million=_margin(inquiry, name),
        nodes=len({result.spec.server.node for result in used}),
        trials=sum(result.status.counts.completed for result in used),
        retries=sum(result.status.counts.retries for result in used),
    )


def _margin(inquiry: Inquiry, name: str) -> int | None:
    ranked = inquiry.contest.ranked
    if name not in ranked or len(ranked) == 1:
        return None
    share = inquiry.margin(ranked[0], name if name != ranked[0] else ranked[1])
    return None if share is None else round(1e6 * share)


def chance(p: float) -> str:
    """A p-value in words."""
    return f"p < {_SHOWN_FROM}" if p < _SHOWN_FROM else f"p = {p:.2g}"
