"""Leader election: one Lease per release, in a namespace that all releases share.

At most one pod of a release leads, and no two releases that watch the same namespace have a leader. A leader whose
Lease may have run out cannot write: its fence closes before other pods may take over.
"""

import asyncio
import contextlib
import logging
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tierbench.kube.client import REQUEST_ERRORS, ConflictError, Kube, LeadershipLostError, NotFoundError
from tierbench.kube.meta import LEASES, Raw, format_micro_time

Seconds = Callable[[], float]

LEASE_SECONDS: Final = 10
"""A Lease keeps other pods away for this duration after they last saw it change."""
RENEW_DEADLINE_SECONDS: Final = 8.0
"""A leader writes for this duration after it sent a renewal: less than the Lease lasts, as a request takes time."""
_RENEW_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 0.5
_STANDBY_SECONDS: Final = 1.0
_OTHER_RELEASE_SECONDS: Final = (2.0, 4.0)
_TASK: Final = "leader election"
_PREFIX: Final = "operator."
_NEVER: Final = float("-inf")
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_logger = logging.getLogger(__name__)


def uptime() -> float:
    """Returns the seconds since the machine started, including those for which it was suspended."""
    return time.clock_gettime(_CLOCK)


class Fence:
    """Allows writes while this process leads."""

    def __init__(self, clock: Seconds = uptime) -> None:
        self._clock = clock
        self._until = 0.0

    @property
    def remaining(self) -> float:
        """The seconds for which the fence stays open."""
        return self._until - self._clock()

    def open(self, until: float) -> None:
        """Opens the fence until a time of its clock. Raises LeadershipLostError if that time is over."""
        if until <= self._clock():
            raise LeadershipLostError("the Lease was renewed too late")
        self._until = until

    def close(self) -> None:
        """Closes the fence until it is opened again."""
        self._until = 0.0

    def check(self) -> None:
        """Raises LeadershipLostError if the fence is closed."""
        if self.remaining <= 0:
            raise LeadershipLostError("this pod does not lead: its Lease has expired, or another pod holds it")


@dataclass(frozen=True)
class ElectionRecord:
    """What a pod writes into the Lease of its release.

    `release` is the release as namespace/name, `pod` the name of the pod. `namespaces` are those that the release
    watches; none means all.
    """

    release: str
    namespaces: tuple[str, ...]
    pod: str

    def __str__(self) -> str:
        return f"{self.release}, which watches {', '.join(self.namespaces) or 'all namespaces'}"

    @property
    def lease(self) -> str:
        """The name of the Lease."""
        return f"{_PREFIX}{self.release.replace('/', '.')}"

    def overlaps(self, other: "ElectionRecord") -> bool:
        """Returns whether both releases watch some namespace."""
        return not (self.namespaces and other.namespaces) or not {*self.namespaces}.isdisjoint(other.namespaces)


@dataclass(frozen=True)
class OtherLeader:
    """A pod that leads, or that has announced itself and still looks for others."""

    record: ElectionRecord
    is_leading: bool


class LeaseLock:
    """The Lease of one release, as one of its pods acquires, renews and releases it.

    A Lease has expired when this pod has not seen it change for its duration. The time is that of this pod's clock,
    because clocks of machines differ. `domain` is the prefix of the label and the annotation.
    """

    def __init__(
        self,
        kube: Kube,
        namespace: str,
        domain: str,
        record: ElectionRecord,
        fence: Fence,
        clock: Seconds = uptime,
    ) -> None:
        self.record = record
        self.fence = fence
        self._kube = kube
        self._namespace = namespace
        self._label = f"{domain}/operator"
        self._annotation = f"{domain}/watch-namespaces"
        self._clock = clock
        self._seen: dict[str, tuple[str, float]] = {}
        self._version = ""

    async def acquire(self) -> OtherLeader | None:
        """Becomes the leader, or returns the pod that prevents it.

        A pod announces itself in its Lease before it looks for others. If two pods start at the same time, at least one
        of them sees the other. Its Lease has an acquireTime only when it has found no other. Until then it yields.
        """
        sent = self._clock()
        found = await self._get()
        if found is not None and self._record_of(found).pod != self.record.pod and self._is_valid(found):
            return OtherLeader(self._record_of(found), _is_leading(found))
        self._version = _version(await self._write("" if found is None else _version(found), acquired=False))
        leases = await self._kube.list(LEASES, self._namespace, {self._label: "true"})
        # Every Lease is checked, so that those of removed releases expire at the same time.
        others = [
            OtherLeader(record, _is_leading(raw))
            for raw in leases
            if self._competes(record := self._record_of(raw)) and self._is_valid(raw)
        ]
        if others:
            await self.release()
            return others[0]
        await self._lead(sent)
        return None

    async def renew(self) -> None:
        """Renews the Lease. Raises LeadershipLostError if it is gone, is another pod's, or is renewed too late."""
        sent = self._clock()
        self.fence.check()
        try:
            await self._lead(sent)
        except (ConflictError, NotFoundError):
            found = await self._get()
            if found is None or self._record_of(found).pod != self.record.pod or not _is_leading(found):
                self.fence.close()
                raise LeadershipLostError("another pod holds its Lease") from None
            self._version = _version(found)  # an earlier answer was lost, or a user has edited the Lease
            await self._lead(sent)

    async def release(self) -> None:
        """Deletes the Lease, if this pod holds it."""
        self.fence.close()
        found = await self._get()
        if found is not None and self._record_of(found).pod == self.record.pod:
            await self._kube.delete(LEASES, self._namespace, self.record.lease, {"resourceVersion": _version(found)})

    async def _lead(self, sent: float) -> None:
        """Writes the Lease. Its time counts from when the request was sent."""
        self._version = _version(await self._write(self._version, acquired=True))
        self.fence.open(sent + RENEW_DEADLINE_SECONDS)

    def _competes(self, other: ElectionRecord) -> bool:
        return other.release != self.record.release and other.overlaps(self.record)

    def _is_valid(self, raw: Raw) -> bool:
        name, version, now = raw["metadata"]["name"], _version(raw), self._clock()
        known, since = self._seen.get(name, ("", _NEVER))
        if version != known:
            since = now
            self._seen[name] = (version, since)
        return now - since < float(raw["spec"].get("leaseDurationSeconds", LEASE_SECONDS))

    async def _get(self) -> dict[str, Any] | None:
        try:
            return await self._kube.get(LEASES, self._namespace, self.record.lease)
        except NotFoundError:
            return None

    async def _write(self, version: str, *, acquired: bool) -> dict[str, Any]:
        now = format_micro_time(self._kube.now())
        spec = {"holderIdentity": self.record.pod, "renewTime": now, "leaseDurationSeconds": LEASE_SECONDS}
        metadata = {
            "name": self.record.lease,
            "namespace": self._namespace,
            "labels": {self._label: "true"},
            "annotations": {self._annotation: ",".join(self.record.namespaces)},
        }
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {**metadata, "resourceVersion": version} if version else metadata,
            "spec": {**spec, "acquireTime": now} if acquired else spec,
        }
        write = self._kube.replace if version else self._kube.create
        return await write(LEASES, self._namespace, body)

    def _record_of(self, raw: Raw) -> ElectionRecord:
        metadata = raw["metadata"]
        namespaces = metadata.get("annotations", {}).get(self._annotation, "")
        release = metadata["name"].removeprefix(_PREFIX).replace(".", "/", 1)
        holder = raw["spec"].get("holderIdentity", "")
        return ElectionRecord(release, tuple(namespaces.split(",")) if namespaces else (), holder)


def _is_leading(raw: Raw) -> bool:
    return bool(raw["spec"].get("acquireTime"))


def _version(raw: Raw) -> str:
    return str(raw["metadata"]["resourceVersion"])


class ElectionStatus(Protocol):
    """Receives the state of the election, for metrics and for the readiness probe."""

    leader: str
    """The pod that leads this release while this pod is on standby."""
    waits_for: str
    """Why no pod of this release leads, or nothing."""

    def set_leader(self, is_leader: bool) -> None:
        """This pod leads, or does not."""

    def track(self, task: str) -> AbstractContextManager[None]:
        """Watches that a task ends in time."""


def start_again() -> None:
    """Runs the program again in this process, as a standby. No thread, task or connection of the old one continues.

    If the process ended instead, several outages of the API server in an hour would be a CrashLoopBackOff of minutes.
    """
    logging.shutdown()
    try:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 (the program itself)
    finally:
        os._exit(1)


class LeaderElector:
    """Runs the election of one pod. When it stops leading, its program starts again, so that no task of it writes."""

    def __init__(
        self, lock: LeaseLock, status: ElectionStatus, on_stopped_leading: Callable[[], None] = start_again
    ) -> None:
        self._lock = lock
        self._status = status
        self._on_stopped_leading = on_stopped_leading
        self._task: asyncio.Task[None] | None = None
        self.is_leader = asyncio.Event()
        """Set once this pod leads."""

    async def run(self) -> None:
        """Is on standby until no other pod leads, then leads, until `release` cancels it."""
        self._task = asyncio.current_task()
        while True:
            wait = await self._acquire()
            if wait is None:
                break
            await asyncio.sleep(wait)
        _logger.info("became leader")
        with _watchdog(self._lock.fence, self._stop_leading):
            self.is_leader.set()
            while True:
                wait = await self._renew()
                await asyncio.sleep(wait)

    async def release(self) -> None:
        """Stops leading and releases the Lease, so that another pod leads at once. If that fails, the Lease expires."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._status.set_leader(False)
        with contextlib.suppress(*REQUEST_ERRORS):
            await self._lock.release()

    async def _acquire(self) -> float | None:
        """Returns the seconds until the next try, or None once this pod leads."""
        try:
            with self._status.track(_TASK):
                other = await self._lock.acquire()
        except (ConflictError, LeadershipLostError) as error:
            _logger.debug("did not become leader", extra={"error": str(error)})
            return _STANDBY_SECONDS
        except REQUEST_ERRORS as error:
            self._wait_for(f"Cannot read the Leases of other operators yet: {error}")
        else:
            if other is None:
                self._wait_for("")
                self._status.set_leader(True)
                return None
            if other.record.release == self._lock.record.release:
                if other.is_leading:
                    self._wait_for("")
                self._status.leader = other.record.pod
                return _STANDBY_SECONDS
            self._wait_for(
                f"Another operator watches the same namespaces: release {other.record}. Set different namespaces in "
                "watchNamespaces of each release, or uninstall one of them. This operator waits until then."
            )
        return random.uniform(*_OTHER_RELEASE_SECONDS)  # noqa: S311 (so that two that yielded do not meet again)

    async def _renew(self) -> float:
        """Returns the seconds until the next renewal."""
        try:
            with self._status.track(_TASK):
                await self._lock.renew()
        except LeadershipLostError as error:
            self._stop_leading(str(error))
        except REQUEST_ERRORS as error:
            _logger.warning("cannot renew the Lease of the leader; retrying", extra={"error": str(error)})
            return _RETRY_SECONDS
        return _RENEW_SECONDS

    def _stop_leading(self, reason: str) -> None:
        _logger.error("lost leadership; starting again as a standby", extra={"reason": reason})
        self._on_stopped_leading()

    def _wait_for(self, reason: str) -> None:
        if reason and self._status.waits_for != reason:
            _logger.warning("%s", reason)
        self._status.waits_for = reason


@contextmanager
def _watchdog(fence: Fence, stop_leading: Callable[[str], None]) -> Iterator[None]:
    """Runs a thread that notices an expired Lease even if the event loop hangs."""
    over = threading.Event()

    def watch() -> None:
        # The wait does not count the time for which the machine is suspended; the fence does.
        while not over.wait(min(max(fence.remaining, 0.01), 1.0)):
            if fence.remaining <= 0:
                stop_leading("its Lease has expired, and the API server did not renew it")
                return

    threading.Thread(target=watch, name=_TASK, daemon=True).start()
    try:
        yield
    finally:
        over.set()
