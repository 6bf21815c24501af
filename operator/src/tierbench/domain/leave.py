"""What ends for good or for now leaves: nothing is left on the nodes before they are given back."""

from dataclasses import dataclass
from datetime import datetime

from tierbench.domain.actions import Action, DeleteJob, ReleaseLeases
from tierbench.domain.observed import Surroundings, out_of_reach
from tierbench.domain.providers.registry import retire


@dataclass(frozen=True)
class Leaving:
    """A step on the way out, and how long to wait before the next."""

    actions: tuple[Action, ...]
    wait_seconds: float


def leave(here: Surroundings, now: datetime) -> Leaving | None:
    """Clears the nodes, waits until they are clear, then gives them back. None when all that is done."""
    jobs = (DeleteJob(job.name) for job in here.jobs if not job.deleting)
    actions = (*jobs, *retire(here, now))
    if any(provided.objects for provided in here.provided.values()):
        return Leaving(actions, 1)
    if actions or here.jobs or any(not out_of_reach(here, pod) for pod in here.pods):
        return Leaving(actions, 5)
    held = tuple(node for node, lease in sorted(here.leases.items()) if lease.holder == here.holder)
    return Leaving((ReleaseLeases(held),), 0) if held else None
