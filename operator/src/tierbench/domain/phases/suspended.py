"""Suspended: what was measured is kept, and the nodes are given back."""

from datetime import datetime

from tierbench.api.benchmark import Phase
from tierbench.domain import reasons
from tierbench.domain.actions import Decision, Event
from tierbench.domain.conditions import Said, conditions
from tierbench.domain.leave import leave
from tierbench.domain.observed import Observed


def suspend(observed: Observed, now: datetime) -> Decision:
    """Stops the client and the server."""
    benchmark = observed.benchmark
    leaving = leave(observed, now)
    message = "spec.runPolicy.suspend is true: set it to false to go on with the next trial."
    said = (
        Said(reasons.SUSPENDED, True, reasons.BY_REQUEST, message),
        Said(reasons.QUEUED, False, reasons.BY_REQUEST, "Suspended."),
        Said(reasons.SERVER_READY, False, reasons.BY_REQUEST, "Suspended."),
    )
    # The phase is what tells that nothing is due: it is written only when the nodes are clear.
    phase = Phase.SUSPENDED if leaving is None else benchmark.status.phase
    status = benchmark.status.model_copy(
        update={
            "phase": phase,
            "current": None,
            "remaining_seconds": None,
            "conditions": conditions(benchmark, said, now),
            "observed_generation": benchmark.metadata.generation,
        }
    )
    if leaving is not None:
        return Decision(status, leaving.actions, wait_seconds=leaving.wait_seconds)
    return Decision(status, events=(Event(reasons.SUSPENDED, message),))
