"""What every decision says about the benchmark as a whole, so that tools see whether the operator has done its work."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from tierbench.api.benchmark import Benchmark, BenchmarkStatus, Phase
from tierbench.domain import reasons
from tierbench.domain.status import ConditionUpdate, set_conditions
from tierbench.domain.supersede import is_outdated

_DEFINITIONS_MATCH: Final = "The CustomResourceDefinitions match the operator."
_ABNORMAL: Final = frozenset({reasons.RECONCILING, reasons.STALLED})
_CAUSES: Final = {
    Phase.PENDING: (reasons.SCHEDULED, "False"),
    Phase.QUEUED: (reasons.QUEUED, "True"),
    Phase.FAILED: (reasons.FAILED, "True"),
}
"""The condition that explains a phase."""


def with_health(before: Benchmark, status: BenchmarkStatus, now: datetime) -> BenchmarkStatus:
    """Returns a status with the conditions that follow from the rest of it.

    Reconciling and Stalled are there only while they are True, as kstatus expects. A status of the current spec has its
    generation in all conditions.
    """
    benchmark = before.model_copy(update={"status": status})
    updates = tuple(_updates(status))
    there = {update.type for update in updates}
    conditions = tuple(
        condition
        for condition in set_conditions(benchmark, updates, now)
        if condition.type not in _ABNORMAL or condition.type in there
    )
    generation = before.metadata.generation
    if status.observed_generation == generation and not is_outdated(benchmark):
        stamp = {"observed_generation": generation}
        conditions = tuple(condition.model_copy(update=stamp) for condition in conditions)
    return status.model_copy(update={"conditions": conditions})


def _updates(status: BenchmarkStatus) -> Iterator[ConditionUpdate]:
    known = {(condition.type, condition.status): condition for condition in status.conditions}
    if (reasons.DEFINITIONS_DIFFER, "True") in known:
        yield ConditionUpdate(reasons.DEFINITIONS_DIFFER, False, reasons.DEFINITIONS_ALIKE, _DEFINITIONS_MATCH)
    cause = known.get(_CAUSES.get(status.phase, ("", "")))
    because = (reasons.RUNNING, "The run is in progress.") if cause is None else (cause.reason, cause.message)
    if status.phase is Phase.FAILED:
        yield ConditionUpdate(reasons.STALLED, True, *because)
    elif status.phase not in {Phase.COMPLETE, Phase.SUSPENDED}:
        yield ConditionUpdate(reasons.RECONCILING, True, *because)
