"""Whose benchmarks an operator runs: one Lease a release, in the namespace that all releases share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tierbench.api.model import GROUP
from tierbench.api.timestamps import format_micro_time
from tierbench.domain.views import lease_view
from tierbench.kube.client import LEASES, Kube, NotFoundError

LASTS_SECONDS: Final = 30
_LABEL: Final = f"{GROUP}/operator"
_NAMESPACES: Final = f"{GROUP}/watch-namespaces"
_POD: Final = f"{GROUP}/pod"


@dataclass(frozen=True)
class Claim:
    """The namespaces whose benchmarks a release runs; none for all. `release` is its namespace/name, `pod` whose of its
    pods says so."""

    release: str
    namespaces: tuple[str, ...]
    pod: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.release}, which runs the benchmarks of {', '.join(self.namespaces) or 'all namespaces'}"

    @property
    def lease(self) -> str:
        """The name of its Lease."""
        return f"operator.{self.release.replace('/', '.')}"

    def overlaps(self, other: "Claim") -> bool:
        """Whether some benchmark is claimed by both."""
        return not (self.namespaces and other.namespaces) or not {*self.namespaces}.isdisjoint(other.namespaces)


async def make_good(kube: Kube, namespace: str, claim: Claim) -> Claim | None:
    """Claims anew, or renews; if another claim is in the way, takes this one back and returns that one.

    A claim is announced before others are looked for, so that of two operators that start at once at least one sees
    the other. It gives way to every other until it is good (its Lease has an acquireTime), and then to good ones alone.
    """
    mine = await _own(kube, namespace, claim)
    good = mine is not None and _is_good(mine) and _claim(mine) == claim and lease_view(mine).expires > kube.now()
    mine = await _write(kube, namespace, claim, mine, good=good)
    for raw in await kube.list(LEASES, namespace, {_LABEL: "true"}):
        other = _claim(raw)
        in_the_way = lease_view(raw).expires > kube.now() and (_is_good(raw) or not good)
        if other.release != claim.release and in_the_way and other.overlaps(claim):
            await withdraw(kube, namespace, claim)
            return other
    if not good:
        await _write(kube, namespace, claim, mine, good=True)
    return None


async def withdraw(kube: Kube, namespace: str, claim: Claim) -> None:
    """Lets others run these benchmarks, unless it is the release's next pod that claims them by now."""
    mine = await _own(kube, namespace, claim)
    if mine is not None and _annotations(mine).get(_POD, "") == claim.pod:
        version = {"resourceVersion": mine["metadata"]["resourceVersion"]}
        await kube.delete(LEASES, namespace, claim.lease, version)


async def _own(kube: Kube, namespace: str, claim: Claim) -> dict[str, Any] | None:
    try:
        return await kube.get(LEASES, namespace, claim.lease)
    except NotFoundError:
        return None


async def _write(
    kube: Kube, namespace: str, claim: Claim, before: Mapping[str, Any] | None, *, good: bool
) -> dict[str, Any]:
    now = format_micro_time(kube.now())
    spec = {"holderIdentity": claim.release, "renewTime": now, "leaseDurationSeconds": LASTS_SECONDS}
    metadata = {
        "name": claim.lease,
        "namespace": namespace,
        "labels": {_LABEL: "true"},
        "annotations": {_NAMESPACES: ",".join(claim.namespaces), _POD: claim.pod},
    }
    if before is not None:
        metadata["resourceVersion"] = before["metadata"]["resourceVersion"]
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {**spec, "acquireTime": now} if good else spec,
    }
    write = kube.create if before is None else kube.replace
    return await write(LEASES, namespace, body)


def _claim(raw: Mapping[str, Any]) -> Claim:
    namespaces = _annotations(raw).get(_NAMESPACES, "")
    return Claim(lease_view(raw).holder, tuple(namespaces.split(",")) if namespaces else ())


def _is_good(raw: Mapping[str, Any]) -> bool:
    return bool(raw["spec"].get("acquireTime"))


def _annotations(raw: Mapping[str, Any]) -> Mapping[str, str]:
    found: Mapping[str, str] = raw["metadata"].get("annotations", {})
    return found
