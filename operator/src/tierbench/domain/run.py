"""One run: its cases in order, their blocks and results, and the nodes that they use."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import cycle, islice
from typing import Any

from tierbench.api.benchmark import BenchmarkSpec, Colocation, NodeAssignment, RunStatus
from tierbench.api.measurements import NodeNetwork
from tierbench.api.record import BenchmarkReference, RecordStatus
from tierbench.api.result import Alternation, BenchmarkResult, NodeFacts, ResultPhase, ResultSpec, ServiceFacts
from tierbench.domain import reasons
from tierbench.domain.decision import Observed
from tierbench.domain.outages import node_problem
from tierbench.domain.views import Problem, node_facts
from tierbench.results.units import factor_traits
from tierbench.workloads.plan import (
    STANDALONE,
    Block,
    Case,
    Factor,
    ServerGroup,
    ServerPlacement,
    link_of,
    plan,
    plan_blocks,
    refinement_cases,
)
from tierbench.workloads.pods import available_size
from tierbench.workloads.workload import ROLE_SERVER, NodeSize, Role, ServerInstance


@dataclass(frozen=True)
class Run:
    """A run of a benchmark at one moment, derived from what is observed and from the status of the run."""

    observed: Observed
    status: RunStatus
    now: datetime

    @property
    def spec(self) -> BenchmarkSpec:
        """The spec of the benchmark."""
        return self.observed.benchmark.spec

    def with_status(self, **changes: Any) -> "Run":
        """Returns the run with other values of these fields of its status."""
        return Run(self.observed, self.status.model_copy(update=changes), self.now)

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """All cases: those of the spec in its order, then those of refinements."""
        workload = self.observed.workload
        places = workload.server_placements()
        planned = plan(self.spec, places, workload.factors)
        further = ((item.client_class, item.levels) for item in self.status.refinements)
        return (*planned, *refinement_cases(len(planned), places, workload.factors, further))

    @property
    def refinement(self) -> int:
        """The current round of refinement; 0 while the cases of the spec are measured."""
        return max((item.round for item in self.status.refinements), default=0)

    @cached_property
    def refinable(self) -> Factor | None:
        """The factor whose levels can be refined, if there is one."""
        workload = self.observed.workload
        factors = (factor for placement in workload.server_placements() for factor in workload.factors(placement))
        return next((factor for factor in factors if factor_traits(factor.name).refinable), None)

    @cached_property
    def due(self) -> tuple[Case, ...]:
        """The cases that have not ended."""
        return tuple(case for case in self.cases if not self.ended(case))

    @cached_property
    def server_groups(self) -> tuple[ServerGroup, ...]:
        """The servers that are up at the same time, once nodes are chosen. A group consists of standalone servers of
        equal levels, each on a node without another server or client. Every other server is a group of its own."""
        nodes = {placement: self.server_node(placement) for placement in self.observed.workload.server_placements()}
        hosts = Counter((placement.levels, node) for placement, node in nodes.items())
        clients = self._all_client_nodes
        server_groups: dict[object, list[ServerPlacement]] = {}
        for placement, node in nodes.items():
            apart = placement.provider == STANDALONE and node not in clients and hosts[placement.levels, node] == 1
            server_groups.setdefault(placement.levels if apart else placement, []).append(placement)
        return tuple(map(tuple, server_groups.values()))

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks in order, once nodes are chosen. A round of refinement starts with the servers that are up."""
        before, spec = self.refinement * self.passes, self.spec
        trials = (spec.repetitions, self.passes, before, spec.warmup_trials)
        return plan_blocks(self.cases, self.server_groups, spec.order, *trials)

    @property
    def passes(self) -> int:
        """The number of passes over the servers; 1 if all are up at the same time."""
        return 1 if len(self.server_groups) == 1 else min(self.spec.order.passes, self.spec.repetitions)

    @cached_property
    def due_blocks(self) -> tuple[Block, ...]:
        """The blocks that have not ended, in order."""
        return tuple(block for block in self.blocks if self._is_due(block))

    def _is_due(self, block: Block) -> bool:
        """Whether a block has not ended. In the last pass its cases end with it; before that, it ends once its trials
        are written and its client is deleted."""
        cases = [case for case in block.cases if not self.ended(case)]
        if block.last or not cases:
            return bool(cases)
        place = (self.status.number, block.cases[0].number, block.pass_number)
        clients = (job for job in self.observed.jobs if (job.run, job.case, job.pass_number) == place)
        done = (0 if (result := self.result(case)) is None else result.status.passes_done for case in cases)
        return min(done) < block.pass_number or not all(job.deleting for job in clients)

    @property
    def pass_number(self) -> int:
        """The current pass, from 1."""
        return self.due_blocks[0].pass_number

    @cached_property
    def assignments(self) -> Mapping[str, NodeAssignment]:
        """The nodes of each class, as chosen at the start of the run."""
        return {assignment.node_class: assignment for assignment in self.status.assignments}

    def result_name(self, case: Case) -> str:
        """Returns the name of the result of a case."""
        return self.observed.owner.result(self.status.number, case)

    def result(self, case: Case) -> BenchmarkResult | None:
        """Returns the result of a case, if it exists and its spec matches the case."""
        return self._results.get(case.number)

    @cached_property
    def _results(self) -> Mapping[int, BenchmarkResult]:
        named = ((case, self.observed.results.get(self.result_name(case))) for case in self.cases)
        return {case.number: found for case, found in named if found is not None and self._matches(case, found.spec)}

    def record(self, case: Case) -> RecordStatus:
        """Returns the record of a case as far as it was read."""
        found = self.observed.records.get(self.result_name(case))
        return RecordStatus() if found is None else found.status

    def lacks_record(self, case: Case) -> bool:
        """Whether the case may have trials in a record that was not read."""
        return self.result(case) is not None and self.result_name(case) not in self.observed.records

    def _matches(self, case: Case, spec: ResultSpec) -> bool:
        classes = (spec.server.node_class, spec.client.node_class)
        return (
            (spec.run, spec.case, spec.trials, spec.warmup_trials)
            == (self.status.number, case.number, self.spec.repetitions, self.spec.warmup_trials)
            and dict(spec.levels) == dict(case.levels)
            and classes == (case.server.node_class, case.client_class)
        )

    @property
    def results(self) -> tuple[BenchmarkResult, ...]:
        """The results of all cases that have one, in the order of the cases."""
        return tuple(self._results.values())

    @cached_property
    def mismatched_results(self) -> tuple[str, ...]:
        """The names of results whose spec does not match the case of their name."""
        names = (self.result_name(case) for case in self.cases if self.result(case) is None)
        return tuple(name for name in names if name in self.observed.results)

    def ended(self, case: Case) -> bool:
        """Whether the case was measured or has failed. A case whose result cannot be parsed counts as ended."""
        if self.observed.unreadable and self.result_name(case) in self.observed.unreadable:
            return True
        result = self.result(case)
        return result is not None and result.status.phase is not ResultPhase.RUNNING

    @cached_property
    def policy_problem(self) -> Problem | None:
        """The problem that the administrator's current policy denies the benchmark."""
        message = next(self.observed.policy.refusals(self.observed.owner.namespace, self.spec.policy_subject), None)
        return None if message is None else Problem(reasons.REFUSED_BY_POLICY, message)

    @cached_property
    def image_problems(self) -> Mapping[ServerPlacement, Problem]:
        """The problems of the servers whose image is not in the chart."""
        workload = self.observed.workload
        messages = {placement: workload.image_problem(placement) for placement in workload.server_placements()}
        return {
            placement: Problem(reasons.IMAGE_NOT_LISTED, message) for placement, message in messages.items() if message
        }

    def server_node(self, placement: ServerPlacement) -> str | Problem:
        """Returns the node of a server, or why it has none. The agent of an external server runs on a client's node."""
        if self.policy_problem is not None:
            return self.policy_problem
        if placement in self.image_problems:
            return self.image_problems[placement]
        node_class = self.spec.clients.node_class_names[0] if placement.external else placement.node_class
        assignment = self.assignments[node_class]
        if placement.ordinal < len(assignment.nodes):
            return assignment.nodes[placement.ordinal]
        return Problem(assignment.reason or reasons.NO_READY_NODE, assignment.message or "")

    def client_nodes(self, case: Case) -> tuple[str, ...] | Problem:
        """Returns the node of each part of the client, or why it has none. Parts are spread over the nodes of a
        class."""
        server = self.server_node(case.server)
        if isinstance(server, Problem):
            return server
        found: dict[str, Iterator[str]] = {}
        parts = self.observed.workload.parts(case)
        for name in dict.fromkeys(part.node_class for part in parts):
            nodes = self._candidates(case, name, server)
            if isinstance(nodes, Problem):
                return nodes
            apart = sum(part.role is Role.SHARE and part.node_class == name for part in parts)
            needed = case.client.ordinal + max(apart, 1)
            if needed > len(nodes):
                return _too_few(name, needed, len(nodes))
            found[name] = islice(cycle(nodes), case.client.ordinal, None)
        return tuple(next(found[part.node_class]) for part in parts)

    def _candidates(self, case: Case, node_class: str, server: str) -> tuple[str, ...] | Problem:
        """Returns the nodes of a class that a client of a server on this node may use. `spec.colocation` decides
        whether it may use the node of the server."""
        assignment = self.assignments[node_class]
        if not assignment.nodes:
            return Problem(assignment.reason or reasons.NO_READY_NODE, assignment.message or "")
        if case.server.external:
            return assignment.nodes
        separate = tuple(node for node in assignment.nodes if node != server)
        shared = tuple(node for node in assignment.nodes if node == server)
        colocation = self.spec.colocation
        if colocation is Colocation.REQUIRED:
            message = (
                f"spec.colocation is Required, but server node {server} is not in class {node_class}. Set "
                "spec.colocation: Allowed, or add the node to the class."
            )
            return shared or Problem(reasons.NO_SHARED_NODE, message)
        message = (
            f"spec.colocation is {colocation.value}, but server node {server} is the only usable node of class "
            f"{node_class}. Add a node to the class, or set spec.colocation: Allowed."
        )
        allowed = shared if colocation is Colocation.ALLOWED else ()
        return separate or allowed or Problem(reasons.NO_SEPARATE_CLIENT_NODE, message)

    @cached_property
    def node_classes(self) -> tuple[str, ...]:
        """The names of all classes that the run needs, in the order of the spec."""
        parts = (part.node_class for case in self.cases for part in self.observed.workload.parts(case))
        return tuple(dict.fromkeys((*self.spec.servers.node_class_names, *self.spec.clients.node_class_names, *parts)))

    def node_problem(self, name: str) -> Problem | None:
        """Returns a problem if a node is gone, or has not been Ready for `timeouts.nodeNotReadySeconds`."""
        return node_problem(name, self.observed.nodes, self.status.outages, self.now, self.longest_outage)

    @property
    def longest_outage(self) -> timedelta:
        """How long a node of the run can be away."""
        return timedelta(seconds=self.spec.timeouts.node_not_ready_seconds)

    @cached_property
    def needed_nodes(self) -> tuple[str, ...]:
        """The names of all nodes that the cases of the run use, sorted."""
        servers = {self.server_node(case.server) for case in self.cases}
        return tuple(sorted(self._all_client_nodes.union(node for node in servers if isinstance(node, str))))

    @cached_property
    def _all_client_nodes(self) -> frozenset[str]:
        found = (self.client_nodes(case) for case in self.cases)
        return frozenset(node for nodes in found if not isinstance(nodes, Problem) for node in nodes)

    def instance(self, placement: ServerPlacement) -> ServerInstance | Problem:
        """Returns where the server of a placement is deployed, or why it cannot be deployed."""
        node = self.server_node(placement)
        if isinstance(node, Problem):
            return node
        class_name = self.spec.clients.node_class_names[0] if placement.external else placement.node_class
        node_class = self.observed.classes.get(class_name)
        if node_class is None:
            return class_deleted(class_name)
        index = self.observed.workload.server_placements().index(placement)
        name = self.observed.owner.server(self.status.number, index, self._earlier_setups)
        return ServerInstance(
            name=name,
            attached=self.observed.owner.attached(name),
            run=self.status.number,
            slot=index,
            placement=placement,
            node=node,
            node_class=node_class.spec,
            size=self._size(placement, node),
            measured_nodes=self.needed_nodes,
            refined_levels=self._refined_levels,
            free_bytes=self.observed.quotas.free_bytes,
            most_file_bytes=self.observed.quotas.most_file_bytes,
            external_clients=any(map(self.observed.is_external, self.spec.clients.node_class_names)),
        )

    @property
    def _earlier_setups(self) -> int:
        """The number of times that servers were set up before. A round of refinement starts with the servers that are
        up, unless it needs other preparations."""
        prepared = self.refinable is not None and self.refinable.prepared
        per_round = self.passes if prepared else self.passes - 1
        return self.refinement * per_round + self.pass_number - 1

    @property
    def _refined_levels(self) -> tuple[str, ...]:
        """The levels that servers are prepared for in the current round of refinement."""
        if self.refinable is None or not self.refinable.prepared:
            return ()
        current = (item for item in self.status.refinements if item.round == self.refinement)
        return tuple(dict.fromkeys(item.levels[self.refinable.name] for item in current))

    def _size(self, placement: ServerPlacement, node: str) -> NodeSize:
        """Returns the memory and disk that a server has; 0 if its node is gone."""
        found = self.observed.nodes.get(node)
        size = NodeSize() if found is None else NodeSize(found.memory_bytes, found.storage_bytes)
        return available_size(self.spec.servers.resources, size) if placement.provider == STANDALONE else size

    def result_spec(self, case: Case) -> ResultSpec:
        """Returns the spec of the result of a case: which case of which run it is, on which nodes."""
        server, clients = self.server_node(case.server), self.client_nodes(case)
        client = "" if isinstance(clients, Problem) else clients[0]
        return ResultSpec(
            benchmark=BenchmarkReference(kind=self.observed.owner.kind, name=self.observed.owner.name),
            run=self.status.number,
            case=case.number,
            levels=dict(case.levels),
            settings=self.spec.parameters,
            server=self._facts(case.server.node_class, "" if case.server.external else str(server)),
            client=self._facts(case.client_class, client),
            clients=self._sharing_clients(case, clients),
            networks=self._networks(case, clients),
            link=link_of(self.spec, case),
            service=self._service(case.server, self._size(case.server, str(server))),
            alternation=self._alternation(case),
            trials=self.spec.repetitions,
            passes=self.passes,
            warmup_trials=self.spec.warmup_trials,
            trim=self.spec.active_trim,
        )

    def _alternation(self, case: Case) -> Alternation | None:
        block = next(block for block in self.blocks if case in block.cases)
        if len(block.cases) == 1:
            return None
        return Alternation(cases=tuple(other.number for other in block.cases), seed=self.spec.order.seed)

    def _service(self, placement: ServerPlacement, size: NodeSize) -> ServiceFacts | None:
        """Returns how the server was deployed, with the image, limits and versions that its pod or operator reports."""
        facts = self.observed.workload.service(placement, size)
        place = self.status.number, self.observed.workload.server_placements().index(placement)
        if facts is None:
            return None
        known = (item for state in self.observed.provider_states.values() for item in state.of(*place))
        versions = {name: version for item in known for name, version in item.versions.items()}
        pods = (pod for pod in self.observed.pods if pod.role == ROLE_SERVER and (pod.run, pod.slot) == place)
        pod = next(pods, None) if facts.image else None
        limits = {} if pod is None else {f"limits.{name}": amount for name, amount in pod.limits.items()}
        settings = {**facts.settings, **versions, **limits}
        return facts.model_copy(update={"image_id": "" if pod is None else pod.image_id, "settings": settings})

    def _networks(self, case: Case, clients: tuple[str, ...] | Problem) -> tuple[NodeNetwork, ...]:
        """Returns the networks between the node of the server and the nodes of the clients, as the preflight measured
        them."""
        if case.server.external or isinstance(clients, Problem):
            return ()
        server = self.server_node(case.server)
        known = self.status.networks
        return tuple(item for item in known if item.server_node == server and item.client_node in clients)

    def _sharing_clients(self, case: Case, nodes: tuple[str, ...] | Problem) -> tuple[NodeFacts, ...]:
        """Returns the nodes of clients that measure at the same time, in the order of their parts."""
        parts = self.observed.workload.parts(case)
        if isinstance(nodes, Problem) or parts[0].role is not Role.SHARE:
            return ()
        return tuple(self._facts(part.node_class, node) for part, node in zip(parts, nodes, strict=True))

    def _facts(self, node_class: str, node: str) -> NodeFacts:
        return node_facts(node_class, self.observed.classes.get(node_class), self.observed.nodes.get(node))


def class_deleted(name: str) -> Problem:
    """Returns the problem that a NodeClass was deleted during the run."""
    message = f"NodeClass {name} was deleted during the run. Create it again, then set spec.runPolicy.rerun."
    return Problem(reasons.NODE_CLASS_NOT_FOUND, message)


def _too_few(node_class: str, clients: int, nodes: int) -> Problem:
    message = (
        f"{clients} clients need a node of class {node_class} each, but only {nodes} are usable. Add nodes to the "
        "class, or lower spec.clients.nodesPerClass."
    )
    return Problem(reasons.TOO_FEW_NODES, message)
