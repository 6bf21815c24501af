"""Starts a client: a Job for each of its parts, all under Leases that outlast them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from tierbench.domain import reasons
from tierbench.domain.actions import Action, Create
from tierbench.domain.limits import seconds_left, too_long
from tierbench.domain.phases.queued import hold
from tierbench.domain.phases.running.client import Client
from tierbench.domain.views import Problem
from tierbench.workloads.plan import Slot, Turn
from tierbench.workloads.workload import ClientSite, RunningServer, Target

_START_SECONDS: Final = 120


def start(
    client: Client,
    servers: Mapping[Slot, RunningServer],
    nodes: Sequence[str],
    turns: Sequence[Turn],
    spare_seconds: int = 0,
) -> tuple[Action, ...] | Problem:
    """What starts the next client, or makes one whole that is half made, on a node a part, for these trials. The nodes
    are held `spare_seconds` longer."""
    trials = Counter(turn.case for turn in turns)
    over = too_long(client.run)
    if over is not None:
        return over
    targets = tuple(
        Target(case, servers[case.server], client.workload.deadline_seconds(trials[case.number]))
        for case in client.cases
        if case.number in trials
    )
    seconds = min(_START_SECONDS + sum(target.deadline_seconds for target in targets), seconds_left(client.run))
    sites = _sites(client, nodes, turns, seconds)
    if isinstance(sites, Problem):
        return sites
    jobs = tuple(client.workload.client(site, targets) for site in sites)
    return hold(client.run, seconds + spare_seconds), Create(jobs)


def _sites(
    client: Client, nodes: Sequence[str], turns: Sequence[Turn], seconds: int
) -> tuple[ClientSite, ...] | Problem:
    observed, number, first = client.run.observed, client.run.status.number, client.first
    attempt = client.attempts + (not client.is_half_made)
    sites = []
    for part, node in zip(client.parts, nodes, strict=True):
        node_class = observed.classes.get(part.node_class)
        if node_class is None:
            gone = f"NodeClass {part.node_class} was deleted during the run."
            return Problem(reasons.NODE_CLASS_NOT_FOUND, gone)
        name = observed.owner.job(number, first, client.pass_number, attempt, part.index)
        place = (name, number, first.number, attempt, part, node, node_class.spec)
        sites.append(ClientSite(*place, turns, seconds, client.pass_number))
    return tuple(sites)
