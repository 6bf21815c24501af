"""The servers of the block that is next: alone there, brought up by their provider, given up with a reason."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tierbench.api.benchmark import Phase
from tierbench.domain import reasons
from tierbench.domain.actions import Action, Decision, DeleteJob, DeleteServer, Event
from tierbench.domain.conditions import Said
from tierbench.domain.phases.running.refuse import lasting, refuse
from tierbench.domain.providers.provider import Provider
from tierbench.domain.providers.registry import in_the_way, provider_of, retire
from tierbench.domain.run import Run
from tierbench.domain.status import report
from tierbench.domain.views import Problem
from tierbench.workloads.plan import Block, Case, Slot
from tierbench.workloads.workload import RunningServer, ServerSite, Workload

_LOOK_AGAIN_SECONDS: Final = 2.0  # nothing wakes the loop when another operator has done something


def serve(run: Run, block: Block) -> Mapping[Slot, RunningServer] | Decision:
    """The servers of the block's team if all that are still needed are ready, else what to do until they are."""
    needed = {case.server for case in run.due}
    sites: list[ServerSite] = []
    for slot in block.team:
        if slot in needed:
            site = _site(run, slot)
            if isinstance(site, Problem):
                return _give_up(run, slot, site)
            sites.append(site)
    return _bring_up_all(run, block, sites)


def _site(run: Run, slot: Slot) -> ServerSite | Problem:
    site = run.site(slot)
    obstacle = None if isinstance(site, Problem) else provider_of(slot.provider).obstacle(run, site)
    return site if obstacle is None else obstacle


def _bring_up_all(run: Run, block: Block, sites: Sequence[ServerSite]) -> Mapping[Slot, RunningServer] | Decision:
    current = tuple(case for case in block.cases if not run.ended(case))
    servers: dict[Slot, RunningServer] = {}
    waits: list[Decision] = []
    for site in sites:
        match bring_up(run, provider_of(site.slot.provider), run.observed.workload, site, current, sites):
            case Problem() as problem:
                return _give_up(run, site.slot, problem, site)
            case Decision() as decision:
                waits.append(decision)
            case server:
                servers[site.slot] = server
    return _together(waits) if waits else servers


def _together(decisions: Sequence[Decision]) -> Decision:
    """Does all of it. The status is that of the first."""
    return replace(
        decisions[0],
        actions=tuple(action for one in decisions for action in one.actions),
        events=tuple(event for one in decisions for event in one.events),
        wait_seconds=min(one.wait_seconds for one in decisions),
    )


def bring_up(
    run: Run,
    provider: Provider,
    workload: Workload,
    site: ServerSite,
    current: Sequence[Case] = (),
    beside: Sequence[ServerSite] = (),
) -> RunningServer | Problem | Decision:
    """The server of a workload on its site, with none but those `beside` it, if it is ready; or why it will not be, or
    what to do. The first of them clears the place for all."""
    refused = lasting(run, run.observed.refusal)
    if refused is not None:
        return refused
    keep = beside or (site,)
    strays = retire(run.observed, run.now, keep) if site == keep[0] else ()
    other = in_the_way(run.observed, keep)
    if other:
        message = f"{site.name} waits until {other} has taken down the server before it."
        said = Said(reasons.SERVER_READY, False, reasons.STARTING, message)
        status = report(run, Phase.RUNNING, said, current=current)
        return Decision(status, strays, wait_seconds=_LOOK_AGAIN_SECONDS)
    return provider.bring_up(run, workload, site, current, strays)


def _give_up(run: Run, slot: Slot, problem: Problem, site: ServerSite | None = None) -> Decision:
    """Marks every case that needs this server, and removes it. Other servers' cases go on, with a new client."""
    lost = [other for other in run.due if other.server == slot]
    actions: list[Action] = [refuse(run, other, problem) for other in lost]
    actions += [DeleteJob(job.name) for job in run.observed.jobs if not job.deleting]
    if site is not None:
        actions.append(DeleteServer(site.name))
    said = Said(reasons.SERVER_READY, False, problem.reason, problem.message)
    what = f"{len(lost)} cases with the server on class {slot.node_class}"
    event = Event(reasons.CASE_FAILED, f"{what}: {problem.reason}: {problem.message}", warning=True)
    return Decision(report(run, Phase.RUNNING, said), tuple(actions), (event,), wait_seconds=0)
