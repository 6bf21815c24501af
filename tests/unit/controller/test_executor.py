"""A Lease keeps the time at which its holder acquired it."""

from datetime import datetime, timedelta

from tests.unit.controller.api import Api
from tierbench.controller.context import ObjectCaches
from tierbench.controller.executor import acquire_leases, release_leases
from tierbench.domain.views import LeaseView, lease_view
from tierbench.kube.resources import LEASES

HOUR = timedelta(hours=1)


def lease(api: Api) -> LeaseView:
    return lease_view(api.objects[f"{LEASES.path('leases')}/c1"])


async def held(api: Api, holder: str, until: datetime) -> datetime:
    await acquire_leases(api, ObjectCaches(), "leases", holder, ["c1"], until)
    return lease(api).acquired


async def test_a_lease_says_since_when_it_is_held() -> None:
    api = Api()
    first = await held(api, "one", api.now() + HOUR)
    api.ahead = HOUR / 2
    assert await held(api, "one", api.now() + HOUR) == first
    assert lease(api).expires > first + HOUR
    api.ahead = 3 * HOUR
    assert await held(api, "one", api.now() + HOUR) == first, "nobody else had it in between"
    api.ahead = 5 * HOUR
    assert await held(api, "other", api.now() + HOUR) > first + 4 * HOUR
    await release_leases(api, ObjectCaches(), "leases", "other", ["c1"])
    assert await held(api, "one", api.now() + HOUR) > first + 4 * HOUR
