"""kopf's handlers: they only delegate."""

from collections.abc import Iterable, Mapping
from typing import Any

import kopf

from tierbench.api.benchmark import BenchmarkStatus
from tierbench.api.benchmark_kinds import BENCHMARKS
from tierbench.api.model import GROUP, VERSION, Kind
from tierbench.controller.comparison import Comparison, Watched
from tierbench.controller.context import Context
from tierbench.controller.loop import Loop
from tierbench.domain.decide import is_due
from tierbench.kube.client import ResourceType
from tierbench.workloads.names import LABEL_BENCHMARK, LABEL_KIND, Owner


def _due(status: Mapping[str, Any], spec: Mapping[str, Any], meta: Mapping[str, Any], **_: Any) -> bool:
    try:
        known = BenchmarkStatus.model_validate(dict(status))
    except ValueError:
        return True  # its loop says what is wrong
    policy = spec.get("runPolicy", {})
    later = bool({"ttlSeconds", "schedule"} & {name for name, value in policy.items() if value is not None})
    return is_due(known.observed_generation, meta["generation"], known.phase, later=later)


def register(
    registry: kopf.OperatorRegistry, context: Context, watched: Iterable[Watched], comparison: Comparison
) -> None:
    """Binds every handler to one operator's context."""
    for model in BENCHMARKS.values():
        _register_benchmark(registry, context, model.KIND)

    @kopf.on.login(registry=registry)
    def login(**kwargs: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)

    @kopf.on.event("v1", "pods", registry=registry, labels={LABEL_KIND: kopf.PRESENT})
    @kopf.on.event("batch", "v1", "jobs", registry=registry, labels={LABEL_KIND: kopf.PRESENT})
    async def wake(labels: Mapping[str, str], namespace: str | None, **_: Any) -> None:
        context.wakeups.ring((labels[LABEL_KIND], namespace or "", labels.get(LABEL_BENCHMARK, "")))

    for one in watched:
        _register_watched(registry, one, comparison)


def _register_watched(registry: kopf.OperatorRegistry, watched: Watched, comparison: Comparison) -> None:
    group, version = watched.resource.group_and_version

    @kopf.on.event(group, version, watched.resource.plural, registry=registry, id=f"see-{watched.resource.plural}")
    async def see(event: Mapping[str, Any], **_: Any) -> None:
        if event["type"] is None:  # of a list: the watch has begun anew
            comparison.soon()
        watched.see(event["object"], deleted=event["type"] == "DELETED")


def _register_benchmark(registry: kopf.OperatorRegistry, context: Context, kind: Kind) -> None:
    resource, plural = ResourceType.of(kind), kind.plural

    @kopf.daemon(GROUP, VERSION, plural, registry=registry, id=f"run-{plural}", when=_due)
    async def run(stopped: kopf.DaemonStopped, name: str, namespace: str | None, uid: str, **_: Any) -> None:
        await Loop(context, resource, Owner(kind.kind, namespace or "", name, uid)).run(stopped)

    # Not the daemon's work: an operator that starts when the deletion has been asked for has no daemon.
    @kopf.on.delete(GROUP, VERSION, plural, registry=registry, id=f"clean-up-{plural}", when=_due)
    async def clean_up(name: str, namespace: str | None, uid: str, **_: Any) -> None:
        await Loop(context, resource, Owner(kind.kind, namespace or "", name, uid)).clean_up()
