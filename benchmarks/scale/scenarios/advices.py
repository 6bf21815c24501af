"""Many advices of one tenant: another tenant's advice is answered all the same, and the runs continue."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, Final

from benchmarks.scale.connection import all_of
from benchmarks.scale.fixtures import waited_for
from benchmarks.scale.rows import Row
from benchmarks.scale.scenarios.results import write
from benchmarks.scale.site import NAMESPACE, Site
from tierbench.api.model import API_VERSION
from tierbench.api.placement_advice import ADVICES
from tierbench.kube.meta import ResourceType

NUMBER: Final = 1_000
BENCHMARKS: Final = 10
"""Of 100 results each."""
_OTHER: Final = "another"
_NAMESPACES: Final = ResourceType("api/v1", "namespaces")
_SECONDS: Final = 300


async def measure(site: Site) -> AsyncIterator[Row]:
    """The operator answers as many as its limit, and says so to the others."""
    async with site.namespace():
        await site.stop()
        await write(site, BENCHMARKS)
        process = await site.restart()
        process.forget_peak()
        used, began = process.cpu_seconds, time.monotonic()
        await all_of(site.kube.create(ADVICES, NAMESPACE, _advice(f"a{number:04d}")) for number in range(NUMBER))
        await site.kube.create(
            _NAMESPACES, None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _OTHER}}
        )
        try:
            await site.kube.create(ADVICES, _OTHER, _advice("one"))

            async def answered() -> bool:
                return bool((await site.kube.get(ADVICES, _OTHER, "one")).get("status"))

            async def all_answered() -> bool:
                await asyncio.sleep(1)
                return all([one.get("status") async for one in site.kube.each(ADVICES, NAMESPACE)])

            yield Row(f"{NUMBER} advices: another tenant's", "s", await waited_for(answered, "it", _SECONDS), 15)
            yield Row(f"{NUMBER} advices: all", "s", await waited_for(all_answered, "all", _SECONDS), _SECONDS)
        finally:
            await asyncio.to_thread(site.kubectl, "delete", "namespace", _OTHER, "--wait=false")
        share = 100 * (process.cpu_seconds - used) / (time.monotonic() - began)
        yield Row(f"{NUMBER} advices: CPU meanwhile", "% of a core", share)
        yield Row(f"{NUMBER} advices: memory", "MiB", process.peak_mebibytes, 220)


def _advice(name: str) -> dict[str, Any]:
    metadata = {"name": name}
    return {
        "apiVersion": API_VERSION,
        "kind": "PlacementAdvice",
        "metadata": metadata,
        "spec": {"clientClassName": "user"},
    }
