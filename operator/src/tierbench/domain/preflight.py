"""The preflight: the network between each pair of nodes that a run uses, measured once, before the first case."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tierbench.api.benchmark import BenchmarkStatus, ClientPlacement, Phase
from tierbench.api.contract import TrialLine
from tierbench.api.measurements import NodeNetwork
from tierbench.domain import reasons
from tierbench.domain.actions import Decision, Event
from tierbench.domain.client import Client, Over, fold, follow, start, why_over
from tierbench.domain.providers import STANDALONE_PROVIDER
from tierbench.domain.run import Run
from tierbench.domain.servers import bring_up
from tierbench.domain.status import ConditionUpdate, build_status
from tierbench.domain.views import Problem
from tierbench.kinds.registry import probe
from tierbench.results.node_network import figures, in_words
from tierbench.workloads.plan import Case, ScheduledTrial, ServerPlacement
from tierbench.workloads.workload import RunningServer, ServerInstance, Workload

_MAXIMUM_MESSAGE = 512


@dataclass(frozen=True)
class _Pair:
    """A server's and a client's node, and what they are used for first."""

    placement: ServerPlacement
    server: str
    client_class: str
    client: str

    def network(self, run: Run) -> NodeNetwork:
        """What is known of the network between them."""
        known = (item for item in run.status.networks if (item.server_node, item.client_node) == self.nodes)
        return next(known, None) or NodeNetwork(
            server_node=self.server,
            client_node=self.client,
            server_access_network=_access_network(run, self.placement.node_class),
            client_access_network=_access_network(run, self.client_class),
        )

    @property
    def nodes(self) -> tuple[str, str]:
        """Both names."""
        return self.server, self.client


@dataclass(frozen=True)
class _Step:
    """What is measured next. The case's number goes on from those of the plan, so no other Job bears it."""

    run: Run
    pair: _Pair
    workload: Workload
    case: Case

    def server_instance(self) -> ServerInstance | Problem:
        """Where the server stands; its slot counts on from those of the service."""
        instance = self.run.instance(self.pair.placement)
        if isinstance(instance, Problem):
            return instance
        index = len(self.run.observed.workload.server_placements()) + instance.slot
        owner = self.run.observed.owner
        name = owner.server(self.run.status.number, index)
        return replace(instance, name=name, attached=owner.attached(name), slot=index)

    @property
    def client(self) -> Client:
        """What measures."""
        return Client(self.run, self.workload, (self.case,))


def preflight(run: Run) -> Decision | None:
    """The next step of the preflight; None when it is over, or none was asked for."""
    step = next(_steps(run), None)
    if step is None:
        return None
    instance = step.server_instance()
    server = instance if isinstance(instance, Problem) else bring_up(run, STANDALONE_PROVIDER, step.workload, instance)
    if isinstance(server, Problem):
        return _missed(step, server)
    return _measure(step, server) if isinstance(server, RunningServer) else server


def _steps(run: Run) -> Iterator[_Step]:
    """What is still to be measured between the nodes that cases to come will use."""
    workloads = run.observed.workload.preflight()
    if not workloads:
        return
    due = {pair.nodes for case in run.due for pair in _pairs(run, case)}
    pairs: dict[tuple[str, str], _Pair] = {}
    for case in run.cases:
        for pair in _pairs(run, case):
            pairs.setdefault(pair.nodes, pair)
    for place, (nodes, pair) in enumerate(sorted(pairs.items(), key=lambda item: item[0])):
        network = pair.network(run)
        if nodes not in due or network.reason is not None:
            continue
        for way, workload in enumerate(workloads):
            case = _only_case(len(run.cases) + 1 + place * len(workloads) + way, pair, workload)
            if not probe().is_known(network, case):
                yield _Step(run, pair, workload, case)


def _pairs(run: Run, case: Case) -> Iterator[_Pair]:
    """The pairs of nodes of a case; a server that is not ours has no node to measure to."""
    server, clients = run.server_node(case.server), run.client_nodes(case)
    if case.server.external or isinstance(server, Problem) or isinstance(clients, Problem):
        return
    for part, client in zip(run.observed.workload.parts(case), clients, strict=True):
        yield _Pair(case.server, server, part.node_class, client)


def _only_case(number: int, pair: _Pair, workload: Workload) -> Case:
    levels = {factor.name: factor.levels[0] for factor in workload.factors(pair.placement)}
    return Case(number, pair.placement, ClientPlacement(pair.client_class), levels)


def _measure(step: _Step, server: RunningServer) -> Decision:
    """Starts the client, waits for it, and keeps what it says."""
    client = step.client
    if client.is_to_start:
        return _start(step, server)
    match follow(client):
        case Over() as over:
            return _over(step, over)
        case Problem() as problem:
            return _missed(step, problem)
        case seconds:
            return Decision(_status(step.run, server), requeue_after=seconds)


def _start(step: _Step, server: RunningServer) -> Decision:
    # After the last one the service's own server starts, under the same Leases.
    spare = step.run.spec.timeouts.server_ready_seconds
    servers, schedule = {step.case.server: server}, [ScheduledTrial(step.case.number, 1)]
    begin = start(step.client, servers, [step.pair.client], schedule, spare)
    if isinstance(begin, Problem):
        return _missed(step, begin)
    return Decision(_status(step.run, server), (*begin, *step.client.delete_others()))


def _status(run: Run, server: RunningServer) -> BenchmarkStatus:
    ready = f"{server.instance.name} is ready on {server.instance.node}."
    return build_status(
        run, Phase.RUNNING, ConditionUpdate(reasons.SERVER_READY, True, reasons.READY, ready), _said(run)
    )


def _over(step: _Step, over: Over) -> Decision:
    """There is one try: the cases do not wait for another."""
    line = next((line for _, lines in fold(step.client, step.case) for line in lines), None)
    if line is None:
        return _missed(step, _why(step.client, over))
    if line.failure is not None:
        return _missed(step, Problem(line.failure.reason, line.failure.message))
    return _measured(step, line)


def _why(client: Client, over: Over) -> Problem:
    if over.job.timed_out:
        return Problem(reasons.TIMED_OUT, f"{probe().programs} did not end in time: see the network between the nodes.")
    return why_over(client, over)


def _measured(step: _Step, line: TrialLine) -> Decision:
    network = figures(step.pair.network(step.run), line)
    done = network.upload is not None and network.download is not None
    event = Event(reasons.NETWORK_MEASURED, in_words(network))
    return _keep(step, network, (event,) if done else ())


def _missed(step: _Step, problem: Problem) -> Decision:
    """Goes on without: the benchmark's own cases can be measured all the same."""
    known, message = step.pair.network(step.run), problem.message[:_MAXIMUM_MESSAGE]
    network = known.model_copy(update={"reason": problem.reason, "message": message})
    return _keep(step, network, (Event(problem.reason, in_words(network), warning=True),))


def _keep(step: _Step, network: NodeNetwork, events: tuple[Event, ...]) -> Decision:
    """What is known is in the status of the run before the Job goes."""
    run, nodes = step.run, step.pair.nodes
    others = (item for item in run.status.networks if (item.server_node, item.client_node) != nodes)
    known = run.status.model_copy(update={"networks": (*others, network)})
    run = Run(run.observed, known, run.now)
    return Decision(build_status(run, Phase.RUNNING, _said(run)), step.client.delete(), events, requeue_after=0)


def _said(run: Run) -> ConditionUpdate:
    """How far the preflight is."""
    missing = [network for network in run.status.networks if network.reason is not None]
    left = len({step.pair.nodes for step in _steps(run)})
    if left:
        message = f"{probe().programs} come before the first case: {left} pairs of nodes to go."
        return ConditionUpdate(reasons.NETWORK_MEASURED, False, reasons.RUNNING, message)
    if missing:
        message = f"{in_words(missing[0])} The cases are measured all the same."
        return ConditionUpdate(reasons.NETWORK_MEASURED, False, missing[0].reason or "", message)
    message = "; ".join(map(in_words, run.status.networks[:3]))
    return ConditionUpdate(reasons.NETWORK_MEASURED, True, reasons.ALL_PAIRS_MEASURED, message)


def _access_network(run: Run, name: str) -> str:
    node_class = run.observed.classes.get(name)
    return (node_class.spec.access_network if node_class is not None else None) or ""
