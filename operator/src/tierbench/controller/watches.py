"""The types that the operator watches, and the handlers of their events.

kopf watches what the operator works on, and what belongs to it. Reflectors watch the types that are too many for it.
"""

from collections.abc import Iterable, Iterator

from tierbench.api.model import Kind
from tierbench.api.node_class import NODE_CLASSES
from tierbench.api.placement_advice import ADVICES
from tierbench.api.result import RESULTS
from tierbench.controller.advisor import Advisor
from tierbench.controller.context import Context, benchmark_of
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.informer import Informer
from tierbench.kube.meta import JOBS, LEASES, NODES, PODS, SERVICES, Name, Raw, ResourceType, name_of
from tierbench.workloads.workload import LABEL_KIND, LABEL_ROLE, ROLE_SERVER


def reflected(context: Context, advisor: Advisor) -> Iterator[Informer]:
    """Yields the informers of reflectors. They run on a standby, too."""
    cluster, objects = context.cluster, context.objects

    def on_node(raw: Raw, *, deleted: bool) -> None:
        if cluster.observe_node(raw, deleted=deleted):
            context.workqueue.add_for_nodes([raw["metadata"]["name"]])

    def on_lease(raw: Raw, *, deleted: bool) -> None:
        before = objects[LEASES].get(name_of(raw))
        changed = objects[LEASES].observe(raw, deleted=deleted)
        if changed and (deleted or before is None or _holder(before) != _holder(raw)):
            context.workqueue.add(*context.queue.heads())

    def on_result(raw: Raw, *, deleted: bool) -> None:
        objects.results.observe(raw, deleted=deleted)
        was_full = context.storage_full
        if context.results.update_result(raw, deleted=deleted):
            advisor.add_all(raw["metadata"]["namespace"])
        context.metrics.set_stored_bytes(context.results.stored_bytes)
        if was_full and not context.storage_full:
            context.workqueue.add(*context.queue.heads())

    yield Informer(NODES, on_node, lambda: _cluster_scoped(cluster.nodes), (None,))
    yield Informer(LEASES, on_lease, objects[LEASES].names, (context.settings.lease_namespace,))
    yield Informer(RESULTS, on_result, context.results.known, _namespaces(context))


def handled(context: Context, advisor: Advisor) -> Iterator[Informer]:
    """Yields the informers that kopf's events reach."""
    cluster, objects, namespaces = context.cluster, context.objects, _namespaces(context)

    def on_class(raw: Raw, *, deleted: bool) -> None:
        if cluster.observe_class(raw, deleted=deleted):
            context.workqueue.add_all()
            advisor.add_all()

    def children(resource: ResourceType, labels: str = LABEL_KIND) -> Informer:
        cache = objects[resource]

        def on_child(raw: Raw, *, deleted: bool) -> None:
            before = cache.get(name_of(raw)) or raw
            if cache.observe(raw, deleted=deleted):
                context.workqueue.add(benchmark_of(before))

        return Informer(resource, on_child, cache.names, namespaces, labels)

    yield Informer(NODE_CLASSES, on_class, lambda: _cluster_scoped(cluster.classes), (None,))
    yield Informer(ADVICES, advisor.observe, advisor.known, namespaces)
    for model in BENCHMARKS.values():
        yield _benchmarks(context, advisor, model.KIND)
    yield children(JOBS)
    yield children(PODS)
    yield children(SERVICES, f"{LABEL_KIND},{LABEL_ROLE}={ROLE_SERVER}")


def _benchmarks(context: Context, advisor: Advisor, kind: Kind) -> Informer:
    cache = context.objects[kind.resource]

    def on_benchmark(raw: Raw, *, deleted: bool) -> None:
        changed = cache.observe(raw, deleted=deleted)
        namespace, name = raw["metadata"]["namespace"], raw["metadata"]["name"]
        if context.results.update_benchmark({**raw, "kind": kind.kind}, deleted=deleted):
            advisor.add_all(namespace)
        if changed:
            context.workqueue.add((kind.kind, namespace, name))

    def known() -> Iterable[Name]:
        """An own write that finds a benchmark deleted removes it from the cache only."""
        return {*cache.names(), *context.results.known_benchmarks(kind.kind)}

    return Informer(kind.resource, on_benchmark, known, _namespaces(context))


def _namespaces(context: Context) -> tuple[str | None, ...]:
    return context.settings.watch_namespaces or (None,)


def _holder(lease: Raw) -> str | None:
    holder: str | None = lease.get("spec", {}).get("holderIdentity")
    return holder


def _cluster_scoped(names: Iterable[str]) -> list[Name]:
    return [("", name) for name in names]
