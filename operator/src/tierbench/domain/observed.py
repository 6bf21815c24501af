"""What one pass of the controller sees."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tierbench.api.benchmark import Benchmark
from tierbench.api.node_class import NodeClass
from tierbench.api.policy import Policy, Quotas
from tierbench.api.result import BenchmarkResult
from tierbench.domain.definitions import Definitions
from tierbench.domain.results import Head
from tierbench.domain.views import JobView, LeaseView, NodeView, PodView, Provided
from tierbench.results.output import Output
from tierbench.workloads.names import Owner
from tierbench.workloads.workload import Workload


@dataclass(frozen=True)
class Refusal:
    """The API server has not done something since a time, for this reason of its own."""

    since: datetime
    message: str


@dataclass(frozen=True)
class Ahead:
    """Who is next before a benchmark in the queue, as namespace/name, and what those before it want, too."""

    who: str
    shared: frozenset[str]


@dataclass(frozen=True)
class PodLog:
    """What a client pod has printed. `complete`: it has ended, and no more will come. `trouble`: it has ended, and its
    log cannot be read."""

    output: Output = field(default_factory=Output)
    complete: bool = False
    trouble: Refusal | None = None


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a benchmark has in the cluster, at one moment. `provided` is by the group of its API, `uids` are of its
    objects, by kind and name."""

    owner: Owner
    nodes: Mapping[str, NodeView] = field(default_factory=dict)
    leases: Mapping[str, LeaseView] = field(default_factory=dict)
    pods: tuple[PodView, ...] = ()
    jobs: tuple[JobView, ...] = ()
    services: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    provided: Mapping[str, Provided] = field(default_factory=dict)
    uids: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def holder(self) -> str:
        """The identity that this benchmark takes Leases with."""
        return f"{self.owner.namespace}/{self.owner.name}/{self.owner.uid}"


@dataclass(frozen=True, kw_only=True)
class Observed(Surroundings):
    """One benchmark, everything that belongs to it, and everything that it depends on, at one moment.

    `results` are of the run under way, or of the last one; `earlier` those of other runs, read only where a decision
    has asked for them; `kept` are the heads of all. `foreign` objects bear its labels and are not its own;
    `last_orphan` is the newest run that a benchmark of the same name has left results of; `stored_bytes` is what
    the results and traces of all benchmarks take. `refusal` is what the API server does not let be created,
    `refused_pods` what it does not let the Job controller create, by the Job's name, and `refused_results` what it does
    not let be written, by the result's; of those that are `unwritable` it does not even take that. `unreadable` are
    results of its own that this version does not understand. `isolated` says whether strangers are kept from its pods.
    """

    benchmark: Benchmark
    workload: Workload
    quotas: Quotas = field(default_factory=Quotas)
    policy: Policy = field(default_factory=Policy)
    classes: Mapping[str, NodeClass] = field(default_factory=dict)
    results: Mapping[str, BenchmarkResult] = field(default_factory=dict)
    earlier: Mapping[str, BenchmarkResult] | None = None
    kept: tuple[Head, ...] = ()
    logs: Mapping[str, PodLog] = field(default_factory=dict)
    ahead: Ahead | None = None
    foreign: tuple[str, ...] = ()
    last_orphan: int = 0
    stored_bytes: int = 0
    refusal: Refusal | None = None
    refused_pods: Mapping[str, Refusal] = field(default_factory=dict)
    refused_results: Mapping[str, str] = field(default_factory=dict)
    unwritable: frozenset[str] = frozenset()
    unreadable: frozenset[str] = frozenset()
    definitions: Definitions = field(default_factory=Definitions)
    isolated: bool = False


def out_of_reach(surroundings: Surroundings, pod: PodView) -> bool:
    """Whether a pod cannot go before its node is back; then the node's kubelet removes it first of all."""
    node = surroundings.nodes.get(pod.node)
    return pod.deleting and (node is None or not node.ready)
