"""Measures the operator while some of many nodes flap, as on a bad network."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

from benchmarks.scale.audit import counted
from benchmarks.scale.fixtures import peer_records, recorded_statuses
from benchmarks.scale.nodes import flap, names
from benchmarks.scale.rows import COMPUTING, Row, against
from benchmarks.scale.site import Site
from tierbench.api.node_class import NODE_CLASSES
from tierbench.kube.meta import NODES

CLASSES: Final = 10
NODES_OF_CLASS: Final = 100
FLAPPING: Final = 10
"""The number of flapping nodes per class. Each flaps once per PERIOD seconds."""
PERIOD: Final = 10.0
SECONDS: Final = 60
_SETTLE_SECONDS: Final = 20
_CLASS_SECONDS: Final = 5
"""The operator writes the status of a class once in this many seconds."""


async def measure(site: Site) -> AsyncIterator[Row]:
    """Makes a tenth of all nodes NotReady for five of every ten seconds. The peer watches at the same time."""
    classes = {f"class-{number}": NODES_OF_CLASS for number in range(CLASSES)}
    flapping = [name for one in classes for name in names(one, FLAPPING)]
    process = await site.restart()
    async with site.nodes(classes):
        task = asyncio.create_task(flap(site.kube, flapping, PERIOD))
        await asyncio.sleep(_SETTLE_SECONDS)
        site.audit.new_requests()
        peer = asyncio.create_task(_peer(site))
        used, began = process.cpu_seconds, time.monotonic()
        await asyncio.sleep(SECONDS)
        used, seconds = process.cpu_seconds - used, time.monotonic() - began
        print(f"flapping: {dict(counted(site.audit.new_requests()).most_common())}", flush=True)
        bare = await peer
        task.cancel()
    what = f"{CLASSES * NODES_OF_CLASS} nodes, {len(flapping)} flapping"
    yield against(100 * bare, f"{what}: CPU", "% of a core", 100 * used / seconds, COMPUTING)
    yield Row(f"{what}: memory", "MiB", process.peak_mebibytes)


async def _peer(site: Site) -> float:
    """Watches nodes and classes, and applies one status per change of a class."""
    collections = [(one.api, one.plural, None, "") for one in (NODES, NODE_CLASSES)]
    statuses, period = await peer_records(site, CLASSES, recorded_statuses(1)), _CLASS_SECONDS / CLASSES
    _, share = await site.peer("watching", collections=collections, statuses=statuses, period=period, seconds=SECONDS)
    return float(share)
