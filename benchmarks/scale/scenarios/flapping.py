"""Measures the operator while some of many nodes come and go, as on a bad network."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

from benchmarks.scale.audit import counted
from benchmarks.scale.nodes import flap, names
from benchmarks.scale.rows import Row
from benchmarks.scale.site import Site

CLASSES: Final = 10
NODES: Final = 100
"""Of each class."""
FLAPPING: Final = 10
"""Of each class, each once in PERIOD seconds."""
PERIOD: Final = 10.0
SECONDS: Final = 60
_SETTLE_SECONDS: Final = 20


async def measure(site: Site) -> AsyncIterator[Row]:
    """Keeps a tenth of all nodes NotReady for five of every ten seconds."""
    classes = {f"class-{number}": NODES for number in range(CLASSES)}
    flapping = [name for one in classes for name in names(one, FLAPPING)]
    async with site.namespace():
        process = await site.restart()
        async with site.nodes(classes):
            task = asyncio.create_task(flap(site.kube, flapping, PERIOD))
            await asyncio.sleep(_SETTLE_SECONDS)
            site.audit.new_requests()
            used, began = process.cpu_seconds, time.monotonic()
            await asyncio.sleep(SECONDS)
            used, seconds = process.cpu_seconds - used, time.monotonic() - began
            print(f"flapping: {dict(counted(site.audit.new_requests()).most_common())}", flush=True)
            task.cancel()
    what = f"{CLASSES * NODES} nodes, {len(flapping)} flapping"
    yield Row(f"{what}: CPU", "% of a core", 100 * used / seconds, 5)
    yield Row(f"{what}: memory", "MiB", process.peak_mebibytes)
