"""The preflight: measures the network between each pair of nodes that a run uses, once, before the first case."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tierbench.api.benchmark import BenchmarkStatus, ClientPlacement, Phase
from tierbench.api.contract import TrialLine
from tierbench.api.measurements import NodeNetwork
from tierbench.api.run_policy import MAXIMUM_CASES
from tierbench.domain import reasons
from tierbench.domain.client import (
    NOTICE_SECONDS,
    Client,
    ClientExit,
    exit_problem,
    follow_client,
    interrupted_by_outage,
    start_client,
)
from tierbench.domain.collecting import merge_trials
from tierbench.domain.decision import Decision, Event
from tierbench.domain.run import Run
from tierbench.domain.servers import STANDALONE_PROVIDER, ensure_server
from tierbench.domain.status import ConditionUpdate, build_status
from tierbench.domain.views import Problem
from tierbench.kinds.registry import probe
from tierbench.results.nodes import add_network_trial, describe_network
from tierbench.workloads.plan import Case, ScheduledTrial, ServerPlacement
from tierbench.workloads.workload import RunningServer, ServerInstance, Workload

_MAXIMUM_ATTEMPTS = 3
_MAXIMUM_MESSAGE = 512


@dataclass(frozen=True)
class _NodePair:
    """A server's and a client's node, and the first placement and client class that use them."""

    placement: ServerPlacement
    server: str
    client_class: str
    client: str

    def network(self, run: Run) -> NodeNetwork:
        """Returns what is known of the network between the nodes."""
        known = (item for item in run.status.networks if (item.server_node, item.client_node) == self.nodes)
        return next(known, None) or NodeNetwork(
            server_node=self.server,
            client_node=self.client,
            server_access_network=_access_network(run, self.placement.node_class),
            client_access_network=_access_network(run, self.client_class),
        )

    @property
    def nodes(self) -> tuple[str, str]:
        """The names of both nodes."""
        return self.server, self.client


@dataclass(frozen=True)
class _Step:
    """The next measurement. No case of a run has the number of its case, so its Jobs have names of their own."""

    run: Run
    pair: _NodePair
    workload: Workload
    case: Case

    def server_instance(self) -> ServerInstance | Problem:
        """Returns the instance of the server. Its slot index comes after those of the benchmark's servers."""
        instance = self.run.instance(self.pair.placement)
        if isinstance(instance, Problem):
            return instance
        index = len(self.run.observed.workload.server_placements()) + instance.slot
        owner = self.run.observed.owner
        name = owner.server(self.run.status.number, index)
        return replace(instance, name=name, attached=owner.attached(name), slot=index)

    @property
    def client(self) -> Client:
        """The client of the measurement."""
        return Client(self.run, self.workload, (self.case,))


def preflight(run: Run) -> Decision | None:
    """Returns the next step of the preflight, or None once it is complete. Without `spec.preflight` it is empty."""
    step = next(_steps(run), None)
    if step is None:
        return None
    instance = step.server_instance()
    server = (
        instance if isinstance(instance, Problem) else ensure_server(run, STANDALONE_PROVIDER, step.workload, instance)
    )
    if isinstance(server, Problem):
        return _failed(step, server)
    return _measure(step, server) if isinstance(server, RunningServer) else server


def _steps(run: Run) -> Iterator[_Step]:
    """Yields the missing measurements between nodes that due cases use."""
    workloads = run.observed.workload.preflight()
    if not workloads:
        return
    due = {pair.nodes for case in run.due for pair in _pairs(run, case)}
    pairs: dict[tuple[str, str], _NodePair] = {}
    for case in run.cases:
        for pair in _pairs(run, case):
            pairs.setdefault(pair.nodes, pair)
    for place, (nodes, pair) in enumerate(sorted(pairs.items(), key=lambda item: item[0])):
        network = pair.network(run)
        if nodes not in due or network.reason is not None:
            continue
        for way, workload in enumerate(workloads):
            case = _only_case(MAXIMUM_CASES + 1 + place * len(workloads) + way, pair, workload)
            if not probe().is_known(network, case):
                yield _Step(run, pair, workload, case)


def _pairs(run: Run, case: Case) -> Iterator[_NodePair]:
    """Yields the pairs of nodes of a case. An external server or client has no node to measure to."""
    server, clients = run.server_node(case.server), run.client_nodes(case)
    if case.server.external or isinstance(server, Problem) or isinstance(clients, Problem):
        return
    for part, client in zip(run.observed.workload.parts(case), clients, strict=True):
        if run.observed.is_external(part.node_class):
            continue
        yield _NodePair(case.server, server, part.node_class, client)


def _only_case(number: int, pair: _NodePair, workload: Workload) -> Case:
    levels = {factor.name: factor.levels[0] for factor in workload.factors(pair.placement)}
    return Case(number, pair.placement, ClientPlacement(pair.client_class), levels)


def _measure(step: _Step, server: RunningServer) -> Decision:
    """Starts the client, waits until it ends, and keeps what it has measured."""
    client = step.client
    if client.is_startable:
        return _start(step, server)
    match follow_client(client):
        case ClientExit() as client_exit:
            return _handle_exit(step, server, client_exit)
        case Problem() as problem:
            return _failed(step, problem)
        case seconds:
            pods = tuple(pod.uid for _, pod in client.newest if pod is not None)  # its seal holds its only trial
            return Decision(_status(step.run, server), requeue_after=seconds, recorded=pods)


def _start(step: _Step, server: RunningServer) -> Decision:
    # After the last measurement the servers of the benchmark start under the same Leases.
    spare = step.run.spec.timeouts.server_ready_seconds
    servers, schedule = {step.case.server: server}, [ScheduledTrial(step.case.number, 1)]
    started = start_client(step.client, servers, [step.pair.client], schedule, spare)
    if isinstance(started, Problem):
        return _failed(step, started)
    if step.client.is_cut_off:
        return Decision(_status(step.run, server), requeue_after=NOTICE_SECONDS)
    return Decision(_status(step.run, server), (*started, *step.client.delete_others()))


def _status(run: Run, server: RunningServer) -> BenchmarkStatus:
    message = f"{server.instance.name} is ready on {server.instance.node}."
    ready = ConditionUpdate(reasons.SERVER_READY, True, reasons.READY, message)
    return build_status(run, Phase.RUNNING, ready, _network_measured(run))


def _handle_exit(step: _Step, server: RunningServer, client_exit: ClientExit) -> Decision:
    """Keeps the only trial of the client. There is no second attempt, because the cases wait, unless a node was
    away."""
    printed = merge_trials(step.client.pods, step.run.observed.logs, step.case.number)
    found = [line for _, lines in printed for line in lines]
    line = found[-1] if found else None
    if line is not None and line.failure is None:
        return _measured(step, line)
    if step.client.may_be_cut_off([] if line is None or line.failure is None else [line.failure.reason]):
        return Decision(_status(step.run, server), requeue_after=NOTICE_SECONDS)
    problem = _problem(step, client_exit, line)
    again = problem.reason == reasons.INTERRUPTED and step.client.attempts < _MAXIMUM_ATTEMPTS
    return _start(step, server) if again else _failed(step, problem)


def _problem(step: _Step, client_exit: ClientExit, line: TrialLine | None) -> Problem:
    if line is not None and line.failure is not None:
        return interrupted_by_outage(step.client, Problem(line.failure.reason, line.failure.message))
    if client_exit.job.timed_out or client_exit.late:
        message = f"{probe().programs} did not end in time. Check the network between the nodes."
        return interrupted_by_outage(step.client, Problem(reasons.TIMED_OUT, message))
    return exit_problem(step.client, client_exit)


def _measured(step: _Step, line: TrialLine) -> Decision:
    network = add_network_trial(step.pair.network(step.run), line)
    if not probe().is_known(network, step.case):
        message = "The client printed a trial without a measurement of the network."
        return _failed(step, Problem(reasons.CLIENT_UNREADABLE, message))
    complete = network.upload is not None and network.download is not None
    event = Event(reasons.NETWORK_MEASURED, describe_network(network))
    return _keep(step, network, (event,) if complete else ())


def _failed(step: _Step, problem: Problem) -> Decision:
    """Keeps the problem instead of a measurement. The cases are measured anyway."""
    known, message = step.pair.network(step.run), problem.message[:_MAXIMUM_MESSAGE]
    network = known.model_copy(update={"reason": problem.reason, "message": message})
    return _keep(step, network, (Event(problem.reason, describe_network(network), warning=True),))


def _keep(step: _Step, network: NodeNetwork, events: tuple[Event, ...]) -> Decision:
    """Writes the network to the status of the run, then deletes the Job."""
    run, nodes = step.run, step.pair.nodes
    others = (item for item in run.status.networks if (item.server_node, item.client_node) != nodes)
    run = run.with_status(networks=(*others, network))
    status = build_status(run, Phase.RUNNING, _network_measured(run))
    return Decision(status, step.client.delete(), events, requeue_after=0)


def _network_measured(run: Run) -> ConditionUpdate:
    missing = [network for network in run.status.networks if network.reason is not None]
    left = len({step.pair.nodes for step in _steps(run)})
    if left:
        message = f"{probe().programs} run before the first case. Pairs of nodes left: {left}."
        return ConditionUpdate(reasons.NETWORK_MEASURED, False, reasons.RUNNING, message)
    if missing:
        message = f"{describe_network(missing[0])} The cases are measured anyway."
        return ConditionUpdate(reasons.NETWORK_MEASURED, False, missing[0].reason or "", message)
    message = "; ".join(map(describe_network, run.status.networks[:3]))
    return ConditionUpdate(reasons.NETWORK_MEASURED, True, reasons.ALL_PAIRS_MEASURED, message)


def _access_network(run: Run, name: str) -> str:
    node_class = run.observed.classes.get(name)
    return (node_class.spec.access_network if node_class is not None else None) or ""
