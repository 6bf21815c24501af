"""Adds levels to a run that has measured all it was asked for: where another class comes ahead, the middle is next."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from tierbench.advice.bisection import Middle, middles
from tierbench.advice.matrix import runs
from tierbench.api.benchmark import Phase, Refinement
from tierbench.api.run_policy import Refine
from tierbench.domain import reasons
from tierbench.domain.actions import Decision, Event
from tierbench.domain.run import Run
from tierbench.domain.status import report
from tierbench.workloads.plan import Factor


def refine(run: Run) -> Decision | None:
    """The next round; None when every bracket is as narrow as asked, or can be no narrower."""
    asked, factor = run.spec.run_policy.refine, run.refinable
    if asked is None or factor is None:
        return None
    added = _fitting(run, asked, _found(run, asked, factor))
    if not added:
        return None
    number = run.refinement + 1
    further = (Refinement(round=number, client_class=one.client_class, levels=dict(one.levels)) for one in added)
    refinements = (*run.status.refinements, *further)
    status = run.status.model_copy(update={"refinements": refinements})
    events = tuple(Event(reasons.REFINED, str(one)) for one in added)
    return Decision(report(Run(run.observed, status, run.now), Phase.RUNNING), events=events, wait_seconds=0)


def _found(run: Run, asked: Refine, factor: Factor) -> tuple[Middle, ...]:
    results = [result for case in run.cases if (result := run.result(case)) is not None]
    within = asked.within_percent / 100
    return tuple(middle for found in runs(results) for middle in middles(found, factor.name, within))


def _fitting(run: Run, asked: Refine, found: Sequence[Middle]) -> Sequence[Middle]:
    """As many as the bounds leave room for; each is measured with every server of its levels."""
    slots = run.observed.workload.slots()

    def cases(levels: Mapping[str, str]) -> int:
        return sum(slot.serves(levels) for slot in slots)

    already = sum(cases(one.levels) for one in run.status.refinements)
    room = min(asked.maximum_cases - already, run.observed.quotas.cases - len(run.cases))
    totals = accumulate(cases(one.levels) for one in found)
    return [one for one, total in zip(found, totals, strict=True) if total <= room]
