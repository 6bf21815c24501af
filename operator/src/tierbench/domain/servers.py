"""The server of the case that is next: brought up, watched while it becomes ready, given up with a reason."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from tierbench.api.benchmark import Phase
from tierbench.domain import reasons, strimzi_server
from tierbench.domain.actions import Action, Create, CreateCredentials, Decision, DeleteJob, DeleteServer, Event
from tierbench.domain.conditions import Said
from tierbench.domain.placing import refuse
from tierbench.domain.run import Run
from tierbench.domain.status import report
from tierbench.domain.views import NodeView, PodView, Problem
from tierbench.workloads.names import ROLE_SERVER
from tierbench.workloads.plan import Case
from tierbench.workloads.workload import RunningServer, ServerSite, Workload

_STRIMZI_SECONDS: Final = 2.0  # nothing wakes the loop when Strimzi says something


def serve(run: Run, case: Case) -> RunningServer | Decision:
    """The server that `case` needs if it is ready, else what to do until it is."""
    site = run.site(case.server)
    if isinstance(site, Problem):
        return _give_up(run, case, site, None)
    obstacle = strimzi_server.obstacle(run, site)
    if obstacle is not None:
        return _give_up(run, case, obstacle, site)
    server = bring_up(run, run.observed.workload, site, case, complete=not strimzi_server.is_incomplete(run, site))
    if isinstance(server, RunningServer):
        server = _by_strimzi(run, case, server)
    return _give_up(run, case, server, site) if isinstance(server, Problem) else server


def bring_up(
    run: Run, workload: Workload, site: ServerSite, current: Case | None = None, *, complete: bool = True
) -> RunningServer | Problem | Decision:
    """The server of a workload on its site, alone there, if it is ready; or why it will not be, or what to do.

    `complete` says whether all is there that has to be created beside the pod.
    """
    refused = _refused(run)
    if refused is not None:
        return refused
    strays = _strays(run, site)
    if strimzi_server.is_shared(run, site):
        return _wait_for_others(run, current, site, strays)
    pod = next((pod for pod in run.observed.pods if pod.role == ROLE_SERVER and pod.name == site.name), None)
    if pod is None or strays or not complete:
        return _start(run, workload, site, current, strays)
    problem = _problem(run, pod, site)
    if problem is not None:
        return problem
    services = run.observed.services
    agent = services.get(f"{site.name}-agent")
    if pod.deleting or not pod.ready or agent is None:
        said = Said(reasons.SERVER_READY, False, reasons.STARTING, f"{pod.name} starts on {site.node}.")
        return Decision(report(run, Phase.RUNNING, said, current=current), wait_seconds=_patience(run, pod))
    return RunningServer(site, pod.pod_ip, pod.host_ip, services.get(site.name, {}), agent)


def _by_strimzi(run: Run, case: Case, server: RunningServer) -> RunningServer | Problem | Decision:
    """The server whose agent is ready, with what Strimzi has brought up beside it."""
    problem, lacking = strimzi_server.problem(run, server.site), strimzi_server.lacking(run, server.site)
    if problem is not None:
        return problem
    if lacking:
        message = f"Strimzi starts Kafka on {server.site.node}; not ready yet: {', '.join(lacking)}."
        said = Said(reasons.SERVER_READY, False, reasons.STARTING, message)
        return Decision(report(run, Phase.RUNNING, said, current=case), wait_seconds=_STRIMZI_SECONDS)
    return replace(server, listeners=strimzi_server.listeners(run, server.site))


def _wait_for_others(run: Run, current: Case | None, site: ServerSite, strays: tuple[Action, ...]) -> Decision:
    """Until Strimzi has taken down the server before: two at once would measure each other."""
    message = f"{site.name} waits until Strimzi has taken down the server before it."
    said = Said(reasons.SERVER_READY, False, reasons.STARTING, message)
    actions = (*strays, *strimzi_server.retire(run.observed, run.now, keep=site))
    return Decision(report(run, Phase.RUNNING, said, current=current), actions, wait_seconds=_STRIMZI_SECONDS)


def _refused(run: Run) -> Problem | None:
    """What the API server has not let be created for too long, as a quota or a policy of the namespace forbids it."""
    refusal, patience = run.observed.refusal, timedelta(seconds=run.spec.timeouts.scheduling_seconds)
    if refusal is None or run.now - refusal.since <= patience:
        return None
    hint = "See the quotas and the pod-security labels of the namespace, or ask for other storage or access."
    return Problem(reasons.REFUSED, f"{refusal.message}. {hint}")


def _start(
    run: Run, workload: Workload, site: ServerSite, current: Case | None, strays: tuple[Action, ...]
) -> Decision:
    """Services first: by them a server is known, and removed, of which an operator that was killed had made no more."""
    manifests = workload.server(site)
    services = tuple(item for item in manifests if item["kind"] == "Service")
    rest = tuple(item for item in manifests if item["kind"] != "Service")
    actions = (*strays, Create(services), CreateCredentials(workload.credentials(site)), Create(rest))
    said = Said(reasons.SERVER_READY, False, reasons.STARTING, f"{site.name} starts on {site.node}.")
    event = Event(reasons.STARTING, f"Server for class {site.slot.node_class} on node {site.node}")
    return Decision(report(run, Phase.RUNNING, said, current=current), actions, (event,), wait_seconds=30)


def _strays(run: Run, site: ServerSite) -> tuple[Action, ...]:
    """Servers of other slots or runs, which may still be there."""
    pods = run.observed.pods
    names = {pod.name for pod in pods if pod.role == ROLE_SERVER and pod.name != site.name and not pod.deleting}
    return tuple(DeleteServer(name) for name in sorted(names))


def _problem(run: Run, pod: PodView, site: ServerSite) -> Problem | None:
    """What the server will not recover from."""
    timeouts = run.spec.timeouts
    age = run.now - pod.created
    out_of_time = age > timedelta(seconds=timeouts.scheduling_seconds)
    down = node_problem(run, run.observed.nodes.get(site.node), site.node)
    if down is not None:
        return down
    if pod.problem is not None and (out_of_time or not pod.problem.transient):
        return pod.problem
    if pod.terminated is not None and not pod.deleting:
        return Problem(
            reasons.POD_FAILED, f"{pod.name} ended: {pod.terminated.reason} {pod.terminated.message}".strip()
        )
    if not pod.ready and age > timedelta(seconds=timeouts.server_ready_seconds):
        message = f"{pod.name} was not ready within {timeouts.server_ready_seconds} s: see `kubectl describe pod`, "
        return Problem(reasons.SERVER_NOT_READY, message + "or raise spec.timeouts.serverReadySeconds")
    return None


def node_problem(run: Run, node: NodeView | None, name: str) -> Problem | None:
    """A node that is gone, or not Ready for too long."""
    if node is None:
        return Problem(reasons.NODE_NOT_READY, f"Node {name} is no longer in the cluster.")
    patience = timedelta(seconds=run.spec.timeouts.node_not_ready_seconds)
    if node.unready_since is not None and run.now - node.unready_since > patience:
        return Problem(reasons.NODE_NOT_READY, f"Node {name} has not been Ready for {patience.total_seconds():.0f} s.")
    return None


def _patience(run: Run, pod: PodView) -> float:
    """How long to wait for a wake-up: until the next deadline could pass, and never longer than 30 s."""
    timeouts = run.spec.timeouts
    age = (run.now - pod.created).total_seconds()
    left = [limit - age for limit in (timeouts.scheduling_seconds, timeouts.server_ready_seconds) if limit > age]
    return max(1.0, min([30.0, *left]))


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
