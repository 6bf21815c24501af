"""Two operators, of two releases, that would run the same benchmarks."""

import asyncio
import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.controller.api import Api
from tests.unit.controller.test_controller import ENVIRONMENT
from tierbench.controller import alone
from tierbench.controller.alone import NotAloneError, leave, stay_alone, wait_until_alone
from tierbench.controller.context import Context
from tierbench.controller.settings import Settings
from tierbench.kube.claims import LASTS_SECONDS, Claim, make_good
from tierbench.kube.client import ApiError

LEASES = "/apis/coordination.k8s.io/v1/namespaces/leases/leases"
ALL, TEAM_A, TEAM_B = (
    Claim("bench/all", ()),
    Claim("a/tierbench", ("team-a", "shop")),
    Claim("b/tierbench", ("team-b",)),
)


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "_RENEW_SECONDS", 0.01)
    monkeypatch.setattr(alone, "_AGAIN_SECONDS", (0.01, 0.02))


def context(api: Api, claim: Claim) -> Context:
    settings = replace(Settings.from_environment(ENVIRONMENT), release=claim.release, watch_namespaces=claim.namespaces)
    return Context(api, replace(settings, pod=claim.pod))


async def works(api: Api, claim: Claim) -> None:
    assert await make_good(api, "leases", claim) is None


async def said(waiting: Context) -> None:
    while not waiting.metrics.waits_for:  # noqa: ASYNC110 (it rings no bell)
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("first", "second"), [(ALL, TEAM_A), (TEAM_A, ALL), (TEAM_A, replace(TEAM_B, namespaces=("team-b", "shop")))]
)
async def test_the_second_waits_until_the_first_has_left(first: Claim, second: Claim) -> None:
    api = Api()
    await works(api, first)
    waiting = context(api, second)
    begun = asyncio.create_task(wait_until_alone(waiting, asyncio.Event()))
    await said(waiting)
    assert f"release {first}" in waiting.metrics.waits_for
    assert f"{LEASES}/{second.lease}" not in api.objects
    assert not begun.done()
    await leave(context(api, first))
    await asyncio.wait_for(begun, 5)
    assert waiting.metrics.waits_for == ""


async def test_a_pod_that_ends_late_leaves_the_claim_of_its_releases_next_one() -> None:
    """As after `helm uninstall` and `helm install`: without its claim another release would have come in between."""
    api = Api()
    await works(api, replace(ALL, pod="old"))
    await works(api, replace(ALL, pod="new"))
    await leave(context(api, replace(ALL, pod="old")))
    assert await make_good(api, "leases", TEAM_A) == ALL


async def test_releases_with_namespaces_of_their_own_do_not_meet() -> None:
    api = Api()
    await works(api, TEAM_A)
    await works(api, TEAM_B)
    await works(api, TEAM_A)


async def test_what_an_operator_left_that_was_killed_runs_out() -> None:
    api = Api()
    await works(api, TEAM_A)
    assert await make_good(api, "leases", ALL) == TEAM_A
    api.ahead += timedelta(seconds=LASTS_SECONDS)
    await works(api, ALL)


async def test_an_operator_that_was_killed_goes_on_at_once_though_another_waits() -> None:
    api = Api()
    await works(api, TEAM_A)
    announced = Api()
    await works(announced, ALL)
    lease = announced.objects[f"{LEASES}/{ALL.lease}"]
    api.put(LEASES, {**lease, "spec": {**lease["spec"], "acquireTime": None}})
    await works(api, TEAM_A)


async def test_a_release_that_takes_more_namespaces_asks_anew() -> None:
    api = Api()
    await works(api, TEAM_A)
    await works(api, TEAM_B)
    assert await make_good(api, "leases", replace(TEAM_A, namespaces=("team-a", "team-b"))) == TEAM_B


async def test_of_two_that_begin_at_once_never_both_go_on() -> None:
    """Each step of one may fall between any two of the other."""

    class Hesitant(Api):
        async def request(self, *args: Any, **more: Any) -> dict[str, Any]:
            for _ in range(random.randrange(4)):
                await asyncio.sleep(0)
            return await super().request(*args, **more)

    api = Hesitant()
    for seed in range(200):
        random.seed(seed)
        api.objects.clear()
        found = await asyncio.gather(make_good(api, "leases", ALL), make_good(api, "leases", TEAM_A))
        assert found.count(None) <= 1


async def test_an_operator_whose_claim_was_lost_ends() -> None:
    api = Api()
    await works(api, TEAM_A)
    api.ahead += timedelta(seconds=LASTS_SECONDS)
    await works(api, ALL)
    with pytest.raises(NotAloneError, match="release bench/all, which runs the benchmarks of all namespaces"):
        await asyncio.wait_for(stay_alone(context(api, TEAM_A)), 5)


async def test_an_api_server_that_does_not_answer_is_waited_for() -> None:
    api = Api()
    api.refuse["GET", "leases"] = ApiError(403, "Forbidden", "not yet")
    waiting = context(api, TEAM_A)
    begun = asyncio.create_task(wait_until_alone(waiting, asyncio.Event()))
    await said(waiting)
    assert "403 Forbidden: not yet" in waiting.metrics.waits_for
    api.refuse.clear()
    await asyncio.wait_for(begun, 5)


async def test_an_operator_that_is_told_to_stop_waits_no_longer() -> None:
    api = Api()
    await works(api, ALL)
    stop = asyncio.Event()
    begun = asyncio.create_task(wait_until_alone(context(api, TEAM_A), stop))
    stop.set()
    await asyncio.wait_for(begun, 5)
