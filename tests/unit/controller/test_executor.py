"""A Lease keeps the time at which its holder acquired it, and is renewed by one request."""

from datetime import datetime, timedelta

import pytest

from tests.unit.apiserver.client import InProcessKube
from tests.unit.apiserver.server import ApiServer
from tierbench.controller.context import ObjectCaches
from tierbench.controller.executor import NodeTakenError, acquire_leases, release_leases
from tierbench.domain.views import lease_view
from tierbench.kube.client import NotFoundError
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


async def test_own_lease_is_renewed_without_a_read(monkeypatch: pytest.MonkeyPatch) -> None:
    api, objects = ApiServer(), ObjectCaches()
    kube = InProcessKube(api)
    await acquire_leases(kube, objects, "leases", "one", ["c1"], api.now() + HOUR)
    monkeypatch.setattr(kube, "get", None)
    await acquire_leases(kube, objects, "leases", "one", ["c1"], api.now() + 2 * HOUR)
    assert lease_view(api.objects[LEASES.path("leases", "c1")]).expires > api.now() + HOUR


@pytest.mark.parametrize("new_holder", [None, "other"], ids=["deleted", "another holder"])
async def test_lease_is_not_renewed_after_an_unobserved_loss(new_holder: str | None) -> None:
    api, objects = ApiServer(), ObjectCaches()
    kube = InProcessKube(api)
    await acquire_leases(kube, objects, "leases", "one", ["c1"], api.now() + HOUR)
    await release_leases(kube, ObjectCaches(), "leases", "one", ["c1"])
    if new_holder:
        await acquire_leases(kube, ObjectCaches(), "leases", new_holder, ["c1"], api.now() + HOUR)
    with pytest.raises(NodeTakenError):
        await acquire_leases(kube, objects, "leases", "one", ["c1"], api.now() + 2 * HOUR)
    found = api.objects.get(LEASES.path("leases", "c1"))
    assert (found and lease_view(found).holder) == new_holder


async def test_missing_namespace_of_leases_is_an_error_and_no_conflict() -> None:
    api = ApiServer()
    api.refuse["POST", "leases"] = NotFoundError(404, "NotFound", 'namespaces "leases" not found')
    with pytest.raises(NotFoundError):
        await acquire_leases(InProcessKube(api), ObjectCaches(), "leases", "one", ["c1"], api.now() + HOUR)
