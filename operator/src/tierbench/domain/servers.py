"""The servers of the next block, and the cases that fail because nothing can serve or measure them."""

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
from tierbench.domain.quotas import held_too_long, results_too_large, storage_full
from tierbench.domain.run import Run
from tierbench.domain.status import ConditionUpdate, build_status, describe_cases
from tierbench.domain.views import Problem
from tierbench.results.aggregate import conclude, fail, with_stored_bytes
from tierbench.workloads.plan import Block, Case, ServerPlacement
from tierbench.workloads.workload import RunningServer, ServerInstance, Workload

_HINT: Final = (
    "See the quotas and the Pod Security labels of the namespace. Set spec.servers.resources and "
    "spec.clients.resources to what they require, or change spec.storage or spec.access."
)
_PROVIDER_SECONDS: Final = 2.0  # no event tells that another operator has deleted something


def fail_unplaceable_cases(run: Run) -> Decision | None:
    """Fails every case that has no node for its server or its client."""
    problems = [(case, nodes) for case in run.due if isinstance(nodes := run.client_nodes(case), Problem)]
    if not problems:
        return None
    actions = tuple(_fail_case(run, case, problem) for case, problem in problems)
    distinct = dict.fromkeys(problem for _, problem in problems)
    events = tuple(Event(problem.reason, problem.message, warning=True) for problem in distinct)
    return Decision(build_status(run, Phase.RUNNING), actions, events, requeue_after=0)


def end_remaining_cases(run: Run) -> Decision | None:
    """Ends all remaining cases once the run has reached a limit. A client that still measures ends by its own deadline
    before that."""
    problem = held_too_long(run) or results_too_large(run) or storage_full(run)
    if problem is None or not run.due or not all(job.deleting for job in run.observed.jobs):
        return None
    actions = tuple(_end_case(run, case, problem) for case in run.due)
    event = Event(problem.reason, f"{len(run.due)} cases end early: {problem.message}", warning=True)
    return Decision(build_status(run, Phase.RUNNING), actions, (event,), requeue_after=0)


def _end_case(run: Run, case: Case, problem: Problem) -> SaveResult:
    """Ends a case that no client measures: as measured with a note if it has a good trial, else as failed."""
    result = run.result(case)
    trials = () if result is None else result.status.trials
    if result is None or not any(trial.outcome is Outcome.COMPLETED and not trial.warmup for trial in trials):
        return _fail_case(run, case, problem)
    note = Note(reason=problem.reason, message=problem.message[:512])
    return SaveResult(run.result_name(case), result.spec, conclude(result.spec, result.status, run.now, None, note))


def _fail_case(run: Run, case: Case, problem: Problem) -> SaveResult:
    """Fails a case. Its result keeps the trials that it has."""
    result = run.result(case)
    spec = run.result_spec(case) if result is None else result.spec
    status = ResultStatus() if result is None else result.status
    failed = fail(spec, status, run.now, problem.reason, problem.message)
    return SaveResult(run.result_name(case), spec, with_stored_bytes(failed) if result is None else failed)


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
            run, provider_of(instance.placement.provider), run.observed.workload, instance, current, instances
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
    problem = None if isinstance(instance, Problem) else provider_of(placement.provider).check(run, instance)
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
    blocking = blocking_provider(run.observed, keep)
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
    actions: list[Action] = [_fail_case(run, case, problem) for case in lost]
    actions += [DeleteJob(job.name) for job in run.observed.jobs if not job.deleting]
    if instance is not None:
        actions.append(DeleteServer(instance.name))
    update = ConditionUpdate(reasons.SERVER_READY, False, problem.reason, problem.message)
    message = f"{len(lost)} cases with the server on class {placement.node_class}: {problem.reason}: {problem.message}"
    event = Event(reasons.CASE_FAILED, message, warning=True)
    return Decision(build_status(run, Phase.RUNNING, update), tuple(actions), (event,), requeue_after=0)
