"""Many benchmarks of 20 namespaces wait for the nodes of one that measures, half of them of its own namespace.

Then the leader is killed, the namespaces take turns, and at last all are deleted.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from itertools import pairwise
from statistics import median
from typing import Any, Final

from benchmarks.scale.audit import counted
from benchmarks.scale.connection import all_of
from benchmarks.scale.fixtures import FILE_TRANSFERS, waited_for
from benchmarks.scale.kubelet import Seen
from benchmarks.scale.rows import Row
from benchmarks.scale.site import NAMESPACE, Site
from tests.e2e.benchmarks import file_transfer

QUEUED: Final = 1000
OTHERS: Final = tuple(f"{NAMESPACE}-{number:02d}" for number in range(1, 20))
"""The other namespaces."""
SECONDS: Final = 60
QUIET_PACE: Final = 10.0
BUSY_PACE: Final = 0.05
TRIALS: Final = 20
CASES: Final = 30
_HOLDER: Final = "holder"
_SETTLE_SECONDS: Final = 30
_GONE_SECONDS: Final = 300
_IN_FLIGHT_SECONDS: Final = 0.5


async def measure(site: Site) -> AsyncIterator[Row]:
    """Measures while trials arrive slowly, while cases end quickly, and while all benchmarks are deleted."""
    async with site.nodes({"server": 1, "user": 1}), site.namespace(*OTHERS):
        process = await site.restart()
        site.kubelet.pace = QUIET_PACE
        await _create(site)
        await waited_for(lambda: _queued(site), "all are queued", 300)
        await asyncio.sleep(_SETTLE_SECONDS)
        async for row in _quiet(site):
            yield row
        yield Row(f"{QUEUED} benchmarks queued: memory", "MiB", process.peak_mebibytes)
        site.kubelet.pace = BUSY_PACE
        async for row in _gaps(site):
            yield row
        async for row in _takeover(site):
            yield row
        async for row in _turns(site):
            yield row
        yield await _delete(site)


async def _create(site: Site) -> None:
    sizes = [f"{number}Mi" for number in range(1, CASES + 1)]
    rest: dict[str, Any] = {"servers": {"nodeClassNames": ["server"]}, "warmupTrials": 0, "repetitions": TRIALS}
    holder = file_transfer(_HOLDER, fileSizes=sizes, **rest)
    await site.kube.create(FILE_TRANSFERS, NAMESPACE, holder)
    await waited_for(lambda: _measures(site), "the first measures", 120)
    half = QUEUED // 2
    await _fill(site, [NAMESPACE] * half, rest)
    await _fill(site, [OTHERS[number % len(OTHERS)] for number in range(half)], rest)


async def _fill(site: Site, namespaces: list[str], spec: dict[str, Any]) -> None:
    """Creates a benchmark in each of the namespaces, which may be equal."""
    await all_of(
        site.kube.create(FILE_TRANSFERS, namespace, file_transfer(f"queued-{number:04d}", **spec))
        for number, namespace in enumerate(namespaces)
    )


async def _measures(site: Site) -> bool:
    return site.kubelet.following > 0


async def _queued(site: Site) -> bool:
    return await site.metric("tierbench_queue_length") == QUEUED


async def _quiet(site: Site) -> AsyncIterator[Row]:
    """A trial of the one that measures ends every ten seconds."""
    process = await site.process()
    site.audit.new_requests()
    used, began = process.cpu_seconds, time.monotonic()
    await asyncio.sleep(SECONDS)
    used, seconds = process.cpu_seconds - used, time.monotonic() - began
    found = counted(site.audit.new_requests())
    print(f"queue: {dict(found.most_common())}", flush=True)
    yield Row(f"{QUEUED} benchmarks queued: requests", "1/s", found.total() / seconds, 1)
    yield Row(f"{QUEUED} benchmarks queued: CPU", "% of a core", 100 * used / seconds, 2)


async def _gaps(site: Site) -> AsyncIterator[Row]:
    """Yields the seconds from the end of a client to the pod of the next one."""
    seen = site.kubelet.seen

    async def enough() -> bool:
        return len(_between(seen)) >= CASES // 2

    await waited_for(enough, f"{CASES // 2} cases have ended", 180)
    gaps = _between(seen)
    name = f"case end to next client pod, {QUEUED} queued"
    yield Row(f"{name}: median", "s", median(gaps), 0.5)
    yield Row(f"{name}: most", "s", max(gaps))


def _between(seen: Seen) -> list[float]:
    """Returns the seconds between cases in the order of their measurement, without the first one."""
    mine = {case: at for (_, name, case), at in seen.ended.items() if name == _HOLDER}
    starts = sorted(at for (_, name, _), at in seen.appeared.items() if name == _HOLDER)
    following = ((end, next((at for at in starts if at > end), None)) for end in sorted(mine.values())[1:])
    return [at - end for end, at in following if at is not None]


async def _takeover(site: Site) -> AsyncIterator[Row]:
    """Yields the seconds from the death of the leader until the standby leads, and until it creates a pod."""
    await site.scale(2)
    await waited_for(lambda: _ready(site, 2), "the standby is ready", 120)
    before = site.release.leader
    await asyncio.to_thread(site.release.kill, site.cluster, before)
    killed = time.monotonic()

    async def leads() -> bool:
        return await asyncio.to_thread(lambda: site.release.leader) not in {"", before}

    async def continues() -> bool:
        return any(at > killed + _IN_FLIGHT_SECONDS for at in site.kubelet.seen.appeared.values())

    await waited_for(leads, "the standby leads", 120)
    yield Row(f"leader killed, {QUEUED} queued: standby leads", "s", time.monotonic() - killed, 15)
    await waited_for(continues, "the standby measures", 120)
    starts = (at for at in site.kubelet.seen.appeared.values() if at > killed + _IN_FLIGHT_SECONDS)
    yield Row(f"leader killed, {QUEUED} queued: next client pod", "s", min(starts) - killed)
    await site.scale(1)


async def _ready(site: Site, count: int) -> bool:
    pods = await asyncio.to_thread(site.release.kubectl.list, "pods", f"app.kubernetes.io/instance={site.release.name}")
    conditions = (item for pod in pods for item in pod["status"].get("conditions", ()))
    return len([item for item in conditions if item["type"] == "Ready" and item["status"] == "True"]) == count


async def _turns(site: Site) -> AsyncIterator[Row]:
    """The next runs of all namespaces, once the benchmark that measured first has ended."""
    seen = site.kubelet.seen

    def runs() -> list[tuple[float, str]]:
        """Returns when each run of a queued benchmark began, and in which namespace."""
        first = dict[tuple[str, str], float]()
        for (namespace, name, _), at in seen.appeared.items():
            first[namespace, name] = min(at, first.get((namespace, name), at))
        return sorted((at, namespace) for (namespace, name), at in first.items() if name != _HOLDER)

    async def enough() -> bool:
        return len(runs()) > len(OTHERS)

    await waited_for(enough, "each namespace has had its turn", 600)
    before = Counter(namespace for _, namespace in runs()[: len(OTHERS)])
    times = [at for at, _ in runs()]
    name = f"{1 + len(OTHERS)} namespaces queueing"
    yield Row(f"{name}: namespaces left out by the first {len(OTHERS)} runs", "", len(set(OTHERS) - set(before)), 0)
    yield Row(f"{name}: a run of {TRIALS} trials, to the next: median", "s", median(b - a for a, b in pairwise(times)))


async def _delete(site: Site) -> Row:
    """Waits for the deletions itself, because kubectl looks at one object after the other."""

    async def gone() -> bool:
        found = await site.kube.request("GET", FILE_TRANSFERS.path(None), query={"limit": "1"})
        return not found["items"]

    began = time.monotonic()
    every = ("--all", "--all-namespaces", "--wait=false")
    await asyncio.to_thread(site.kubectl, "delete", "filetransferbenchmarks", *every, timeout=300)
    try:
        await waited_for(gone, "all are gone", _GONE_SECONDS)
        seconds: float | None = time.monotonic() - began
    except TimeoutError:
        seconds = None
    return Row(f"delete {QUEUED} benchmarks", "s", seconds, 60)
