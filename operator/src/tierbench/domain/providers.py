"""The providers of servers: what each one checks, creates, waits for and deletes."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache

from tierbench.api.benchmark import Phase
from tierbench.domain import reasons
from tierbench.domain.actions import Action, Create, CreateCredentials, Decision, DeleteServer, Event
from tierbench.domain.observed import ClusterState
from tierbench.domain.run import Run
from tierbench.domain.status import ConditionUpdate, build_status
from tierbench.domain.views import PodView, Problem, ProviderApi
from tierbench.kinds.registry import BenchmarkKind, kinds
from tierbench.workloads.plan import EXTERNAL, STANDALONE, Case, ServerPlacement
from tierbench.workloads.pods import network_policy
from tierbench.workloads.workload import LAYOUT, ROLE_SERVER, RunningServer, ServerInstance, Workload


class Provider(ABC):
    """Brings servers up and takes them down. Each server has a pod of tierbench: the server itself, or its agent.

    `api` is the API of the other operator whose objects have to be observed, if there is one.
    """

    api: ProviderApi | None = None

    def check(self, run: Run, instance: ServerInstance) -> Problem | None:
        """Returns why this provider cannot bring the server up, before it creates anything."""
        return None

    @abstractmethod
    def ensure(
        self,
        run: Run,
        workload: Workload,
        instance: ServerInstance,
        current: Sequence[Case],
        cleanup: tuple[Action, ...],
    ) -> RunningServer | Problem | Decision:
        """Returns the server of a workload on its node if it is ready, a problem that it does not recover from, or the
        next step. A step contains the actions of `cleanup`, which delete other servers."""

    def has_leftovers(self, owned: ClusterState, keep: Sequence[ServerInstance]) -> bool:
        """Whether objects of servers that are not in `keep` exist that have to be gone before the next server
        starts."""
        return False

    @abstractmethod
    def teardown(self, owned: ClusterState, now: datetime, keep: Sequence[ServerInstance]) -> tuple[Action, ...]:
        """Returns the next actions that remove the servers that are not in `keep`."""


class StandaloneProvider(Provider):
    """Runs each server as one pod of tierbench. It runs the agents of external servers in the same way.

    Every problem of a pod shows when it starts. The next server starts while the pod of the previous one terminates.
    """

    def ensure(
        self,
        run: Run,
        workload: Workload,
        instance: ServerInstance,
        current: Sequence[Case],
        cleanup: tuple[Action, ...],
        *,
        complete: bool = True,
    ) -> RunningServer | Problem | Decision:
        """Implements `Provider.ensure`. `complete` says whether all other objects of the server exist."""
        pod = next((pod for pod in run.observed.pods if pod.role == ROLE_SERVER and pod.name == instance.name), None)
        if pod is None or cleanup or not complete:
            return _create(run, workload, instance, current, cleanup)
        is_measured = any(not job.finished and not job.deleting for job in run.observed.jobs)
        if pod.layout != LAYOUT and not is_measured:
            return _replace(run, pod, current)
        problem = _problem(run, pod, instance)
        if problem is not None:
            return problem
        services = run.observed.services
        agent = services.get(f"{instance.name}-agent")
        if pod.deleting or not pod.ready or agent is None:
            update = ConditionUpdate(
                reasons.SERVER_READY, False, reasons.STARTING, f"{pod.name} starts on {instance.node}."
            )
            return Decision(
                build_status(run, Phase.RUNNING, update, current=current), requeue_after=_seconds_to_deadline(run, pod)
            )
        return RunningServer(instance, pod.pod_ip, pod.host_ip, services.get(instance.name, {}), agent)

    def teardown(self, owned: ClusterState, now: datetime, keep: Sequence[ServerInstance]) -> tuple[Action, ...]:
        """Deletes pods; if no server is kept, also servers of which only the Services exist."""
        names = {pod.name for pod in owned.pods if pod.role == ROLE_SERVER and not pod.deleting}
        if not keep:
            names |= {name.removesuffix("-agent") for name in owned.services}
        names -= {instance.name for instance in keep}
        return tuple(DeleteServer(name) for name in sorted(names))


def _replace(run: Run, pod: PodView, current: Sequence[Case]) -> Decision:
    """Deletes a server of another version before a client starts that cannot use it."""
    update = ConditionUpdate(
        reasons.SERVER_READY, False, reasons.STARTING, f"{pod.name} is of another version and is replaced."
    )
    status = build_status(run, Phase.RUNNING, update, current=current)
    return Decision(
        status, () if pod.deleting else (DeleteServer(pod.name),), requeue_after=_seconds_to_deadline(run, pod)
    )


def _create(
    run: Run, workload: Workload, instance: ServerInstance, current: Sequence[Case], cleanup: tuple[Action, ...]
) -> Decision:
    """Creates the Services first: if the operator is killed after that, `teardown` finds the server by them."""
    manifests = workload.server(instance)
    services = tuple(item for item in manifests if item["kind"] == "Service")
    policies = (network_policy(run.observed.owner, instance, manifests),) if run.observed.isolated else ()
    rest = (*policies, *(item for item in manifests if item["kind"] != "Service"))
    actions = (*cleanup, Create(services), CreateCredentials(workload.credentials(instance)), Create(rest))
    update = ConditionUpdate(
        reasons.SERVER_READY, False, reasons.STARTING, f"{instance.name} starts on {instance.node}."
    )
    event = Event(reasons.STARTING, f"Server for class {instance.placement.node_class} on node {instance.node}")
    return Decision(build_status(run, Phase.RUNNING, update, current=current), actions, (event,), requeue_after=30)


def _problem(run: Run, pod: PodView, instance: ServerInstance) -> Problem | None:
    """Returns the problem that the server does not recover from."""
    timeouts = run.spec.timeouts
    age = run.now - pod.created
    is_late = age > timedelta(seconds=timeouts.scheduling_seconds)
    down = run.node_problem(instance.node)
    if down is not None:
        return down
    if pod.problem is not None and (is_late or not pod.problem.transient):
        return pod.problem
    if pod.terminated is not None and not pod.deleting:
        ending = f"{pod.terminated.reason} {pod.terminated.message}".strip()
        return Problem(reasons.POD_FAILED, f"{pod.name} terminated: {ending}")
    if not pod.ready and age > timedelta(seconds=timeouts.server_ready_seconds):
        message = (
            f"{pod.name} was not ready within {timeouts.server_ready_seconds} s. See `kubectl describe pod "
            f"{pod.name}`, or raise spec.timeouts.serverReadySeconds."
        )
        return Problem(reasons.SERVER_NOT_READY, message)
    return None


def _seconds_to_deadline(run: Run, pod: PodView) -> float:
    """Returns the seconds until the next deadline of the pod passes: at most 30, since an event may be missed."""
    timeouts = run.spec.timeouts
    age = (run.now - pod.created).total_seconds()
    left = [limit - age for limit in (timeouts.scheduling_seconds, timeouts.server_ready_seconds) if limit > age]
    return max(1.0, min([30.0, *left]))


STANDALONE_PROVIDER = StandaloneProvider()


def provider_of(name: str) -> Provider:
    """Returns the provider of this name, as `ServerPlacement.provider` gives it."""
    return _providers(kinds())[name]


def known_apis() -> tuple[ProviderApi, ...]:
    """Returns the APIs of other operators that any provider uses."""
    return tuple(provider.api for provider in _all() if provider.api is not None)


def owner_kinds_of(role: str | None) -> frozenset[str] | None:
    """Returns the kinds that own pods of this role, if another operator creates such pods."""
    return next((api.owner_kinds for api in known_apis() if api.role == role), None)


def apis(server_placements: Iterable[ServerPlacement]) -> tuple[ProviderApi, ...]:
    """Returns the APIs of other operators that the providers of these servers use."""
    used = {provider_of(placement.provider).api for placement in server_placements}
    return tuple(api for api in known_apis() if api in used)


def blocking_provider(owned: ClusterState, keep: Sequence[ServerInstance]) -> str:
    """Returns the name of a provider that still has servers that are not in `keep`, which would disturb the
    measurement."""
    every = _providers(kinds()).items()
    return next((name for name, provider in every if provider.has_leftovers(owned, keep)), "")


def teardown(owned: ClusterState, now: datetime, keep: Sequence[ServerInstance] = ()) -> tuple[Action, ...]:
    """Returns the next actions of all providers that remove the servers that are not in `keep`."""
    return tuple(action for provider in _all() for action in provider.teardown(owned, now, keep))


def _all() -> Iterable[Provider]:
    return dict.fromkeys(_providers(kinds()).values())


@cache
def _providers(every: tuple[BenchmarkKind, ...]) -> Mapping[str, Provider]:
    ours: dict[str, Provider] = {STANDALONE: STANDALONE_PROVIDER, EXTERNAL: STANDALONE_PROVIDER}
    return ours | {name: provider for kind in every for name, provider in kind.providers.items()}
