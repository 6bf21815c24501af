"""A Lease keeps the time at which its holder acquired it."""

from datetime import datetime, timedelta

from tests.unit.apiserver.client import InProcessKube
from tests.unit.apiserver.server import ApiServer
from tierbench.controller.context import ObjectCaches
from tierbench.controller.executor import acquire_leases, release_leases
from tierbench.domain.views import lease_view
from tierbench.kube.meta import LEASES

HOUR = timedelta(hours=1)


async def test_lease_keeps_the_time_of_acquisition_until_another_holder_acquires_it() -> None:
    api = ApiServer()
    kube = InProcessKube(api)

    async def acquire(holder: str) -> datetime:
        await acquire_leases(kube, ObjectCaches(), "leases", holder, ["c1"], api.now() + HOUR)
        return lease_view(api.objects[LEASES.path("leases", "c1")]).acquired

    first = await acquire("one")
    api.ahead = HOUR / 2
    assert await acquire("one") == first
    assert lease_view(api.objects[LEASES.path("leases", "c1")]).expires > first + HOUR
    api.ahead = 3 * HOUR
    assert await acquire("one") == first, "the Lease has expired, but no other holder has had it"
    api.ahead = 5 * HOUR
    assert await acquire("other") > first + 4 * HOUR
    await release_leases(kube, ObjectCaches(), "leases", "other", ["c1"])
    assert await acquire("one") > first + 4 * HOUR
