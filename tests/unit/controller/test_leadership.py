"""Pods of one release, and operators of two, that would run the same benchmarks."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.unit.controller.api import Api
from tierbench.controller import leadership
from tierbench.controller.leadership import Leadership
from tierbench.kube.claims import LASTS_SECONDS, LEADS_SECONDS, Candidate, Claim, Rival
from tierbench.kube.client import JOBS, ApiError, Kube
from tierbench.kube.fence import DeposedError, Fence
from tierbench.metrics.operator import OperatorMetrics

LEASES = "/apis/coordination.k8s.io/v1/namespaces/leases/leases"
ALL, TEAM_A, TEAM_B = (
    Claim("bench/all", (), "all-1"),
    Claim("a/tierbench", ("team-a", "shop"), "a-1"),
    Claim("b/tierbench", ("team-b",), "b-1"),
)


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("_RENEW_SECONDS", 0.01), ("_RETRY_SECONDS", 0.01), ("_LOOK_SECONDS", 0.01)):
        monkeypatch.setattr(leadership, name, seconds)
    monkeypatch.setattr(leadership, "_AGAIN_SECONDS", (0.01, 0.02))


@dataclass
class Pod:
    """One operator, whose clock is set by hand."""

    api: Api
    claim: Claim
    now: float = 1000.0
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.fence = Fence(self.clock)
        self.candidate = Candidate(self.api, "leases", self.claim, self.fence, self.clock)
        self.metrics = OperatorMetrics()
        loop = asyncio.get_running_loop()

        def end() -> None:
            loop.call_soon_threadsafe(self.ended.set)

        self.leadership = Leadership(self.candidate, self.metrics, end)

    def clock(self) -> float:
        return self.now

    @property
    def leads(self) -> bool:
        return self.fence.left > 0

    async def stand(self) -> Rival | None:
        return await self.candidate.stand()

    async def waits_for(self, rival: Claim) -> None:
        """Looks at the other's Lease until it would have run out if nothing had become of it."""
        found = await self.stand()
        assert found is not None
        assert found.claim == rival
        self.now += LASTS_SECONDS


async def said(metrics: OperatorMetrics) -> None:
    while not metrics.waits_for:  # noqa: ASYNC110 (it rings no bell)
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
    first: Claim, second: Claim, running: list[asyncio.Task[None]]
) -> None:
    api = Api()
    one, two = Pod(api, first), Pod(api, second)
    assert await one.stand() is None
    running.append(asyncio.create_task(two.leadership.run()))
    await said(two.metrics)
    assert f"release {first}" in two.metrics.waits_for
    assert f"{LEASES}/{second.lease}" not in api.objects
    assert not two.leads
    await one.leadership.leave()
    assert await asyncio.wait_for(two.leadership.won.wait(), 60)
    assert two.metrics.waits_for == ""
    assert not one.leads


async def test_the_second_pod_stands_by_and_leads_at_once_when_the_first_has_left(
    running: list[asyncio.Task[None]],
) -> None:
    api = Api()
    one, two = Pod(api, ALL), Pod(api, replace(ALL, pod="all-2"))
    assert await one.stand() is None
    running.append(asyncio.create_task(two.leadership.run()))
    while not two.metrics.leader:  # noqa: ASYNC110 (it rings no bell)
        await asyncio.sleep(0)
    assert (two.metrics.leader, two.metrics.is_leader, two.metrics.waits_for) == ("all-1", False, "")
    await one.leadership.leave()
    assert await asyncio.wait_for(two.leadership.won.wait(), 60)
    assert (two.metrics.is_leader, two.leads, one.leads) == (True, True, False)


async def test_a_leader_that_is_gone_is_followed_when_its_lease_has_not_changed_for_as_long_as_it_lasts() -> None:
    """By the clock of who follows: that of the leader, which wrote a time into it, may be an hour ahead."""
    api = Api()
    one, two = Pod(api, ALL), Pod(api, replace(ALL, pod="all-2"), now=5.0)
    api.ahead *= 3600
    assert await one.stand() is None
    await two.waits_for(ALL)
    await one.candidate.renew()
    await two.waits_for(ALL)
    two.now -= 0.1
    assert await two.stand() == Rival(ALL, good=True)
    two.now += 0.1
    assert await two.stand() is None
    lease = api.objects[f"{LEASES}/{ALL.lease}"]
    assert lease["spec"]["holderIdentity"] == "all-2"
    with pytest.raises(DeposedError, match="another's"):
        await one.candidate.renew()
    assert not one.leads


async def test_a_container_that_was_restarted_leads_on_at_once() -> None:
    api = Api()
    assert await Pod(api, ALL).stand() is None
    assert await Pod(api, ALL, now=3.0).stand() is None


async def test_a_pod_that_ends_late_leaves_the_lease_of_the_next_one_alone() -> None:
    api = Api()
    old, new = Pod(api, ALL), Pod(api, replace(ALL, pod="all-2"))
    assert await old.stand() is None
    await new.waits_for(ALL)
    assert await new.stand() is None
    await old.leadership.leave()
    assert f"{LEASES}/{ALL.lease}" in api.objects
    await new.candidate.renew()


async def test_releases_with_namespaces_of_their_own_do_not_meet() -> None:
    api = Api()
    one, two = Pod(api, TEAM_A), Pod(api, TEAM_B)
    assert [await one.stand(), await two.stand()] == [None, None]
    await one.candidate.renew()
    assert (one.leads, two.leads) == (True, True)


async def test_a_release_waits_for_one_that_was_killed_as_long_as_its_lease_lasts() -> None:
    api = Api()
    assert await Pod(api, TEAM_A).stand() is None
    waiting = Pod(api, ALL)
    await waiting.waits_for(TEAM_A)
    assert await waiting.stand() is None


async def test_writes_end_before_the_lease_does_and_count_from_before_it_was_asked_for() -> None:
    api = Api()
    pod = Pod(api, ALL)
    assert await pod.stand() is None
    pod.now += LEADS_SECONDS - 0.1
    pod.fence.check()
    api.refuse["PUT", ALL.lease] = ApiError(503, "ServiceUnavailable", "later")
    with pytest.raises(ApiError):
        await pod.candidate.renew()
    pod.now += 0.1
    with pytest.raises(DeposedError):
        pod.fence.check()
    api.refuse.clear()
    with pytest.raises(DeposedError):
        await pod.candidate.renew()
    assert LEADS_SECONDS < LASTS_SECONDS


async def test_an_answer_that_comes_too_late_gives_no_right_to_write() -> None:
    """Others may have taken the Lease for run out before it was written."""
    pod = Pod(Api(), ALL)
    request = pod.api.request

    async def slow(*arguments: object, **more: object) -> object:
        pod.now += LEADS_SECONDS
        return await request(*arguments, **more)  # type: ignore[arg-type]

    pod.api.request = slow  # type: ignore[method-assign,assignment]
    with pytest.raises(DeposedError, match="too late"):
        await pod.stand()
    assert not pod.leads


async def test_a_lease_that_was_edited_is_renewed_and_one_that_was_deleted_is_lost() -> None:
    """While it was gone, another release may have found nobody."""
    api = Api()
    pod = Pod(api, ALL)
    assert await pod.stand() is None
    path = f"{LEASES}/{ALL.lease}"
    lease = api.objects[path]
    api.put(LEASES, {**lease, "metadata": {**lease["metadata"], "resourceVersion": "edited"}})
    await pod.candidate.renew()
    del api.objects[path]
    with pytest.raises(DeposedError):
        await pod.candidate.renew()


async def test_a_leader_whose_lease_another_has_ends_its_process(running: list[asyncio.Task[None]]) -> None:
    api = Api()
    pod = Pod(api, ALL)
    running.append(asyncio.create_task(pod.leadership.run()))
    assert await pod.leadership.won.wait()
    lease = api.objects[f"{LEASES}/{ALL.lease}"]
    api.put(LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "all-2"}} | {"metadata": {"name": ALL.lease}})
    await asyncio.wait_for(pod.ended.wait(), 60)
    assert not pod.leads


async def test_a_leader_whose_lease_runs_out_ends_its_process_though_its_loop_hangs() -> None:
    pod = Pod(Api(), ALL)
    ended = threading.Event()
    hanging = Leadership(pod.candidate, pod.metrics, ended.set)
    leading = asyncio.create_task(hanging.run())
    assert await hanging.won.wait()
    pod.now += LEADS_SECONDS
    assert ended.wait(60)
    leading.cancel()


async def test_an_api_server_that_does_not_answer_is_waited_for(running: list[asyncio.Task[None]]) -> None:
    api = Api()
    api.refuse["GET", "leases"] = ApiError(403, "Forbidden", "not yet")
    pod = Pod(api, TEAM_A)
    running.append(asyncio.create_task(pod.leadership.run()))
    await said(pod.metrics)
    assert "403 Forbidden: not yet" in pod.metrics.waits_for
    api.refuse.clear()
    assert await asyncio.wait_for(pod.leadership.won.wait(), 60)


async def test_whoever_does_not_lead_writes_nothing() -> None:
    class Client:
        asked: list[str] = []  # noqa: RUF012

        async def param_serialize(self, method: str, *_: object, **__: object) -> tuple[str]:
            return (method,)

        async def call_api(self, method: str, **_: object) -> None:
            self.asked.append(method)
            raise TimeoutError

    client, fence = Client(), Fence()
    kube = Kube(client, may_write=fence.check)  # type: ignore[arg-type]
    body = {"metadata": {"name": "j"}, "status": {}}
    writes: tuple[Callable[[], Awaitable[Any]], ...] = (
        lambda: kube.create(JOBS, "ns", body),
        lambda: kube.replace(JOBS, "ns", body),
        lambda: kube.apply_status(JOBS, "ns", body),
        lambda: kube.merge(JOBS, "ns", "j", {}),
        lambda: kube.delete(JOBS, "ns", "j"),
    )
    for write in writes:
        with pytest.raises(DeposedError):
            await write()
    with pytest.raises(TimeoutError):
        await kube.get(JOBS, "ns", "j")
    assert client.asked == ["GET"]
    fence.open(fence._clock() + 60)
    for write in writes:
        with pytest.raises(TimeoutError):
            await write()
    assert client.asked == ["GET", "POST", "PUT", "PATCH", "PATCH", "DELETE"]
