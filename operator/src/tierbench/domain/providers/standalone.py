"""Servers of our own, each a pod: started, and watched while it becomes ready."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from tierbench.api.benchmark import Phase
from tierbench.domain import reasons
from tierbench.domain.actions import Action, Create, CreateCredentials, Decision, DeleteServer, Event
from tierbench.domain.conditions import Said
from tierbench.domain.observed import Surroundings
from tierbench.domain.run import Run
from tierbench.domain.status import report
from tierbench.domain.views import PodView, Problem
from tierbench.workloads.names import LAYOUT, ROLE_SERVER
from tierbench.workloads.network_policy import network_policy
from tierbench.workloads.plan import Case
from tierbench.workloads.workload import RunningServer, ServerSite, Workload

API: Final = None


def obstacle(run: Run, site: ServerSite) -> Problem | None:
    """None that would be known before."""
    return None


def bring_up(
    run: Run,
    workload: Workload,
    site: ServerSite,
    current: Sequence[Case],
    strays: tuple[Action, ...],
    *,
    complete: bool = True,
) -> RunningServer | Problem | Decision:
    """`complete` says whether all is there that has to be created beside the pod."""
    pod = next((pod for pod in run.observed.pods if pod.role == ROLE_SERVER and pod.name == site.name), None)
    if pod is None or strays or not complete:
        return _start(run, workload, site, current, strays)
    if pod.layout != LAYOUT and not _is_measured(run):
        return _replace(run, pod, current)
    problem = _problem(run, pod, site)
    if problem is not None:
        return problem
    services = run.observed.services
    agent = services.get(f"{site.name}-agent")
    if pod.deleting or not pod.ready or agent is None:
        said = Said(reasons.SERVER_READY, False, reasons.STARTING, f"{pod.name} starts on {site.node}.")
        return Decision(report(run, Phase.RUNNING, said, current=current), wait_seconds=_patience(run, pod))
    return RunningServer(site, pod.pod_ip, pod.host_ip, services.get(site.name, {}), agent)


def _is_measured(run: Run) -> bool:
    """Whether a client that was started with a server of an earlier version is still at it."""
    return any(not job.finished and not job.deleting for job in run.observed.jobs)


def _replace(run: Run, pod: PodView, current: Sequence[Case]) -> Decision:
    """Removes a server of another version, before a client that could not use it is started."""
    said = Said(reasons.SERVER_READY, False, reasons.STARTING, f"{pod.name} is of another version, and is set up anew.")
    status = report(run, Phase.RUNNING, said, current=current)
    return Decision(status, () if pod.deleting else (DeleteServer(pod.name),), wait_seconds=_patience(run, pod))


def _start(
    run: Run, workload: Workload, site: ServerSite, current: Sequence[Case], strays: tuple[Action, ...]
) -> Decision:
    """Services first: by them a server is known, and removed, of which an operator that was killed had made no more."""
    manifests = workload.server(site)
    services = tuple(item for item in manifests if item["kind"] == "Service")
    policies = (network_policy(run.observed.owner, site, manifests),) if run.observed.isolated else ()
    rest = (*policies, *(item for item in manifests if item["kind"] != "Service"))
    actions = (*strays, Create(services), CreateCredentials(workload.credentials(site)), Create(rest))
    said = Said(reasons.SERVER_READY, False, reasons.STARTING, f"{site.name} starts on {site.node}.")
    event = Event(reasons.STARTING, f"Server for class {site.slot.node_class} on node {site.node}")
    return Decision(report(run, Phase.RUNNING, said, current=current), actions, (event,), wait_seconds=30)


def _problem(run: Run, pod: PodView, site: ServerSite) -> Problem | None:
    """What the server will not recover from."""
    timeouts = run.spec.timeouts
    age = run.now - pod.created
    out_of_time = age > timedelta(seconds=timeouts.scheduling_seconds)
    down = run.node_problem(site.node)
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


def _patience(run: Run, pod: PodView) -> float:
    """How long to wait for a wake-up: until the next deadline could pass, and never longer than 30 s."""
    timeouts = run.spec.timeouts
    age = (run.now - pod.created).total_seconds()
    left = [limit - age for limit in (timeouts.scheduling_seconds, timeouts.server_ready_seconds) if limit > age]
    return max(1.0, min([30.0, *left]))


def remains(here: Surroundings, keep: Sequence[ServerSite]) -> bool:
    """Never: the next server starts while the pod of the last one ends."""
    return False


def retire(here: Surroundings, now: datetime, keep: Sequence[ServerSite]) -> tuple[Action, ...]:
    """Pods, and in the end whatever of a server is there, if only its Services."""
    names = {pod.name for pod in here.pods if pod.role == ROLE_SERVER and not pod.deleting}
    if not keep:
        names |= {name.removesuffix("-agent") for name in here.services}
    names -= {site.name for site in keep}
    return tuple(DeleteServer(name) for name in sorted(names))
