"""The cleanup after a run: its clients and servers are deleted, then its nodes are released."""

from dataclasses import dataclass
from datetime import datetime

from tierbench.domain.decision import Action, ClusterState, DeleteJob, ReleaseLeases, is_unreachable
from tierbench.domain.servers import teardown


@dataclass(frozen=True)
class CleanupStep:
    """The next actions of a cleanup, and after how many seconds to reconcile again."""

    actions: tuple[Action, ...]
    requeue_after: float


def cleanup(state: ClusterState, now: datetime) -> CleanupStep | None:
    """Deletes clients and servers, waits until they are gone, then releases the nodes. Returns None after that."""
    jobs = (DeleteJob(job.name) for job in state.jobs if not job.deleting)
    actions = (*jobs, *teardown(state, now))
    if any(provider.objects for provider in state.provider_states.values()):
        return CleanupStep(actions, 1)
    if actions or state.jobs or any(not is_unreachable(state, pod) for pod in state.pods):
        return CleanupStep(actions, 5)
    held = tuple(node for node, lease in sorted(state.leases.items()) if lease.holder == state.holder)
    return CleanupStep((ReleaseLeases(held),), 0) if held else None
