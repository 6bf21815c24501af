"""Writes ended benchmarks as the operator writes them, from recorded runs."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from benchmarks.scale.connection import all_of
from benchmarks.scale.site import NAMESPACE, Site
from tests.operator.recorded import Object, recorded
from tierbench.api.model import API_VERSION
from tierbench.kinds.broker.spec import BrokerBenchmark
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark

FILE_TRANSFERS: Final = FileTransferBenchmark.KIND.resource
BROKERS: Final = BrokerBenchmark.KIND.resource


async def complete(site: Site, names: Sequence[str], cases: int = 1, **spec: Any) -> list[Object]:
    """Creates FileTransferBenchmarks with an ended run. No operator may run meanwhile, because it would run them."""
    template = recorded("files").benchmark
    made: list[Object] = []

    async def make(name: str) -> None:
        head = {"apiVersion": API_VERSION, "kind": template["kind"], "metadata": {"name": name}}
        created = await site.kube.create(FILE_TRANSFERS, NAMESPACE, {**head, "spec": {**template["spec"], **spec}})
        ended = {"ended": cases, "failed": 0, "invalid": 0, "total": cases}
        status = {**template["status"], "cases": ended, "progress": f"{cases}/{cases}"}
        body = {**head, "metadata": {"name": name, "namespace": NAMESPACE}, "status": status}
        await site.operator.apply_status(FILE_TRANSFERS, NAMESPACE, body)
        made.append(created)

    await all_of(make(name) for name in names)
    return made


async def waited_for(condition: Callable[[], Awaitable[bool]], what: str, seconds: float) -> float:
    """Waits for a condition, and returns the seconds. Raises TimeoutError."""
    began = time.monotonic()
    while not await condition():
        if time.monotonic() > began + seconds:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        await asyncio.sleep(0.2)
    return time.monotonic() - began
