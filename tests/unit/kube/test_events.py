"""Posted events are recorded in the background and in order, even if one of them fails."""

import asyncio
from typing import Any

from tests.unit.apiserver.client import InProcessKube
from tests.unit.apiserver.server import ApiServer
from tierbench.kube.client import ApiError
from tierbench.kube.events import EventRecorder

OVER_CAPACITY = 250
REFERENCE = {"kind": "FileTransferBenchmark", "name": "files", "namespace": "default", "uid": "u"}


class SlowKube(InProcessKube):
    """Creates objects when the test allows it, and rejects the one that the test names."""

    def __init__(self, api: ApiServer) -> None:
        super().__init__(api)
        self.may_create = asyncio.Event()
        self.rejected = ""

    async def create(self, kind: Any, namespace: str | None, body: Any, *, dry_run: bool = False) -> Any:
        await self.may_create.wait()
        if body["message"] == self.rejected:
            raise ApiError(500, "InternalError", "etcd is away")
        return await super().create(kind, namespace, body, dry_run=dry_run)


async def test_post_waits_for_no_request_and_a_failed_event_does_not_stop_later_ones() -> None:
    api = ApiServer()
    kube = SlowKube(api)
    recorder = EventRecorder(kube, REFERENCE, "tierbench", "tierbench.io/operator")
    kube.rejected = "second"
    for message in ("first", "second", "third"):
        await recorder.post("Measured", message)
    assert api.events == []
    kube.may_create.set()
    await recorder.flush()
    assert api.events == [("Measured", "first"), ("Measured", "third")]
    await recorder.post("Measured", "fourth")
    await recorder.flush()
    assert api.events[-1] == ("Measured", "fourth")


async def test_full_queue_delays_events_and_drops_none() -> None:
    api = ApiServer()
    kube = SlowKube(api)
    recorder = EventRecorder(kube, REFERENCE, "tierbench", "tierbench.io/operator")
    posted = 0

    async def post() -> None:
        nonlocal posted
        for number in range(OVER_CAPACITY):
            await recorder.post("Measured", str(number))
            posted += 1

    async with asyncio.TaskGroup() as group:
        group.create_task(post())
        for _ in range(2 * OVER_CAPACITY):
            await asyncio.sleep(0)
        assert 0 < posted < OVER_CAPACITY
        kube.may_create.set()
    await recorder.flush()
    assert [request.body["message"] for request in api.writes if request.body] == list(map(str, range(OVER_CAPACITY)))
