"""What is watched besides the children of benchmarks, and what becomes of what it tells."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tierbench.api.benchmark_kinds import BENCHMARKS
from tierbench.api.model import Kind
from tierbench.controller.advisor import Advisor
from tierbench.controller.comparison import Name, Watched
from tierbench.controller.context import Context
from tierbench.kube.client import ADVICES, NODE_CLASSES, NODES, RESULTS, ResourceType

Raw = Mapping[str, Any]


def watched(context: Context, advisor: Advisor) -> Iterator[Watched]:
    """Every type."""
    cluster = context.cluster

    def see_node(raw: Raw, *, deleted: bool) -> None:
        if cluster.see_node(raw, deleted=deleted):
            context.classes_changed.set()

    def see_class(raw: Raw, *, deleted: bool) -> None:
        if cluster.see_class(raw, deleted=deleted):
            context.classes_changed.set()
            advisor.look_again()

    def see_result(raw: Raw, *, deleted: bool) -> None:
        if context.results.see(raw, deleted=deleted):
            advisor.look_again(raw["metadata"]["namespace"])

    yield Watched(NODES, see_node, lambda: _of_the_cluster(cluster.nodes), of_the_cluster=True)
    yield Watched(NODE_CLASSES, see_class, lambda: _of_the_cluster(cluster.classes), of_the_cluster=True)
    yield Watched(RESULTS, see_result, context.results.known)
    yield Watched(ADVICES, advisor.see, advisor.known)
    for model in BENCHMARKS.values():
        yield _benchmarks(context, advisor, model.KIND)


def _benchmarks(context: Context, advisor: Advisor, kind: Kind) -> Watched:
    def see(raw: Raw, *, deleted: bool) -> None:
        namespace, name = raw["metadata"]["namespace"], raw["metadata"]["name"]
        if context.results.see_benchmark({**raw, "kind": kind.kind}, deleted=deleted):
            advisor.look_again(namespace)
        context.wakeups.ring((kind.kind, namespace, name))

    return Watched(ResourceType.of(kind), see, lambda: context.results.known_benchmarks(kind.kind))


def _of_the_cluster(names: Iterable[str]) -> list[Name]:
    return [("", name) for name in names]
