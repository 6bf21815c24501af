"""Events that are posted are recorded in the background, in their order, whatever happens to one of them."""

import asyncio
from typing import Any

from tests.unit.apiserver.client import InProcessKube
from tests.unit.apiserver.server import ApiServer
from tierbench.kube.client import ApiError
from tierbench.kube.events import EventRecorder

MORE_THAN_WAIT = 250
REFERENCE = {"kind": "FileTransferBenchmark", "name": "files", "namespace": "default", "uid": "u"}


class SlowKube(InProcessKube):
    """Creates an object when it may, and refuses the one that the test names."""

    def __init__(self, api: ApiServer) -> None:
        super().__init__(api)
        self.may_create = asyncio.Event()
        self.refused = ""

    async def create(self, kind: Any, namespace: str | None, body: Any, *, dry_run: bool = False) -> Any:
        await self.may_create.wait()
        if body["message"] == self.refused:
            raise ApiError(500, "InternalError", "etcd is away")
        return await super().create(kind, namespace, body, dry_run=dry_run)


async def test_a_posted_event_waits_for_no_request_and_outlives_a_failed_one() -> None:
    api = ApiServer()
    kube = SlowKube(api)
    recorder = EventRecorder(kube, REFERENCE, "tierbench", "tierbench.io/operator")
    kube.refused = "second"
    for message in ("first", "second", "third"):
        await recorder.post("Measured", message)
    assert api.events == []
    kube.may_create.set()
    await recorder.flush()
    assert api.events == [("Measured", "first"), ("Measured", "third")]
    await recorder.post("Measured", "fourth")
    await recorder.flush()
    assert api.events[-1] == ("Measured", "fourth")


async def test_many_events_wait_and_none_is_dropped() -> None:
    api = ApiServer()
    kube = SlowKube(api)
    recorder = EventRecorder(kube, REFERENCE, "tierbench", "tierbench.io/operator")
    posted = 0

    async def post() -> None:
        nonlocal posted
        for number in range(MORE_THAN_WAIT):
            await recorder.post("Measured", str(number))
            posted += 1

    async with asyncio.TaskGroup() as group:
        group.create_task(post())
        for _ in range(2 * MORE_THAN_WAIT):
            await asyncio.sleep(0)
        assert 0 < posted < MORE_THAN_WAIT
        kube.may_create.set()
    await recorder.flush()
    assert [request.body["message"] for request in api.writes if request.body] == list(map(str, range(MORE_THAN_WAIT)))
