"""Who runs whose benchmarks: one Lease a release, in the namespace that all releases share, held by its leading pod."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tierbench.api.model import GROUP, format_micro_time
from tierbench.kube.client import LEASES, ConflictError, Kube, NotFoundError
from tierbench.kube.fence import DeposedError, Fence, Seconds, uptime

LASTS_SECONDS: Final = 10
"""For so long after it was last seen to change, a Lease keeps others away."""
LEADS_SECONDS: Final = 8.0
"""For so long after it was asked for, its holder writes: less, as what was sent in time takes a while to arrive."""
_LABEL: Final = f"{GROUP}/operator"
_NAMESPACES: Final = f"{GROUP}/watch-namespaces"
_PREFIX: Final = "operator."
_NEVER: Final = float("-inf")


@dataclass(frozen=True)
class Claim:
    """The namespaces whose benchmarks a release runs; none for all. `release` is its namespace/name, `pod` the one of
    its pods that says so."""

    release: str
    namespaces: tuple[str, ...]
    pod: str

    def __str__(self) -> str:
        return f"{self.release}, which runs the benchmarks of {', '.join(self.namespaces) or 'all namespaces'}"

    @property
    def lease(self) -> str:
        """The name of its Lease."""
        return f"{_PREFIX}{self.release.replace('/', '.')}"

    def overlaps(self, other: "Claim") -> bool:
        """Whether some benchmark is claimed by both."""
        return not (self.namespaces and other.namespaces) or not {*self.namespaces}.isdisjoint(other.namespaces)


@dataclass(frozen=True)
class Rival:
    """Who leads, or is about to, where another would. `good`: it has looked for others, and leads."""

    claim: Claim
    good: bool


class Candidate:
    """A pod that would lead. What others hold it takes for run out when it has not seen it change for as long as it
    lasts, by its own clock: clocks differ."""

    def __init__(self, kube: Kube, namespace: str, claim: Claim, fence: Fence, clock: Seconds = uptime) -> None:
        self.claim = claim
        self.fence = fence
        self._kube = kube
        self._namespace = namespace
        self._clock = clock
        self._seen: dict[str, tuple[str, float]] = {}
        self._version = ""

    async def stand(self) -> Rival | None:
        """Begins to lead, unless somebody is in the way.

        A claim is announced before others are looked for, so that of two that begin at once at least one sees the
        other, and is good (has an acquireTime) only when nobody was found. It gives way to every other until then.
        """
        asked = self._clock()
        found = await self._own()
        if found is not None and _claim(found).pod != self.claim.pod and self._lasts(found):
            return Rival(_claim(found), _is_good(found))
        self._version = _version(await self._write("" if found is None else _version(found), good=False))
        others = await self._kube.list(LEASES, self._namespace, {_LABEL: "true"})
        # Each is looked at, so that those that releases have left behind run out side by side.
        rivals = [Rival(_claim(raw), _is_good(raw)) for raw in others if self._rivals(_claim(raw)) and self._lasts(raw)]
        if rivals:
            await self.withdraw()
            return rivals[0]
        await self._lead(asked)
        return None

    async def renew(self) -> None:
        """Goes on leading. Raises DeposedError if the Lease has gone, or gone to another, or was had too late."""
        asked = self._clock()
        self.fence.check()
        try:
            await self._lead(asked)
        except (ConflictError, NotFoundError):
            found = await self._own()
            if found is None or _claim(found).pod != self.claim.pod or not _is_good(found):
                self.fence.shut()
                raise DeposedError("its Lease is another's") from None
            self._version = _version(found)  # an earlier answer was lost, or somebody has edited it
            await self._lead(asked)

    async def withdraw(self) -> None:
        """Lets others lead, unless another does already."""
        self.fence.shut()
        found = await self._own()
        if found is not None and _claim(found).pod == self.claim.pod:
            await self._kube.delete(LEASES, self._namespace, self.claim.lease, {"resourceVersion": _version(found)})

    async def _lead(self, asked: float) -> None:
        """What is written counts from when it was asked for, and not at all if the answer comes when that is over."""
        self._version = _version(await self._write(self._version, good=True))
        self.fence.open(asked + LEADS_SECONDS)

    def _rivals(self, other: Claim) -> bool:
        return other.release != self.claim.release and other.overlaps(self.claim)

    def _lasts(self, raw: Mapping[str, Any]) -> bool:
        name, version, now = raw["metadata"]["name"], _version(raw), self._clock()
        known, since = self._seen.get(name, ("", _NEVER))
        if version != known:
            since = now
            self._seen[name] = (version, since)
        return now - since < float(raw["spec"].get("leaseDurationSeconds", LASTS_SECONDS))

    async def _own(self) -> dict[str, Any] | None:
        try:
            return await self._kube.get(LEASES, self._namespace, self.claim.lease)
        except NotFoundError:
            return None

    async def _write(self, version: str, *, good: bool) -> dict[str, Any]:
        now = format_micro_time(self._kube.now())
        spec = {"holderIdentity": self.claim.pod, "renewTime": now, "leaseDurationSeconds": LASTS_SECONDS}
        metadata = {
            "name": self.claim.lease,
            "namespace": self._namespace,
            "labels": {_LABEL: "true"},
            "annotations": {_NAMESPACES: ",".join(self.claim.namespaces)},
        }
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {**metadata, "resourceVersion": version} if version else metadata,
            "spec": {**spec, "acquireTime": now} if good else spec,
        }
        write = self._kube.replace if version else self._kube.create
        return await write(LEASES, self._namespace, body)


def _claim(raw: Mapping[str, Any]) -> Claim:
    metadata = raw["metadata"]
    namespaces = metadata.get("annotations", {}).get(_NAMESPACES, "")
    release = metadata["name"].removeprefix(_PREFIX).replace(".", "/", 1)
    return Claim(release, tuple(namespaces.split(",")) if namespaces else (), raw["spec"].get("holderIdentity", ""))


def _is_good(raw: Mapping[str, Any]) -> bool:
    return bool(raw["spec"].get("acquireTime"))


def _version(raw: Mapping[str, Any]) -> str:
    return str(raw["metadata"]["resourceVersion"])
