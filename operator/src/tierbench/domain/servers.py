"""The servers of the block that is next, and cases that are refused because nothing can serve or measure them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from tierbench.api.benchmark import Phase
from tierbench.api.contract import Outcome
from tierbench.api.result import Note, ResultStatus
from tierbench.domain import reasons
from tierbench.domain.actions import Action, Decision, DeleteJob, DeleteServer, Event, SaveResult
from tierbench.domain.observed import FailedRequest
from tierbench.domain.providers import Provider, blocking_provider, provider_of, teardown
from tierbench.domain.quotas import storage_full, too_large, too_long
from tierbench.domain.run import Run
from tierbench.domain.status import ConditionUpdate, build_status, case_words
from tierbench.domain.views import Problem
from tierbench.results.record import conclude, fail
from tierbench.results.sizes import sized
from tierbench.workloads.plan import Block, Case, ServerPlacement
from tierbench.workloads.workload import RunningServer, ServerInstance, Workload

_HINT: Final = (
    "See the quotas and the pod-security labels of the namespace: give what they ask for in spec.servers.resources and "
    "spec.clients.resources, or ask for other storage or access."
)
_LOOK_AGAIN_SECONDS: Final = 2.0  # nothing wakes the loop when another operator has done something


def refuse_impossible(run: Run) -> Decision | None:
    """Marks every case that lacks a node for its server or its client."""
    refused = [(case, node) for case in run.due if isinstance(node := run.client_nodes(case), Problem)]
    if not refused:
        return None
    actions = tuple(refuse(run, case, problem) for case, problem in refused)
    events = tuple(
        Event(problem.reason, problem.message, warning=True) for problem in dict.fromkeys(p for _, p in refused)
    )
    return Decision(build_status(run, Phase.RUNNING), actions, events, requeue_after=0)


def refuse_rest(run: Run) -> Decision | None:
    """Ends every case that is left once the run has taken what it may, unless a client still measures: that one is
    ended by its own deadline."""
    problem = too_long(run) or too_large(run) or storage_full(run)
    if problem is None or not run.due or not all(job.deleting for job in run.observed.jobs):
        return None
    actions = tuple(end_early(run, case, problem) for case in run.due)
    event = Event(problem.reason, f"{len(run.due)} cases: {problem.message}", warning=True)
    return Decision(build_status(run, Phase.RUNNING), actions, (event,), requeue_after=0)


def end_early(run: Run, case: Case, problem: Problem) -> SaveResult:
    """Ends a case between two of its clients: Measured with a note if a trial was good, else Failed."""
    result = run.result(case)
    trials = () if result is None else result.status.trials
    if result is None or not any(trial.outcome is Outcome.COMPLETED and not trial.warmup for trial in trials):
        return refuse(run, case, problem)
    why = Note(reason=problem.reason, message=problem.message[:512])
    return SaveResult(run.result_name(case), result.spec, conclude(result.spec, result.status, run.now, None, why))


def refuse(run: Run, case: Case, problem: Problem) -> SaveResult:
    """Marks a case as failed; trials that it has are kept."""
    result = run.result(case)
    spec = run.result_spec(case) if result is None else result.spec
    status = ResultStatus() if result is None else result.status
    failed = fail(spec, status, run.now, problem.reason, problem.message)
    return SaveResult(run.result_name(case), spec, sized(failed) if result is None else failed)


def lasting(run: Run, refusal: FailedRequest | None) -> Problem | None:
    """What the API server has not let be created for too long, as a quota or a policy of the namespace forbids it."""
    patience = timedelta(seconds=run.spec.timeouts.scheduling_seconds)
    if refusal is None or run.now - refusal.since <= patience:
        return None
    return Problem(reasons.REFUSED, f"{refusal.message}. {_HINT}")


def refusal_event(case: Case, problem: Problem) -> Event:
    """The same for `kubectl describe`."""
    return Event(reasons.CASE_FAILED, f"{case_words(case)}: {problem.reason}: {problem.message}", warning=True)


def serve(run: Run, block: Block) -> Mapping[ServerPlacement, RunningServer] | Decision:
    """The servers of the block's team if all that are still needed are ready, else what to do until they are."""
    needed = {case.server for case in run.due}
    instances: list[ServerInstance] = []
    for placement in block.servers:
        if placement in needed:
            instance = _instance(run, placement)
            if isinstance(instance, Problem):
                return _give_up(run, placement, instance)
            instances.append(instance)
    return _bring_up_all(run, block, instances)


def _instance(run: Run, placement: ServerPlacement) -> ServerInstance | Problem:
    instance = run.instance(placement)
    obstacle = None if isinstance(instance, Problem) else provider_of(placement.provider).check(run, instance)
    return instance if obstacle is None else obstacle


def _bring_up_all(
    run: Run, block: Block, instances: Sequence[ServerInstance]
) -> Mapping[ServerPlacement, RunningServer] | Decision:
    current = tuple(case for case in block.cases if not run.ended(case))
    servers: dict[ServerPlacement, RunningServer] = {}
    waits: list[Decision] = []
    for instance in instances:
        match bring_up(
            run, provider_of(instance.placement.provider), run.observed.workload, instance, current, instances
        ):
            case Problem() as problem:
                return _give_up(run, instance.placement, problem, instance)
            case Decision() as decision:
                waits.append(decision)
            case server:
                servers[instance.placement] = server
    return _together(waits) if waits else servers


def _together(decisions: Sequence[Decision]) -> Decision:
    """Does all of it. The status is that of the first."""
    return replace(
        decisions[0],
        actions=tuple(action for one in decisions for action in one.actions),
        events=tuple(event for one in decisions for event in one.events),
        requeue_after=min(one.requeue_after for one in decisions),
    )


def bring_up(
    run: Run,
    provider: Provider,
    workload: Workload,
    instance: ServerInstance,
    current: Sequence[Case] = (),
    beside: Sequence[ServerInstance] = (),
) -> RunningServer | Problem | Decision:
    """The server of a workload on its site, with none but those `beside` it, if it is ready; or why it will not be, or
    what to do. The first of them clears the place for all."""
    refused = lasting(run, run.observed.rejected_create)
    if refused is not None:
        return refused
    keep = beside or (instance,)
    strays = teardown(run.observed, run.now, keep) if instance == keep[0] else ()
    other = blocking_provider(run.observed, keep)
    if other:
        message = f"{instance.name} waits until {other} has taken down the server before it."
        said = ConditionUpdate(reasons.SERVER_READY, False, reasons.STARTING, message)
        status = build_status(run, Phase.RUNNING, said, current=current)
        return Decision(status, strays, requeue_after=_LOOK_AGAIN_SECONDS)
    return provider.ensure(run, workload, instance, current, strays)


def _give_up(
    run: Run, placement: ServerPlacement, problem: Problem, instance: ServerInstance | None = None
) -> Decision:
    """Marks every case that needs this server, and removes it. Other servers' cases go on, with a new client."""
    lost = [other for other in run.due if other.server == placement]
    actions: list[Action] = [refuse(run, other, problem) for other in lost]
    actions += [DeleteJob(job.name) for job in run.observed.jobs if not job.deleting]
    if instance is not None:
        actions.append(DeleteServer(instance.name))
    said = ConditionUpdate(reasons.SERVER_READY, False, problem.reason, problem.message)
    what = f"{len(lost)} cases with the server on class {placement.node_class}"
    event = Event(reasons.CASE_FAILED, f"{what}: {problem.reason}: {problem.message}", warning=True)
    return Decision(build_status(run, Phase.RUNNING, said), tuple(actions), (event,), requeue_after=0)
