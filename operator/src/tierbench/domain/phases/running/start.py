"""Starts a client: a Job for each of its parts, all under Leases that outlast them."""

from collections.abc import Sequence

from tierbench.domain import reasons
from tierbench.domain.actions import Action, Create
from tierbench.domain.phases.queued import hold
from tierbench.domain.phases.running.client import Client
from tierbench.domain.views import Problem
from tierbench.workloads.workload import ClientSite, RunningServer


def start(
    client: Client, server: RunningServer, nodes: Sequence[str], trials: Sequence[int], spare_seconds: int = 0
) -> tuple[Action, ...] | Problem:
    """What starts the next client, or makes one whole that is half made, on a node a part, for these trials. The nodes
    are held `spare_seconds` longer."""
    run, seconds = client.run, client.workload.deadline_seconds(len(trials))
    sites = _sites(client, nodes, trials, seconds)
    if isinstance(sites, Problem):
        return sites
    jobs = tuple(client.workload.client(site, client.case, server) for site in sites)
    return hold(run, seconds + spare_seconds), Create(jobs)


def _sites(
    client: Client, nodes: Sequence[str], trials: Sequence[int], seconds: int
) -> tuple[ClientSite, ...] | Problem:
    run, attempt = client.run, client.attempts + (not client.is_half_made)
    sites = []
    for part, node in zip(client.parts, nodes, strict=True):
        node_class = run.observed.classes.get(part.node_class)
        if node_class is None:
            gone = f"NodeClass {part.node_class} was deleted during the run."
            return Problem(reasons.NODE_CLASS_NOT_FOUND, gone)
        name = run.observed.owner.job(run.status.number, client.case, attempt, part.index)
        sites.append(ClientSite(name, run.status.number, attempt, part, node, node_class.spec, trials, seconds))
    return tuple(sites)
