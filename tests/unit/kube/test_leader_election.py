"""Pods of one release, and operators of two releases that watch the same namespaces."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.apiserver.client import InProcessKube
from tests.unit.apiserver.server import ApiServer, Request
from tierbench.api.model import GROUP
from tierbench.kube import leader_election
from tierbench.kube.client import ApiError, LeadershipLostError
from tierbench.kube.leader_election import (
    LEASE_SECONDS,
    RENEW_DEADLINE_SECONDS,
    ElectionRecord,
    Fence,
    LeaderElector,
    LeaseLock,
    OtherLeader,
)
from tierbench.kube.meta import JOBS, LEASES
from tierbench.metrics.operator import OperatorMetrics

LEASE_PATH = LEASES.path("leases")
ALL, TEAM_A, TEAM_B = (
    ElectionRecord("bench/all", (), "all-1"),
    ElectionRecord("a/tierbench", ("team-a", "shop"), "a-1"),
    ElectionRecord("b/tierbench", ("team-b",), "b-1"),
)


@pytest.fixture(autouse=True)
def _short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("_RENEW_SECONDS", 0.01), ("_RETRY_SECONDS", 0.01), ("_STANDBY_SECONDS", 0.01)):
        monkeypatch.setattr(leader_election, name, seconds)
    monkeypatch.setattr(leader_election, "_OTHER_RELEASE_SECONDS", (0.01, 0.02))


@dataclass
class Pod:
    """One operator, whose clock is set by hand."""

    api: ApiServer
    claim: ElectionRecord
    now: float = 1000.0
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.fence = Fence(self.clock)
        self.lock = LeaseLock(InProcessKube(self.api), "leases", GROUP, self.claim, self.fence, self.clock)
        self.metrics = OperatorMetrics()
        loop = asyncio.get_running_loop()

        def end() -> None:
            loop.call_soon_threadsafe(self.ended.set)

        self.elector = LeaderElector(self.lock, self.metrics, end)

    def clock(self) -> float:
        return self.now

    @property
    def leads(self) -> bool:
        return self.fence.remaining > 0

    async def acquire(self) -> OtherLeader | None:
        return await self.lock.acquire()

    async def wait_out(self, other: ElectionRecord) -> None:
        """Observes the other's Lease, and lets its duration pass."""
        found = await self.acquire()
        assert found is not None
        assert found.record == other
        self.now += LEASE_SECONDS


async def until_waiting(metrics: OperatorMetrics) -> None:
    while not metrics.waits_for:  # noqa: ASYNC110 (it sets no event)
        await asyncio.sleep(0)


@pytest.fixture
def running() -> Iterator[list[asyncio.Task[None]]]:
    """Tasks that end with the test."""
    tasks: list[asyncio.Task[None]] = []
    yield tasks
    for task in tasks:
        task.cancel()


@pytest.mark.parametrize(
    ("first", "second"), [(ALL, TEAM_A), (TEAM_A, ALL), (TEAM_A, replace(TEAM_B, namespaces=("team-b", "shop")))]
)
async def test_the_second_release_waits_until_the_first_has_left(
    first: ElectionRecord, second: ElectionRecord, running: list[asyncio.Task[None]]
) -> None:
    api = ApiServer()
    one, two = Pod(api, first), Pod(api, second)
    assert await one.acquire() is None
    running.append(asyncio.create_task(two.elector.run()))
    await until_waiting(two.metrics)
    assert f"release {first}" in two.metrics.waits_for
    assert f"{LEASE_PATH}/{second.lease}" not in api.objects
    assert not two.leads
    await one.elector.release()
    assert await asyncio.wait_for(two.elector.is_leader.wait(), 60)
    assert two.metrics.waits_for == ""
    assert not one.leads


async def test_the_second_pod_is_on_standby_and_leads_once_the_first_has_left(
    running: list[asyncio.Task[None]],
) -> None:
    api = ApiServer()
    one, two = Pod(api, ALL), Pod(api, replace(ALL, pod="all-2"))
    assert await one.acquire() is None
    running.append(asyncio.create_task(two.elector.run()))
    while not two.metrics.leader:  # noqa: ASYNC110 (it sets no event)
        await asyncio.sleep(0)
    assert (two.metrics.leader, two.metrics.is_leader, two.metrics.waits_for) == ("all-1", False, "")
    await one.elector.release()
    assert await asyncio.wait_for(two.elector.is_leader.wait(), 60)
    assert (two.metrics.is_leader, two.leads, one.leads) == (True, True, False)


async def test_standby_leads_after_the_lease_is_unchanged_for_its_duration() -> None:
    """The standby uses its own clock. The leader's, which set the time in the Lease, may be an hour ahead."""
    api = ApiServer()
    one, two = Pod(api, ALL), Pod(api, replace(ALL, pod="all-2"), now=5.0)
    api.ahead = timedelta(hours=1)
    assert await one.acquire() is None
    await two.wait_out(ALL)
    await one.lock.renew()
    await two.wait_out(ALL)
    two.now -= 0.1
    assert await two.acquire() == OtherLeader(ALL, is_leading=True)
    two.now += 0.1
    assert await two.acquire() is None
    lease = api.objects[f"{LEASE_PATH}/{ALL.lease}"]
    assert lease["spec"]["holderIdentity"] == "all-2"
    with pytest.raises(LeadershipLostError, match="another pod holds"):
        await one.lock.renew()
    assert not one.leads


async def test_released_lease_does_not_count_as_lost(running: list[asyncio.Task[None]]) -> None:
    """The leader still has tasks to end, and the loss of its Lease would end its process."""
    pod = Pod(ApiServer(), ALL)
    task = asyncio.create_task(pod.elector.run())
    running.append(task)
    await pod.elector.is_leader.wait()
    await pod.elector.release()
    await asyncio.sleep(0.05)
    assert (task.cancelled(), pod.leads, pod.ended.is_set()) == (True, False, False)
    assert not pod.api.objects


async def test_restarted_container_leads_again_at_once() -> None:
    api = ApiServer()
    assert await Pod(api, ALL).acquire() is None
    assert await Pod(api, ALL, now=3.0).acquire() is None


async def test_deposed_leader_does_not_release_the_lease_of_its_successor() -> None:
    api = ApiServer()
    old, new = Pod(api, ALL), Pod(api, replace(ALL, pod="all-2"))
    assert await old.acquire() is None
    await new.wait_out(ALL)
    assert await new.acquire() is None
    await old.elector.release()
    assert f"{LEASE_PATH}/{ALL.lease}" in api.objects
    await new.lock.renew()


async def test_releases_with_different_namespaces_lead_at_the_same_time() -> None:
    api = ApiServer()
    one, two = Pod(api, TEAM_A), Pod(api, TEAM_B)
    assert [await one.acquire(), await two.acquire()] == [None, None]
    await one.lock.renew()
    assert (one.leads, two.leads) == (True, True)


async def test_release_leads_after_the_lease_of_a_killed_one_expires() -> None:
    api = ApiServer()
    assert await Pod(api, TEAM_A).acquire() is None
    waiting = Pod(api, ALL)
    await waiting.wait_out(TEAM_A)
    assert await waiting.acquire() is None


async def test_fence_rejects_writes_before_the_lease_expires() -> None:
    api = ApiServer()
    pod = Pod(api, ALL)
    assert await pod.acquire() is None
    pod.now += RENEW_DEADLINE_SECONDS - 0.1
    pod.fence.check()
    api.refuse["PUT", ALL.lease] = ApiError(503, "ServiceUnavailable", "later")
    with pytest.raises(ApiError):
        await pod.lock.renew()
    pod.now += 0.1
    with pytest.raises(LeadershipLostError):
        pod.fence.check()
    api.refuse.clear()
    with pytest.raises(LeadershipLostError):
        await pod.lock.renew()
    assert RENEW_DEADLINE_SECONDS < LEASE_SECONDS


async def test_late_answer_does_not_make_a_pod_the_leader() -> None:
    """Another pod may have considered the Lease expired before it was written."""
    pod = Pod(ApiServer(), ALL)

    async def delay(_: Request) -> None:
        pod.now += RENEW_DEADLINE_SECONDS

    pod.api.reactor = delay
    with pytest.raises(LeadershipLostError, match="too late"):
        await pod.acquire()
    assert not pod.leads


async def test_edited_lease_is_renewed_and_a_deleted_one_is_lost() -> None:
    """While it was gone, another release may have found no leader."""
    api = ApiServer()
    pod = Pod(api, ALL)
    assert await pod.acquire() is None
    path = f"{LEASE_PATH}/{ALL.lease}"
    lease = api.objects[path]
    api.put(LEASES, {**lease, "metadata": {**lease["metadata"], "labels": {}}})
    await pod.lock.renew()
    api.delete(LEASES, ALL.lease, "leases")
    with pytest.raises(LeadershipLostError):
        await pod.lock.renew()


async def test_leader_ends_its_process_when_another_pod_holds_its_lease(running: list[asyncio.Task[None]]) -> None:
    api = ApiServer()
    pod = Pod(api, ALL)
    running.append(asyncio.create_task(pod.elector.run()))
    assert await pod.elector.is_leader.wait()
    api.change(LEASES, ALL.lease, "leases", spec={"holderIdentity": "all-2"})
    await asyncio.wait_for(pod.ended.wait(), 60)
    assert not pod.leads


async def test_leader_ends_its_process_at_the_renew_deadline_even_if_its_loop_hangs() -> None:
    pod = Pod(ApiServer(), ALL)
    ended = threading.Event()
    hanging = LeaderElector(pod.lock, pod.metrics, ended.set)
    leading = asyncio.create_task(hanging.run())
    assert await hanging.is_leader.wait()
    pod.now += RENEW_DEADLINE_SECONDS
    assert ended.wait(60)
    leading.cancel()


async def test_elector_retries_while_the_api_server_rejects_requests(running: list[asyncio.Task[None]]) -> None:
    api = ApiServer()
    api.refuse["GET", "leases"] = ApiError(403, "Forbidden", "not yet")
    pod = Pod(api, TEAM_A)
    running.append(asyncio.create_task(pod.elector.run()))
    await until_waiting(pod.metrics)
    assert "403 Forbidden: not yet" in pod.metrics.waits_for
    api.refuse.clear()
    assert await asyncio.wait_for(pod.elector.is_leader.wait(), 60)


async def test_a_pod_that_does_not_lead_writes_nothing() -> None:
    api, fence = ApiServer(), Fence()
    kube = InProcessKube(api, check_leader=fence.check)
    body = {"metadata": {"name": "j"}, "status": {}}
    writes: tuple[Callable[[], Awaitable[Any]], ...] = (
        lambda: kube.create(JOBS, "ns", body),
        lambda: kube.replace(JOBS, "ns", body),
        lambda: kube.apply_status(JOBS, "ns", body),
        lambda: kube.merge(JOBS, "ns", "j", {}),
        lambda: kube.delete(JOBS, "ns", "j"),
    )
    for write in writes:
        with pytest.raises(LeadershipLostError):
            await write()
    assert await kube.list(JOBS, "ns") == []
    assert [request.method for request in api.requests] == ["GET"]
    fence.open(fence._clock() + 60)
    for write in writes:
        await write()
    assert [request.method for request in api.writes] == ["POST", "PUT", "PATCH", "PATCH", "DELETE"]


def test_a_deposed_leader_starts_again_in_its_process_without_its_threads() -> None:
    """Kubernetes would count an ended process as a crash."""
    program = """
import os, sys, threading, time
from tierbench.kube.leader_election import start_again
print(os.getpid(), threading.active_count(), flush=True)
if "AGAIN" in os.environ:
    sys.exit(7)
os.environ["AGAIN"] = "1"
threading.Thread(target=lambda: time.sleep(60)).start()
threading.Thread(target=start_again).start()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    first, again = ended.stdout.splitlines()
    assert (again, first.split()[1], ended.returncode) == (first, "1", 7), ended.stderr
