"""The status of a PlacementAdvice, and what there is to tell of its change. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from tierbench.advice.advise import advise
from tierbench.api.advice_answer import PlacementAdviceStatus
from tierbench.api.model import Condition
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.result import BenchmarkResult
from tierbench.domain.actions import Event

BEST_CHANGED: Final = "BestChanged"


def answer(
    advice: PlacementAdvice, results: Iterable[BenchmarkResult], classes: Sequence[NodeClass], now: datetime
) -> PlacementAdviceStatus:
    """The status that the results ask for; a transition time changes only with its condition's status."""
    fresh = advise(advice.spec, results, now, classes)
    known = {condition.type: condition for condition in advice.status.conditions}
    generation = advice.metadata.generation
    settled = tuple(_settled(condition, known.get(condition.type), generation) for condition in fresh.conditions)
    return fresh.model_copy(update={"observed_generation": generation, "conditions": settled})


def _settled(condition: Condition, before: Condition | None, generation: int) -> Condition:
    same = before is not None and before.status == condition.status
    since = before.last_transition_time if before is not None and same else condition.last_transition_time
    return condition.model_copy(update={"last_transition_time": since, "observed_generation": generation})


def news(before: PlacementAdviceStatus, after: PlacementAdviceStatus) -> tuple[Event, ...]:
    """Events for what has changed: something else is best, or nothing any more."""
    if before.best == after.best:
        return ()
    return (Event(BEST_CHANGED, after.answer, warning=not after.best),)
