"""The providers of servers, the servers of the next block, and how cases end that nothing can serve or measure."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Final

from tierbench.api.benchmark import Phase
from tierbench.api.contract import Engine
from tierbench.api.record import RecordEnd, RecordSpec, RecordStatus
from tierbench.api.result import ResultSpec, ResultStatus
from tierbench.domain import reasons
from tierbench.domain.collecting import running_clients, with_printed_trials
from tierbench.domain.decision import (
    Action,
    ClusterState,
    Create,
    CreateCredentials,
    Decision,
    DeleteJob,
    DeleteServer,
    Event,
    FailedRequest,
    ProviderApi,
    SaveRecord,
    SaveResult,
)
from tierbench.domain.outages import describe, open_outage, undisturbed_since
from tierbench.domain.placement import held_too_long, results_too_large, storage_full
from tierbench.domain.run import Run
from tierbench.domain.status import ConditionUpdate, build_status, describe_cases
from tierbench.domain.views import PodView, Problem
from tierbench.kinds.registry import BenchmarkKind, kind_of, kinds
from tierbench.kube.meta import format_time
from tierbench.results.aggregate import conclude_record
from tierbench.workloads.networking import network_policy
from tierbench.workloads.plan import EXTERNAL, STANDALONE, Block, Case, ServerPlacement
from tierbench.workloads.workload import ROLE_SERVER, RunningServer, ServerInstance, Workload

_HINT: Final = (
    "See the quotas and the Pod Security labels of the namespace. Set spec.servers.resources and "
    "spec.clients.resources to what they require, or change spec.storage or spec.access. Links need the Pod Security "
    "level privileged."
)
RECORDS_AT_ONCE: Final = 10
_MAXIMUM_MESSAGE: Final = 1024
_PROVIDER_SECONDS: Final = 2.0  # no event tells that another operator has deleted something


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
        problem = _problem(run, pod, instance)
        if problem is not None:
            return problem
        services = run.observed.services
        agent = services.get(f"{instance.name}-agent")
        if pod.deleting or not pod.ready or agent is None:
            status = build_status(run, Phase.RUNNING, _not_ready(run, instance), current=current)
            return Decision(status, requeue_after=_seconds_to_deadline(run, pod))
        return RunningServer(instance, pod.pod_ip, pod.host_ip, services.get(instance.name, {}), agent)

    def teardown(self, owned: ClusterState, now: datetime, keep: Sequence[ServerInstance]) -> tuple[Action, ...]:
        """Deletes pods; if no server is kept, also servers of which only the Services exist."""
        names = {pod.name for pod in owned.pods if pod.role == ROLE_SERVER and not pod.deleting}
        if not keep:
            names |= {name.removesuffix("-agent") for name in owned.services}
        names -= {instance.name for instance in keep}
        return tuple(DeleteServer(name) for name in sorted(names))


def _create(
    run: Run, workload: Workload, instance: ServerInstance, current: Sequence[Case], cleanup: tuple[Action, ...]
) -> Decision:
    """Creates the Services first: if the operator is killed after that, `teardown` finds the server by them."""
    manifests, observed = workload.server(instance), run.observed
    services = tuple(item for item in manifests if item["kind"] == "Service")
    policy = network_policy(observed.owner, instance, manifests, observed.policy, observed.collector)
    policies = (policy,) if observed.isolated else ()
    rest = (*policies, *(item for item in manifests if item["kind"] != "Service"))
    actions = (*cleanup, Create(services), CreateCredentials(workload.credentials(instance)), Create(rest))
    event = Event(reasons.STARTING, f"Server for class {instance.placement.node_class} on node {instance.node}")
    status = build_status(run, Phase.RUNNING, _not_ready(run, instance), current=current)
    return Decision(status, actions, (event,), requeue_after=30)


def _not_ready(run: Run, instance: ServerInstance) -> ConditionUpdate:
    outage = open_outage(run.status.outages, {instance.node})
    reason = reasons.STARTING if outage is None else reasons.NODE_NOT_READY
    message = f"{instance.name} starts on {instance.node}." if outage is None else f"{describe(outage)}."
    return ConditionUpdate(reasons.SERVER_READY, False, reason, message)


def _problem(run: Run, pod: PodView, instance: ServerInstance) -> Problem | None:
    """Returns the problem that the server does not recover from."""
    timeouts, down = run.spec.timeouts, run.node_problem(instance.node)
    age = run.now - undisturbed_since(run.status.outages, {instance.node}, pod.created, run.now)
    if down is not None:
        return down
    if pod.problem is not None and (age > timedelta(seconds=timeouts.scheduling_seconds) or not pod.problem.transient):
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


def _provider_of(name: str) -> Provider:
    """Returns the provider of this name, as `ServerPlacement.provider` gives it."""
    return _providers(kinds())[name]


def known_apis() -> tuple[ProviderApi, ...]:
    """Returns the APIs of other operators that any provider uses."""
    return tuple(provider.api for provider in _all() if provider.api is not None)


def apis_of(kind: str) -> tuple[ProviderApi, ...]:
    """Returns the APIs of other operators that servers of a kind of benchmark can be created by."""
    return tuple(each.api for each in kind_of(kind).providers.values() if each.api is not None)


def api_of_pods(role: str | None) -> ProviderApi | None:
    """Returns the API of the operator that creates pods of this role, if another operator creates them."""
    return next((api for api in known_apis() if api.role == role), None)


def apis(server_placements: Iterable[ServerPlacement]) -> tuple[ProviderApi, ...]:
    """Returns the APIs of other operators that the providers of these servers use."""
    used = {_provider_of(placement.provider).api for placement in server_placements}
    return tuple(api for api in known_apis() if api in used)


def _blocking_provider(owned: ClusterState, keep: Sequence[ServerInstance]) -> str:
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


def fail_unplaceable_cases(run: Run) -> Decision | None:
    """Fails every case that has no node for its server or its client."""
    problems = [(case, nodes) for case in run.due if isinstance(nodes := run.client_nodes(case), Problem)]
    if not problems:
        return None
    distinct = dict.fromkeys(problem for _, problem in problems)
    events = tuple(Event(problem.reason, problem.message, warning=True) for problem in distinct)
    return end_cases(
        run, problems, Decision(build_status(run, Phase.RUNNING), (), events, requeue_after=0), failed=True
    )


def end_remaining_cases(run: Run) -> Decision | None:
    """Ends all remaining cases once the run has reached a limit. A client that still measures ends by its own deadline
    before that."""
    problem = held_too_long(run) or results_too_large(run) or storage_full(run)
    if problem is None or not run.due or not all(job.deleting for job in run.observed.jobs):
        return None
    event = Event(problem.reason, f"{len(run.due)} cases end early: {problem.message}", warning=True)
    last = Decision(build_status(run, Phase.RUNNING), (), (event,), requeue_after=0)
    return end_cases(run, [(case, problem) for case in run.due], last, failed=False)


def end_cases(run: Run, problems: Sequence[tuple[Case, Problem]], last: Decision, *, failed: bool) -> Decision:
    """Ends cases early.

    With `failed` they have failed. Otherwise each is measured, with a note, if it has a good trial. Records that have
    to be read first are read a few at a time. The step that ends the last cases is that of `last`.
    """
    unread = [case for case, _ in problems if run.lacks_record(case)]
    names = tuple(map(run.result_name, unread[:RECORDS_AT_ONCE]))
    actions = tuple(
        action
        for case, problem in problems
        if not unread or run.result_name(case) in run.observed.records
        for action in _end_case(run, case, problem, failed=failed)
    )
    if not unread:
        return replace(last, actions=(*actions, *last.actions))
    return Decision(build_status(run, Phase.RUNNING), actions, requeue_after=0, reads_records=names)


def _end_case(run: Run, case: Case, problem: Problem, *, failed: bool) -> tuple[Action, ...]:
    result, name, record, observed = run.result(case), run.result_name(case), run.record(case), run.observed
    end = early_end(run.now, problem).model_copy(update={"failed": failed})
    if result is None:
        return end_case(name, run.result_spec(case), record, end)
    if name not in observed.rejected_results:
        clients = running_clients(observed, run.status.number)
        record = with_printed_trials(result.spec, record, clients, observed.logs)
    return end_case(name, result.spec, record, end)


def early_end(now: datetime, problem: Problem, engine: Engine | None = None) -> RecordEnd:
    """Returns how a case ends early because of a problem."""
    return RecordEnd(
        time=format_time(now), engine=engine, reason=problem.reason, message=problem.message[:_MAXIMUM_MESSAGE]
    )


def end_case(name: str, spec: ResultSpec, record: RecordStatus, end: RecordEnd) -> tuple[Action, ...]:
    """Seals the record of a case, and then writes its result, which follows from the record."""
    if not record.trials:
        return (save_result(name, spec, conclude_record(spec, record, end), record),)
    if record.ended is not None:
        return (save_result(name, spec, conclude_record(spec, record, record.ended), record),)
    sealed = record.model_copy(update={"ended": end})
    return save_record(name, spec, sealed), save_result(name, spec, conclude_record(spec, sealed, end), sealed)


def save_record(name: str, spec: ResultSpec, record: RecordStatus) -> SaveRecord:
    """Writes what was measured of a case."""
    return SaveRecord(name, RecordSpec(benchmark=spec.benchmark, run=spec.run, case=spec.case), record)


def save_result(name: str, spec: ResultSpec, status: ResultStatus, record: RecordStatus) -> SaveResult:
    """Writes a result, with the size that it and its record have as JSON."""
    stored = sum(len(json.dumps(part.to_json())) for part in (spec, status, record))
    return SaveResult(name, spec, status.model_copy(update={"stored_bytes": stored}))


def case_failed_event(case: Case, problem: Problem) -> Event:
    """Returns the warning that a case has failed."""
    return Event(reasons.CASE_FAILED, f"{describe_cases(case)}: {problem.reason}: {problem.message}", warning=True)


def persistent_problem(run: Run, failed: FailedRequest | None) -> Problem | None:
    """Returns a problem if the API server has rejected a create for `timeouts.schedulingSeconds`, for example because
    of a quota or of Pod Security admission."""
    limit = timedelta(seconds=run.spec.timeouts.scheduling_seconds)
    if failed is None or run.now - failed.since <= limit:
        return None
    return Problem(reasons.REFUSED, f"{failed.message}. {_HINT}")


def ensure_servers(run: Run, block: Block) -> Mapping[ServerPlacement, RunningServer] | Decision:
    """Returns the servers of the block that are still needed if all of them are ready, else the next step."""
    needed = {case.server for case in run.due}
    instances: list[ServerInstance] = []
    for placement in block.servers:
        if placement in needed:
            instance = _checked_instance(run, placement)
            if isinstance(instance, Problem):
                return _fail_server(run, placement, instance)
            instances.append(instance)
    current = tuple(case for case in block.cases if not run.ended(case))
    servers: dict[ServerPlacement, RunningServer] = {}
    steps: list[Decision] = []
    for instance in instances:
        match ensure_server(
            run, _provider_of(instance.placement.provider), run.observed.workload, instance, current, instances
        ):
            case Problem() as problem:
                return _fail_server(run, instance.placement, problem, instance)
            case Decision() as decision:
                steps.append(decision)
            case server:
                servers[instance.placement] = server
    return _merge(steps) if steps else servers


def _checked_instance(run: Run, placement: ServerPlacement) -> ServerInstance | Problem:
    instance = run.instance(placement)
    problem = None if isinstance(instance, Problem) else _provider_of(placement.provider).check(run, instance)
    return instance if problem is None else problem


def _merge(decisions: Sequence[Decision]) -> Decision:
    """Returns one decision with the actions and events of all, and the status of the first."""
    return replace(
        decisions[0],
        actions=tuple(action for one in decisions for action in one.actions),
        events=tuple(event for one in decisions for event in one.events),
        requeue_after=min(one.requeue_after for one in decisions),
    )


def ensure_server(
    run: Run,
    provider: Provider,
    workload: Workload,
    instance: ServerInstance,
    current: Sequence[Case] = (),
    group: Sequence[ServerInstance] = (),
) -> RunningServer | Problem | Decision:
    """Returns the server of a workload on its node if it is ready, a problem that it does not recover from, or the next
    step. The step of the first server of the `group` also removes all servers outside it."""
    rejected = persistent_problem(run, run.observed.rejected_create)
    if rejected is not None:
        return rejected
    keep = group or (instance,)
    cleanup = teardown(run.observed, run.now, keep) if instance == keep[0] else ()
    blocking = _blocking_provider(run.observed, keep)
    if blocking:
        message = f"{instance.name} waits until provider {blocking} has removed the previous server."
        update = ConditionUpdate(reasons.SERVER_READY, False, reasons.STARTING, message)
        status = build_status(run, Phase.RUNNING, update, current=current)
        return Decision(status, cleanup, requeue_after=_PROVIDER_SECONDS)
    return provider.ensure(run, workload, instance, current, cleanup)


def _fail_server(
    run: Run, placement: ServerPlacement, problem: Problem, instance: ServerInstance | None = None
) -> Decision:
    """Fails every case that needs this server, and deletes the server. A new client measures the other cases."""
    lost = [case for case in run.due if case.server == placement]
    actions: list[Action] = [DeleteJob(job.name) for job in run.observed.jobs if not job.deleting]
    if instance is not None:
        actions.append(DeleteServer(instance.name))
    update = ConditionUpdate(reasons.SERVER_READY, False, problem.reason, problem.message)
    message = f"{len(lost)} cases with the server on class {placement.node_class}: {problem.reason}: {problem.message}"
    event = Event(reasons.CASE_FAILED, message, warning=True)
    last = Decision(build_status(run, Phase.RUNNING, update), tuple(actions), (event,), requeue_after=0)
    return end_cases(run, [(case, problem) for case in lost], last, failed=True)
