"""The server of the case that is next: alone there, brought up by its provider, given up with a reason."""

from datetime import timedelta
from typing import Final

from tierbench.api.benchmark import Phase
from tierbench.domain import reasons
from tierbench.domain.actions import Action, Decision, DeleteJob, DeleteServer, Event
from tierbench.domain.conditions import Said
from tierbench.domain.phases.running.refuse import refuse
from tierbench.domain.providers.provider import Provider
from tierbench.domain.providers.registry import PROVIDERS, in_the_way, retire
from tierbench.domain.run import Run
from tierbench.domain.status import report
from tierbench.domain.views import Problem
from tierbench.workloads.plan import Case
from tierbench.workloads.workload import RunningServer, ServerSite, Workload

_LOOK_AGAIN_SECONDS: Final = 2.0  # nothing wakes the loop when another operator has done something


def serve(run: Run, case: Case) -> RunningServer | Decision:
    """The server that `case` needs if it is ready, else what to do until it is."""
    site = run.site(case.server)
    if isinstance(site, Problem):
        return _give_up(run, case, site, None)
    provider = PROVIDERS[case.server.provider]
    server = provider.obstacle(run, site) or bring_up(run, provider, run.observed.workload, site, case)
    return _give_up(run, case, server, site) if isinstance(server, Problem) else server


def bring_up(
    run: Run, provider: Provider, workload: Workload, site: ServerSite, current: Case | None = None
) -> RunningServer | Problem | Decision:
    """The server of a workload on its site, alone there, if it is ready; or why it will not be, or what to do."""
    refused = _refused(run)
    if refused is not None:
        return refused
    strays = retire(run.observed, run.now, site)
    other = in_the_way(run.observed, site)
    if other:
        message = f"{site.name} waits until {other} has taken down the server before it."
        said = Said(reasons.SERVER_READY, False, reasons.STARTING, message)
        status = report(run, Phase.RUNNING, said, current=current)
        return Decision(status, strays, wait_seconds=_LOOK_AGAIN_SECONDS)
    return provider.bring_up(run, workload, site, current, strays)


def _refused(run: Run) -> Problem | None:
    """What the API server has not let be created for too long, as a quota or a policy of the namespace forbids it."""
    refusal, patience = run.observed.refusal, timedelta(seconds=run.spec.timeouts.scheduling_seconds)
    if refusal is None or run.now - refusal.since <= patience:
        return None
    hint = "See the quotas and the pod-security labels of the namespace, or ask for other storage or access."
    return Problem(reasons.REFUSED, f"{refusal.message}. {hint}")


def _give_up(run: Run, case: Case, problem: Problem, site: ServerSite | None) -> Decision:
    """Marks every case that needs this server, and removes it. Other servers' cases go on."""
    lost = [other for other in run.due if other.server == case.server]
    actions: list[Action] = [refuse(run, other, problem) for other in lost]
    actions += [DeleteJob(job.name) for job in run.observed.jobs if not job.deleting]
    if site is not None:
        actions.append(DeleteServer(site.name))
    said = Said(reasons.SERVER_READY, False, problem.reason, problem.message)
    what = f"{len(lost)} cases with the server on class {case.server.node_class}"
    event = Event(reasons.CASE_FAILED, f"{what}: {problem.reason}: {problem.message}", warning=True)
    return Decision(report(run, Phase.RUNNING, said), tuple(actions), (event,), wait_seconds=0)
