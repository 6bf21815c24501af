"""kopf's handlers: they only delegate."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

import kopf

from tierbench.api.benchmark import BenchmarkStatus
from tierbench.api.model import GROUP, VERSION, Kind
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.result import BenchmarkResult
from tierbench.controller.advisor import Advisor
from tierbench.controller.context import Context
from tierbench.controller.loop import Loop
from tierbench.domain.decide import is_due
from tierbench.kube.client import UNANSWERED, benchmarks
from tierbench.workloads.kinds import KINDS
from tierbench.workloads.names import LABEL_BENCHMARK, LABEL_KIND, Owner

_CLASSES_SECONDS: Final = 0.5
_logger = logging.getLogger(__name__)


def _due(status: Mapping[str, Any], spec: Mapping[str, Any], meta: Mapping[str, Any], **_: Any) -> bool:
    try:
        known = BenchmarkStatus.model_validate(dict(status))
    except ValueError:
        return True  # its loop says what is wrong
    policy = spec.get("runPolicy", {})
    later = bool({"ttlSeconds", "schedule"} & {name for name, value in policy.items() if value is not None})
    return is_due(known.observed_generation, meta["generation"], known.phase, later=later)


def register(registry: kopf.OperatorRegistry, context: Context, advisor: Advisor) -> None:
    """Binds every handler to one operator's context."""
    for kind in KINDS.values():
        _register_benchmark(registry, context, advisor, kind.model.KIND)

    @kopf.on.login(registry=registry)
    def login(**kwargs: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)

    @kopf.on.event("v1", "pods", registry=registry, labels={LABEL_KIND: kopf.PRESENT})
    @kopf.on.event("batch", "v1", "jobs", registry=registry, labels={LABEL_KIND: kopf.PRESENT})
    async def wake(labels: Mapping[str, str], namespace: str | None, **_: Any) -> None:
        context.wakeups.ring((labels[LABEL_KIND], namespace or "", labels.get(LABEL_BENCHMARK, "")))

    @kopf.on.event("v1", "nodes", registry=registry)
    async def see_node(event: Mapping[str, Any], **_: Any) -> None:
        if context.cluster.see_node(event["object"], deleted=event["type"] == "DELETED"):
            context.classes_changed.set()

    @kopf.on.event(GROUP, VERSION, NodeClass.KIND.plural, registry=registry)
    async def see_class(event: Mapping[str, Any], **_: Any) -> None:
        if context.cluster.see_class(event["object"], deleted=event["type"] == "DELETED"):
            context.classes_changed.set()
            advisor.look_again()

    @kopf.on.event(GROUP, VERSION, BenchmarkResult.KIND.plural, registry=registry)
    async def see_result(event: Mapping[str, Any], **_: Any) -> None:
        if context.results.see(event["object"], deleted=event["type"] == "DELETED"):
            advisor.look_again(event["object"]["metadata"]["namespace"])

    @kopf.on.event(GROUP, VERSION, PlacementAdvice.KIND.plural, registry=registry)
    async def see_advice(event: Mapping[str, Any], **_: Any) -> None:
        advisor.see(event["object"], deleted=event["type"] == "DELETED")


def _register_benchmark(registry: kopf.OperatorRegistry, context: Context, advisor: Advisor, kind: Kind) -> None:
    resource, plural = benchmarks(kind), kind.plural

    @kopf.daemon(GROUP, VERSION, plural, registry=registry, id=f"run-{plural}", when=_due)
    async def run(stopped: kopf.DaemonStopped, name: str, namespace: str | None, uid: str, **_: Any) -> None:
        await Loop(context, resource, Owner(kind.kind, namespace or "", name, uid)).run(stopped)

    # Not the daemon's work: an operator that starts when the deletion has been asked for has no daemon.
    @kopf.on.delete(GROUP, VERSION, plural, registry=registry, id=f"clean-up-{plural}", when=_due)
    async def clean_up(name: str, namespace: str | None, uid: str, **_: Any) -> None:
        await Loop(context, resource, Owner(kind.kind, namespace or "", name, uid)).clean_up()

    @kopf.on.event(GROUP, VERSION, plural, registry=registry, id=f"see-{plural}")
    async def see(event: Mapping[str, Any], namespace: str | None, name: str, **_: Any) -> None:
        if context.results.see_benchmark(event["object"], deleted=event["type"] == "DELETED"):
            advisor.look_again(namespace)
        context.wakeups.ring((kind.kind, namespace or "", name))


async def keep_classes(context: Context) -> None:
    """Writes the status of node classes whenever nodes or classes have changed."""
    while True:
        await context.classes_changed.wait()
        context.classes_changed.clear()
        context.wakeups.ring_all()
        try:
            await context.cluster.write_class_statuses(context.kube)
        except UNANSWERED as error:
            _logger.warning("Statuses of node classes: %s; trying again", error)
            context.classes_changed.set()
        await asyncio.sleep(_CLASSES_SECONDS)
