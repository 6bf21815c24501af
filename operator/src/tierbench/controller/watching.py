"""What is watched, and what becomes of what watches tell."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from tierbench.api.model import Kind
from tierbench.controller.advisor import Advisor
from tierbench.controller.benchmarks import Benchmarks
from tierbench.controller.context import Context
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.cache import benchmark_of
from tierbench.kube.client import (
    ADVICES,
    JOBS,
    LEASES,
    NODE_CLASSES,
    NODES,
    PODS,
    RESULTS,
    SERVICES,
    Kube,
    ResourceType,
    why,
)
from tierbench.kube.news import Changed, Listed, Name, Trouble, name_of
from tierbench.kube.watch import watch
from tierbench.workloads.names import LABEL_KIND, LABEL_ROLE, ROLE_SERVER

Raw = Mapping[str, Any]
_logger = logging.getLogger(__name__)


class See(Protocol):
    """Takes in an object as a watch shows it; of one that is deleted, namespace and name may be all that is told."""

    def __call__(self, raw: Raw, *, deleted: bool) -> None:
        """The object is there, or gone."""


@dataclass(frozen=True)
class Watched:
    """A type that is watched in some namespaces, or in all or none (None): what takes in its objects, and which of them
    are known."""

    resource: ResourceType
    see: See
    known: Callable[[], Iterable[Name]]
    namespaces: tuple[str | None, ...]
    labels: str = ""


async def follow(kube: Kube, watched: Watched, namespace: str | None, listed: asyncio.Event) -> None:
    """Hears of one type in one namespace, for ever; sets `listed` once all that there is has been told of."""
    query = {"labelSelector": watched.labels} if watched.labels else {}
    async with aclosing(watch(kube, watched.resource, namespace, query)) as feed:
        async for news in feed:
            match news:
                case Changed(_, item, deleted):
                    _see(watched, item, deleted=deleted)
                case Listed(_, names, version):
                    _forget_others(watched, namespace, names, version)
                    listed.set()
                case Trouble(error):
                    _logger.warning("%s cannot be watched: %s; trying again", watched.resource.plural, why(error))


def _see(watched: Watched, item: Raw, *, deleted: bool) -> None:
    try:
        watched.see(item, deleted=deleted)
    except Exception:
        name = item.get("metadata", {}).get("name")
        _logger.exception("%s %s cannot be understood, and is left out", watched.resource.plural, name)


def _forget_others(watched: Watched, namespace: str | None, names: frozenset[Name], version: str) -> None:
    """What was deleted while nobody listened."""
    for name in {name for name in watched.known() if namespace in {None, name[0]}} - names:
        metadata = {"namespace": name[0], "name": name[1], "resourceVersion": version}
        _see(watched, {"metadata": metadata}, deleted=True)


def everything(context: Context, advisor: Advisor, benchmarks: Benchmarks) -> Iterator[Watched]:
    """Every type, in an order in which nothing is missed that a later one needs."""
    cluster, objects = context.cluster, context.objects
    of_release: tuple[str | None, ...] = context.settings.watch_namespaces or (None,)

    def see_node(raw: Raw, *, deleted: bool) -> None:
        if cluster.see_node(raw, deleted=deleted):
            context.classes_changed.set()
            context.wakeups.ring_for([raw["metadata"]["name"]])

    def see_class(raw: Raw, *, deleted: bool) -> None:
        if cluster.see_class(raw, deleted=deleted):
            context.classes_changed.set()
            context.wakeups.ring_all()
            advisor.look_again()

    def see_lease(raw: Raw, *, deleted: bool) -> None:
        before = objects[LEASES].get(name_of(raw))
        if objects[LEASES].see(raw, deleted=deleted) and (deleted or before is None or _holder(before) != _holder(raw)):
            context.wakeups.ring(*context.queue.first())

    def see_result(raw: Raw, *, deleted: bool) -> None:
        objects.results.see(raw, deleted=deleted)
        if context.results.update_result(raw, deleted=deleted):
            advisor.look_again(raw["metadata"]["namespace"])
        context.storage_usage.update_result(raw, deleted=deleted)

    def children(resource: ResourceType, labels: str = LABEL_KIND) -> Watched:
        cache = objects[resource]

        def see(raw: Raw, *, deleted: bool) -> None:
            before = cache.get(name_of(raw)) or raw
            if cache.see(raw, deleted=deleted):
                context.wakeups.ring(benchmark_of(before))

        return Watched(resource, see, cache.names, of_release, labels)

    yield Watched(NODES, see_node, lambda: _of_the_cluster(cluster.nodes), (None,))
    yield Watched(NODE_CLASSES, see_class, lambda: _of_the_cluster(cluster.classes), (None,))
    yield Watched(LEASES, see_lease, objects[LEASES].names, (context.settings.lease_namespace,))
    yield Watched(ADVICES, advisor.see, advisor.known, of_release)
    for model in BENCHMARKS.values():
        yield _benchmarks(context, advisor, benchmarks, model.KIND, of_release)
    yield Watched(RESULTS, see_result, context.results.known, of_release)
    yield children(JOBS)
    yield children(PODS)
    yield children(SERVICES, f"{LABEL_KIND},{LABEL_ROLE}={ROLE_SERVER}")


def _benchmarks(
    context: Context, advisor: Advisor, benchmarks: Benchmarks, kind: Kind, namespaces: tuple[str | None, ...]
) -> Watched:
    cache = context.objects[ResourceType.of(kind)]

    def see(raw: Raw, *, deleted: bool) -> None:
        news = cache.see(raw, deleted=deleted)
        namespace, name = raw["metadata"]["namespace"], raw["metadata"]["name"]
        if context.results.update_benchmark({**raw, "kind": kind.kind}, deleted=deleted):
            advisor.look_again(namespace)
        context.storage_usage.update_benchmark({**raw, "kind": kind.kind}, deleted=deleted)
        if news:
            benchmarks.look_at((kind.kind, namespace, name))

    def known() -> Iterable[Name]:
        """An own write that found a benchmark gone has taken it out of the cache alone."""
        return {*cache.names(), *context.results.known_benchmarks(kind.kind)}

    return Watched(ResourceType.of(kind), see, known, namespaces)


def _holder(lease: Raw) -> str | None:
    holder: str | None = lease.get("spec", {}).get("holderIdentity")
    return holder


def _of_the_cluster(names: Iterable[str]) -> list[Name]:
    return [("", name) for name in names]
