"""Pending and Queued: the nodes of a class, the nodes and Leases of a run, and the administrator's limits on it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from tierbench.api.benchmark import NodeAssignment, Phase
from tierbench.api.node_class import (
    NodeClass,
    NodeClassStatus,
    NodeSelector,
    NodeSummary,
    SelectorOperator,
    SelectorRequirement,
)
from tierbench.api.quantity import format_size
from tierbench.domain import reasons
from tierbench.domain.decision import AcquireLeases, Action, Decision, DeleteJob, Event, ReleaseLeases
from tierbench.domain.node_classes import Noticed, assign_members, class_conditions, warnings_of_classes, without_pairs
from tierbench.domain.queueing import Wait, due_time
from tierbench.domain.run import Run
from tierbench.domain.status import ConditionUpdate, build_status, set_conditions, verdicts_in_progress
from tierbench.domain.views import NodeView, Problem
from tierbench.kube.meta import parse_time
from tierbench.workloads.workload import LABEL_BENCHMARK, LABEL_KIND, LABEL_RUN

_NOT_SUSPENDED: Final = ConditionUpdate(
    reasons.SUSPENDED, False, reasons.NOT_SUSPENDED, "spec.runPolicy.suspend is false."
)
_RETRY_SECONDS: Final = 5.0
_LEASE_MARGIN: Final = timedelta(seconds=60)
_FIRST_SECONDS: Final = 30.0  # no event tells the first in the queue that a Lease has expired
_BEHIND_SECONDS: Final = 600.0  # the benchmarks ahead wake the others
_MAXIMUM_LISTED = 64
_LISTED_RUNS: Final = 3
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def choose_nodes(run: Run) -> Decision | None:
    """Chooses nodes for every class, once per run. Until `timeouts.schedulingSeconds`, it waits for missing classes,
    nodes and images, and for the policy to admit the benchmark."""
    if run.assignments:
        return None
    chosen = tuple(_assign(run, name) for name in run.node_classes)
    problems = [] if run.policy_problem is None else [run.policy_problem]
    problems += [Problem(item.reason, item.message or "") for item in chosen if item.reason is not None]
    problems += dict.fromkeys(run.image_problems.values())
    waited = run.now - parse_time(run.status.start_time)
    if problems and waited < timedelta(seconds=run.spec.timeouts.scheduling_seconds):
        scheduled = ConditionUpdate(reasons.SCHEDULED, False, problems[0].reason, problems[0].message)
        status = build_status(run, Phase.PENDING, scheduled, *_run_started(run))
        return Decision(status, requeue_after=_RETRY_SECONDS)
    started = run.with_status(assignments=chosen)
    nodes = f"on nodes {', '.join(started.needed_nodes)}" if started.needed_nodes else "without a usable node"
    message = f"Run {run.status.number} started: {len(run.cases)} cases {nodes}."
    scheduled = ConditionUpdate(reasons.SCHEDULED, True, reasons.NODES_CHOSEN, message)
    if problems:
        scheduled = ConditionUpdate(reasons.SCHEDULED, False, problems[0].reason, problems[0].message)
    events = [Event(reasons.RUN_STARTED, message)]
    events += [Event(item.reason, item.message, warning=True) for item in problems]
    status = build_status(started, Phase.PENDING, scheduled, *_run_started(run))
    return Decision(status, events=tuple(events), requeue_after=0)


def _run_started(run: Run) -> tuple[ConditionUpdate, ...]:
    """Resets the conditions of the previous run."""
    message = "The run is in progress."
    updates = [
        _NOT_SUSPENDED,
        ConditionUpdate(reasons.COMPLETE, False, reasons.RUNNING, message),
        ConditionUpdate(reasons.FAILED, False, reasons.RUNNING, message),
        *verdicts_in_progress(run),
        *warnings_of_classes(run),
    ]
    if run.observed.workload.preflight():
        running = ConditionUpdate(reasons.NETWORK_MEASURED, False, reasons.RUNNING, message)
        updates.append(without_pairs(run) or running)
    return tuple(updates)


def renew_leases(run: Run, seconds: int) -> AcquireLeases:
    """Holds all nodes of the run for this many seconds, at most as long as it may, plus a margin."""
    return AcquireLeases(run.needed_nodes, run.now + timedelta(seconds=min(seconds, seconds_left(run))) + _LEASE_MARGIN)


def acquire_nodes(run: Run) -> Decision | None:
    """Acquires the Leases of all needed nodes, or queues for them. Returns None once the run holds all of them."""
    observed, nodes = run.observed, run.needed_nodes
    if not run.due or not nodes:
        return None
    crowded, turn = _too_many_at_once(run), f"namespace/{observed.owner.namespace}"
    if _holds_all(run):
        if crowded is None or observed.pods or observed.jobs:
            return None
        return _queue(run, crowded.reason, crowded.message, (turn,), ReleaseLeases(nodes))
    if crowded is not None:
        return _queue(run, crowded.reason, crowded.message, (turn,))
    owner = observed.owner
    blocker = observed.queue.blocker((owner.kind, owner.namespace, owner.name), _wait(run, (turn, *nodes)))
    if blocker is not None:
        own = blocker.benchmark.startswith(f"{owner.namespace}/")
        why = "its run became due before this one" if own else "namespaces take turns"
        message = f"Waiting for {_name(run, blocker.benchmark)}, which is ahead in the queue: {why}."
        waits_for = (turn, *nodes) if turn in blocker.shared else nodes
        return _queue(run, reasons.WAITS_FOR_TURN, message, waits_for, seconds=_BEHIND_SECONDS)
    full = storage_full(run)
    if full is not None:
        return _queue(run, full.reason, f"{full.message} {_runs_to_delete(run)}", nodes)
    others = [
        lease
        for node in nodes
        if (lease := observed.leases.get(node))
        and lease.holder not in {"", observed.holder}
        and lease.expires > run.now
    ]
    if others:
        used = "; ".join(f"{lease.node} is in use by {_name(run, lease.holder)}" for lease in others)
        return _queue(run, reasons.NODES_BUSY, f"{used}. The run continues when these nodes are free.", nodes)
    queued = ConditionUpdate(reasons.QUEUED, False, reasons.NODES_HELD, f"Reserved nodes {', '.join(nodes)}.")
    status = build_status(run, Phase.RUNNING, queued, _NOT_SUSPENDED)
    renewal = renew_leases(run, run.spec.timeouts.server_ready_seconds)
    return Decision(status, (renewal,), requeue_after=0, waits_for=_wait(run, nodes))


def _wait(run: Run, items: Iterable[str]) -> Wait:
    return Wait(due_time(run.observed.benchmark.status, run.status, run.now), frozenset(items))


def _queue(
    run: Run, reason: str, message: str, waits_for: tuple[str, ...], *actions: Action, seconds: float = _FIRST_SECONDS
) -> Decision:
    observed = run.observed
    queued_before = any(
        item.type == reasons.QUEUED and item.status == "True" for item in observed.benchmark.status.conditions
    )
    events = () if queued_before else (Event(reasons.QUEUED, message),)
    # A client whose Leases expired while no operator ran must not measure any further.
    stop = tuple(DeleteJob(job.name) for job in observed.jobs if not job.deleting)
    status = build_status(run, Phase.QUEUED, ConditionUpdate(reasons.QUEUED, True, reason, message), _NOT_SUSPENDED)
    return Decision(status, (*stop, *actions), events, requeue_after=seconds, waits_for=_wait(run, waits_for))


def _holds_all(run: Run) -> bool:
    leases = run.observed.leases
    return all(
        (lease := leases.get(node)) is not None and lease.holder == run.observed.holder and lease.expires > run.now
        for node in run.needed_nodes
    )


def _name(run: Run, holder: str) -> str:
    """Returns the name of another benchmark, unless it is in a namespace that this tenant may not know."""
    namespace, name = holder.split("/")[:2]
    return f"{namespace}/{name}" if namespace == run.observed.owner.namespace else "a benchmark of another namespace"


def matches(selector: NodeSelector, labels: Mapping[str, str]) -> bool:
    """Whether a selector matches these labels, as metav1.LabelSelector does."""
    for key, value in selector.match_labels.items():  # without all(), because it runs for each class and node
        if labels.get(key) != value:
            return False
    return not selector.match_expressions or all(_meets(one, labels) for one in selector.match_expressions)


def _meets(requirement: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case SelectorOperator.IN:
            return value in requirement.values
        case SelectorOperator.NOT_IN:
            return value not in requirement.values
        case SelectorOperator.EXISTS:
            return value is not None
        case SelectorOperator.DOES_NOT_EXIST:
            return value is None


def members(node_class: NodeClass, nodes: Iterable[NodeView]) -> tuple[NodeView, ...]:
    """Returns the nodes of a class, by name."""
    selector = node_class.spec.node_selector
    if selector is None:
        return ()
    return tuple(sorted((node for node in nodes if matches(selector, node.labels)), key=lambda node: node.name))


def usable(node: NodeView) -> bool:
    """Whether a benchmark may start on the node: it is Ready and schedulable."""
    return node.ready and node.schedulable


def resolve(node_class: NodeClass, nodes: Iterable[NodeView], now: datetime, noticed: Noticed) -> NodeClassStatus:
    """Returns the status of a class with these nodes, and what was noticed of them."""
    chosen = members(node_class, nodes)
    ready, name = sum(usable(node) for node in chosen), node_class.metadata.name
    problem = None if ready else without_node(name, len(chosen))
    update = (
        ConditionUpdate(reasons.CLASS_READY, True, reasons.NODES_READY, f"{ready} of {len(chosen)} nodes are usable.")
        if problem is None
        else ConditionUpdate(reasons.CLASS_READY, False, problem.reason, problem.message)
    )
    listed = tuple(
        NodeSummary(name=node.name, ready=usable(node), architecture=node.architecture)
        for node in chosen[:_MAXIMUM_LISTED]
    )
    return NodeClassStatus(
        observed_generation=node_class.metadata.generation,
        nodes=len(chosen),
        ready_nodes=ready,
        architectures=",".join(sorted({node.architecture for node in chosen})),
        cpu=_span([node.cpu_millicores for node in chosen], lambda value: f"{value / 1000:g}"),
        memory=_span([node.memory_bytes for node in chosen], _memory),
        members=listed,
        conditions=set_conditions(
            node_class, (update, *class_conditions(node_class, (node.name for node in chosen), noticed)), now
        ),
    )


def _span(values: Sequence[int], text: Callable[[int], str]) -> str:
    words = [text(value) for value in sorted(set(values))]
    return "" if not words else words[0] if words[0] == words[-1] else f"{words[0]}-{words[-1]}"


def _memory(size: int) -> str:
    unit = 2**30 if size >= 2**30 else 2**20
    return f"{size / unit:.3g}{format_size(unit)[1:]}"


def _assign(run: Run, name: str) -> NodeAssignment:
    """Returns the usable nodes of a class, and the reason if they are fewer than needed."""
    node_class, nodes = run.observed.classes.get(name), run.observed.nodes.values()
    needed = run.spec.servers.nodes_per_class if name in run.spec.servers.node_class_names else 1
    if node_class is None:
        message = (
            f"NodeClass {name} does not exist. Create it, or correct the name: see "
            "`kubectl get nodeclasses.tierbench.io`."
        )
        return NodeAssignment(node_class=name, reason=reasons.NODE_CLASS_NOT_FOUND, message=message)
    if node_class.spec.external:
        return assign_members(run, node_class)
    chosen = members(node_class, nodes)
    ready = tuple(node.name for node in chosen if usable(node))[:_MAXIMUM_LISTED]
    if len(ready) >= needed:
        return NodeAssignment(node_class=name, nodes=ready)
    if not ready:
        problem = without_node(name, len(chosen))
        return NodeAssignment(node_class=name, reason=problem.reason, message=problem.message)
    message = (
        f"NodeClass {name} has {len(ready)} usable nodes, but {needed} are needed. Add nodes, or lower "
        "spec.servers.nodesPerClass."
    )
    return NodeAssignment(node_class=name, nodes=ready, reason=reasons.TOO_FEW_NODES, message=message)


def without_node(name: str, nodes: int) -> Problem:
    """Returns why a class with this number of nodes has no usable one."""
    if not nodes:
        message = f"No node matches NodeClass {name}. Label a node, or fix its selector."
        return Problem(reasons.NO_SUCH_NODE, message)
    message = f"None of the {nodes} nodes of NodeClass {name} is Ready and schedulable. See `kubectl get nodes`."
    return Problem(reasons.NO_READY_NODE, message)


def too_much_to_measure(run: Run) -> Problem | None:
    """Returns a problem if the run has more cases than `limits.cases` allows, or more trials than `limits.trials`."""
    cases, repetitions, quotas = len(run.cases), run.spec.repetitions, run.observed.quotas
    if cases > quotas.cases:
        message = (
            f"The run has {cases} cases, but limits.cases allows {quotas.cases}. Split the benchmark, or "
            f"{_raise('limits.cases')} and set spec.runPolicy.rerun."
        )
        return Problem(reasons.TOO_MANY_CASES, message)
    if cases * repetitions > quotas.trials:
        fitting = quotas.trials // cases
        advice = f"Set spec.repetitions to {fitting} or less" if fitting else "Name fewer levels"
        message = (
            f"{cases} cases with {repetitions} repetitions are {cases * repetitions} trials, but limits.trials allows "
            f"{quotas.trials}. {advice}, split the benchmark, or {_raise('limits.trials')} and set "
            "spec.runPolicy.rerun."
        )
        return Problem(reasons.TOO_MANY_TRIALS, message)
    return None


def held_too_long(run: Run) -> Problem | None:
    """Returns a problem if the run has held its nodes for `limits.leaseSeconds`."""
    if seconds_left(run) > 0:
        return None
    message = (
        f"The run has held its nodes for {run.observed.quotas.lease_seconds} s, as long as limits.leaseSeconds allows. "
        f"Use fewer cases, fewer repetitions or shorter trials, or {_raise('limits.leaseSeconds')}."
    )
    return Problem(reasons.LEASE_LIMIT_EXCEEDED, message)


def seconds_left(run: Run) -> int:
    """Returns for how many seconds the run may still hold its nodes."""
    held = max(run.now - _held_since(run).get(run.observed.holder, _NEVER), timedelta(0))
    return run.observed.quotas.lease_seconds - int(held.total_seconds())


def results_too_large(run: Run) -> Problem | None:
    """Returns a problem if the results that the benchmark keeps take `limits.resultBytes`."""
    outdated, most = outdated_results(run, kept_runs(run)), run.observed.quotas.most_bytes
    results = [result for result in run.observed.known_results if result.name not in outdated]
    stored = sum(result.stored_bytes for result in results)
    if stored < most:
        return None
    runs = len({result.run for result in results})
    message = (
        f"The results and records of {runs} runs take {stored} bytes; limits.resultBytes is {format_size(most)}. Lower "
        f"spec.runPolicy.historyLimit, use fewer cases, or {_raise('limits.resultBytes')}."
    )
    return Problem(reasons.TOO_MANY_BYTES, message)


def storage_full(run: Run) -> Problem | None:
    """Returns a problem if the results and records of all benchmarks take `limits.storedBytes`."""
    stored, quotas = run.observed.stored_bytes, run.observed.quotas
    if stored < quotas.most_stored_bytes:
        return None
    message = (
        f"The results and records of all benchmarks take {stored} bytes; limits.storedBytes is {quotas.stored_bytes}. "
        f"Delete results, or {_raise('limits.storedBytes')}."
    )
    return Problem(reasons.STORAGE_FULL, message)


def _runs_to_delete(run: Run) -> str:
    """Returns which runs of the namespace take most, and the command that deletes the largest one."""
    namespace, runs = run.observed.owner.namespace, run.observed.deletable_runs
    if not runs:
        return f"In namespace {namespace}, all results are of newest runs or of baselines."
    listed = ", ".join(
        f"run {one.number} of {one.kind} {one.benchmark} ({one.size} bytes)" for one in runs[:_LISTED_RUNS]
    )
    labels = {LABEL_KIND: runs[0].kind, LABEL_BENCHMARK: runs[0].benchmark, LABEL_RUN: runs[0].number}
    selector = ",".join(f"{label}={value}" for label, value in labels.items())
    return (
        f"The largest older runs of namespace {namespace} are {listed}. To delete the first one, run "
        f"`kubectl delete benchmarkresults --namespace {namespace} --selector {selector}`."
    )


def kept_runs(run: Run) -> int:
    """Returns how many runs of the benchmark are kept: `runPolicy.historyLimit`, at most `limits.history`."""
    return min(run.spec.run_policy.history_limit, run.observed.quotas.history)


def outdated_results(run: Run, kept: int) -> tuple[str, ...]:
    """Returns the names of the results to delete at the end of the run if `kept` runs and the baseline are kept.

    A superseded run does not count. It is deleted with the runs before it.
    """
    known, baseline = run.observed.known_results, run.spec.run_policy.baseline_run
    superseded = {result.run for result in known if result.superseded}
    counted = {run.status.number, *(result.run for result in known)} - superseded
    if len(counted) < kept:
        return ()
    oldest_kept = sorted(counted)[-kept]
    return tuple(result.name for result in known if result.run < oldest_kept and result.run != baseline)


def _too_many_at_once(run: Run) -> Problem | None:
    """Returns a problem if `limits.benchmarksAtOnce` other benchmarks of the namespace hold nodes. If two acquired
    their Leases at the same time, only the later one has the problem."""
    mine, most = run.observed.holder, run.observed.quotas.benchmarks_at_once
    namespace = run.observed.owner.namespace
    since = _held_since(run)
    own = since.get(mine, _NEVER), mine
    before = [other for other in since if other.startswith(f"{namespace}/") and (since[other], other) < own]
    if len(before) < most:
        return None
    message = (
        f"{len(before)} other benchmarks of namespace {namespace} hold nodes; limits.benchmarksAtOnce is {most}. This "
        "benchmark continues when one of them ends."
    )
    return Problem(reasons.TOO_MANY_BENCHMARKS, message)


def _held_since(run: Run) -> dict[str, datetime]:
    """Returns since when each holder holds its first Lease that has not expired."""
    since: dict[str, datetime] = {}
    for lease in run.observed.leases.values():
        if lease.expires > run.now:
            since[lease.holder] = min(lease.acquired, since.get(lease.holder, _NEVER))
    return since


def _raise(name: str) -> str:
    return f"ask an administrator to raise {name} in the chart"
