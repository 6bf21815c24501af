"""The in-memory cluster with Strimzi, which updates its objects and pods step by step."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from tests.unit.domain.objects import broker_benchmark
from tests.unit.domain.world import World
from tierbench.domain.decision import (
    Action,
    Create,
    DeleteProviderObject,
    Observed,
    ProviderObject,
    ProviderState,
    RemoveFinalizers,
)
from tierbench.domain.ending import used_apis
from tierbench.domain.views import PodView
from tierbench.kinds.broker.spec import BrokerBenchmark
from tierbench.kinds.broker.strimzi import GROUP, KINDS, ROLE, StrimziNames, strimzi_names
from tierbench.workloads.workload import LABEL_RUN, LABEL_SLOT

LISTENERS = {"plain": "kafka.default.svc:9092", "tls": "kafka.default.svc:9093"}
VERSIONS = {"kafkaVersion": "4.3.1", "strimziVersion": "1.2.0"}
Key = tuple[str, str]


def strimzi_benchmark(**spec: Any) -> BrokerBenchmark:
    """A benchmark of one Kafka by Strimzi on two classes, unless the spec says otherwise."""
    brokers = [{"name": "kafka", "kafka": {"provider": "Strimzi"}}]
    return broker_benchmark(**{"brokers": brokers, "payload": {"sizes": ["1Ki"]}, **spec})


def _names(kafka: ProviderObject) -> StrimziNames:
    """Returns the names of the server of a Kafka."""
    return StrimziNames(kafka.name, f"n-{kafka.name.rpartition('-')[2]}")


@dataclass
class StrimziWorld(World):
    """`watching` says whether Strimzi sets any status, and `finalizers` whether its topics have finalizers.

    `lingering` is how long its Kafkas take to terminate. `pool_nodes` has the node of each pool.
    """

    benchmark: Any = field(default_factory=strimzi_benchmark)
    strimzi: ProviderState = field(default_factory=lambda: ProviderState(True, "v1"))
    objects: dict[Key, ProviderObject] = field(default_factory=dict)
    watching: bool = True
    finalizers: bool = False
    lingering: timedelta = timedelta(0)
    pool_nodes: dict[str, str] = field(default_factory=dict)
    created: list[Key] = field(default_factory=list)
    removed: list[Key] = field(default_factory=list)

    def observe(self) -> Observed:
        """Returns what a reconcile observes now."""
        provided, seen = replace(self.strimzi, objects=tuple(self.objects.values())), super().observe()
        groups = {api.group for api in used_apis(self.benchmark, seen.workload)}
        return replace(seen, provider_states={GROUP: provided} if GROUP in groups else {})

    def step(self) -> None:
        """Lets Strimzi take one step after the rest of the cluster."""
        super().step()
        for key, item in list(self.objects.items()):
            if item.deleted is not None:
                if not self._stays(item):
                    self._remove(key)
            elif self.watching:
                self.objects[key] = self._answer(item)
        self._pods()

    def broker(self, slot: int = 0) -> PodView:
        """Returns the broker pod of the first server of a slot in the first run."""
        return self.pods[strimzi_names(self.owner, self.owner.server(1, slot)).pod]

    def _stays(self, item: ProviderObject) -> bool:
        """Returns whether an object is a topic with a finalizer but no Kafka, or a Kafka that lingers."""
        if item.kind == "KafkaTopic":
            return self.finalizers and not any(kind == "Kafka" for kind, _ in self.objects)
        return item.kind == "Kafka" and item.deleted is not None and self.now - item.deleted < self.lingering

    def _remove(self, key: Key) -> None:
        del self.objects[key]
        self.removed.append(key)

    def _answer(self, item: ProviderObject) -> ProviderObject:
        """Returns an object with its status. A Kafka is ready after its pod, users and topics after their Kafka."""
        if item.rejection is not None:
            return item
        kafkas = {name: self.objects[kind, name] for kind, name in self.objects if kind == "Kafka"}
        if item.kind == "Kafka":
            pod = self.pods.get(_names(item).pod)
            ready = pod is not None and pod.ready
            return replace(item, answered=True, ready=ready, listeners=LISTENERS if ready else {}, versions=VERSIONS)
        ready = item.name in kafkas and kafkas[item.name].ready  # a pool has another name, and never answers
        return replace(item, answered=ready, ready=ready)

    def _pods(self) -> None:
        """Keeps one broker pod for each Kafka that has a pool."""
        wanted = {}
        for (kind, _), item in self.objects.items():
            names = _names(item)
            if kind == "Kafka" and self.watching and ("KafkaNodePool", names.pool) in self.objects:
                wanted[names.pod] = item
        for name, pod in list(self.pods.items()):
            if pod.role == ROLE and name not in wanted:
                self.pods[name] = replace(pod, deleting=True)
            elif pod.role == ROLE and pod.problem is None:
                self.pods[name] = replace(pod, ready=True, started=True)
        for name, item in wanted.items():
            if name not in self.pods:
                pod = self._pod(name, ROLE, item.run, slot=item.slot)
                self.pods[name] = replace(pod, node=self.pool_nodes[_names(item).pool])

    def _carry_out(self, action: Action) -> None:
        match action:
            case DeleteProviderObject(_, kind, name):
                if (kind, name) in self.objects:
                    self.objects[kind, name] = replace(self.objects[kind, name], deleted=self.now)
            case RemoveFinalizers(_, kind, name):
                assert kind == "KafkaTopic", "the operator may only do this for topics"
                if (kind, name) in self.objects:
                    self._remove((kind, name))
            case Create(manifests):
                for manifest in manifests:
                    if manifest["kind"] in KINDS:
                        self._create_object(manifest)
                super()._carry_out(action)
            case _:
                super()._carry_out(action)

    def _create_object(self, manifest: dict[str, Any]) -> None:
        key, labels = (manifest["kind"], manifest["metadata"]["name"]), manifest["metadata"]["labels"]
        if key not in self.objects:
            run, slot = int(labels[LABEL_RUN]), int(labels[LABEL_SLOT])
            self.objects[key] = ProviderObject(*key, run=run, slot=slot, created=self.now)
            self.created.append(key)
        if manifest["kind"] == "KafkaNodePool":
            affinity = manifest["spec"]["template"]["pod"]["affinity"]["nodeAffinity"]
            (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
            ((self.pool_nodes[manifest["metadata"]["name"]],),) = (one["values"] for one in term["matchFields"])
