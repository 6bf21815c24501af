"""Measures the operator while many benchmarks of 20 namespaces wait for nodes that one benchmark holds.

Half of them are in the namespace of that benchmark. Then the leader is killed, the namespaces take turns, and at the
end all benchmarks are deleted.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, Final

from benchmarks.scale.audit import counted
from benchmarks.scale.connection import all_of
from benchmarks.scale.fixtures import FILE_TRANSFERS, peer_records, recorded_statuses, waited_for
from benchmarks.scale.kubelet import Seen
from benchmarks.scale.nodes import CLASS_LABEL
from benchmarks.scale.rows import COMPUTING, Row, against
from benchmarks.scale.site import NAMESPACE, Site
from tests.e2e.benchmarks import file_transfer
from tests.operator.recorded import Object
from tierbench.controller.context import FINALIZER
from tierbench.kube.leader_election import LEASE_SECONDS
from tierbench.kube.meta import name_of

QUEUED: Final = 1000
OTHERS: Final = tuple(f"{NAMESPACE}-{number:02d}" for number in range(1, 20))
"""The other namespaces."""
SECONDS: Final = 120
QUIET_PACE: Final = 10.0
BUSY_PACE: Final = 0.05
TRIALS: Final = 30
CASES: Final = 30
WRITES_PER_CASE: Final = 5
"""The number of statuses that are written from the last trial of a case to the next client.

The status of the record changes with that trial, and at the end of the case, as does that of the result. The status of
the benchmark changes with the next case, whose result gets its first status.
"""
_SPEC: Final[dict[str, Any]] = {
    "servers": {"nodeClassNames": ["server"]},
    "warmupTrials": 0,
    "repetitions": TRIALS,
}
_HOLDER: Final = "holder"
_QUEUED: Final = "queued-"
_WATCHES_SECONDS: Final = 10
_SETTLE_SECONDS: Final = 30
_GONE_SECONDS: Final = 300
_IN_FLIGHT_SECONDS: Final = 0.5


async def measure(site: Site) -> AsyncIterator[Row]:
    """Measures while trials arrive slowly, while cases end quickly, and while all benchmarks are deleted."""
    await site.create_namespaces(*OTHERS)
    async with site.nodes({"server": 1, "user": 1}):
        process = await site.restart()
        site.kubelet.pace = QUIET_PACE
        await _create_first(site)
        await asyncio.sleep(_SETTLE_SECONDS)
        alone, _ = await _load(site)
        await _fill(site)
        await waited_for(lambda: _queued(site), "all are queued", 300)
        await asyncio.sleep(_SETTLE_SECONDS)
        share, requests = await _load(site)
        yield Row(f"{QUEUED} benchmarks queued: requests", "1/s", requests, 1)
        yield against(alone, f"{QUEUED} benchmarks queued: CPU", "% of a core", share, COMPUTING)
        yield Row(f"{QUEUED} benchmarks queued: memory", "MiB", process.peak_mebibytes)
        bare = await _bare_gaps(site)
        site.kubelet.pace = BUSY_PACE
        async for row in _gaps(site, bare):
            yield row
        async for row in _takeover(site):
            yield row
        async for row in _turns(site):
            yield row
        benchmarks = [one async for one in site.kube.each(FILE_TRANSFERS)]
        seconds = await _delete(site)
        yield against(await _bare_delete(site, benchmarks), f"delete {QUEUED} benchmarks", "s", seconds, COMPUTING)


async def _create_first(site: Site) -> None:
    sizes = [f"{number}Mi" for number in range(1, CASES + 1)]
    await site.kube.create(FILE_TRANSFERS, NAMESPACE, file_transfer(_HOLDER, fileSizes=sizes, **_SPEC))
    await waited_for(lambda: _measures(site), "the first measures", 120)


async def _fill(site: Site) -> None:
    """Creates the queued benchmarks: half of them in the namespace of the first one, and half in the others."""
    half = QUEUED // 2
    namespaces = [NAMESPACE] * half + [OTHERS[number % len(OTHERS)] for number in range(half)]
    bodies = [file_transfer(f"{_QUEUED}{number % half:04d}", **_SPEC) for number in range(2 * half)]
    await all_of(
        site.kube.create(FILE_TRANSFERS, namespace, body) for namespace, body in zip(namespaces, bodies, strict=True)
    )


async def _measures(site: Site) -> bool:
    return site.kubelet.following > 0


async def _queued(site: Site) -> bool:
    return await site.metric("tierbench_queue_length") == QUEUED


async def _load(site: Site) -> tuple[float, float]:
    """Returns the operator's CPU in percent of a core, and its requests per second, while a trial ends every 10 s."""
    process = await site.process()
    site.audit.new_requests()
    used, began = process.cpu_seconds, time.monotonic()
    await asyncio.sleep(SECONDS)
    used, seconds = process.cpu_seconds - used, time.monotonic() - began
    found = counted(site.audit.new_requests())
    print(f"queue: {dict(found.most_common())}", flush=True)
    return 100 * used / seconds, found.total() / seconds


async def _bare_gaps(site: Site) -> list[float]:
    """Returns the seconds from the end of each pod of a Job to the pod of the next Job."""
    container = {"name": "none", "image": "none.invalid/none"}
    spec = {"restartPolicy": "Never", "nodeSelector": {CLASS_LABEL: "user"}, "containers": [container]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {}, "spec": {"template": {"spec": spec}}}
    statuses = await peer_records(site, WRITES_PER_CASE, recorded_statuses(TRIALS))
    bodies = statuses[3][-WRITES_PER_CASE:]
    _, gaps = await site.peer("handing_over", job=job, statuses=(*statuses[:3], bodies), number=CASES // 2)
    return list(gaps)


async def _gaps(site: Site, bare: list[float]) -> AsyncIterator[Row]:
    """Yields the seconds from the end of a client to the pod of the next one."""
    seen = site.kubelet.seen

    async def enough() -> bool:
        return len(_between(seen)) >= CASES // 2

    await waited_for(enough, f"{CASES // 2} cases have ended", 180)
    gaps = _between(seen)
    name = f"case end to next client pod, {QUEUED} queued"
    yield against(median(bare), f"{name}: median", "s", median(gaps), COMPUTING)
    yield against(max(bare), f"{name}: most", "s", max(gaps), None)


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
    # No standby may lead before the Lease has expired.
    yield against(LEASE_SECONDS, f"leader killed, {QUEUED} queued: standby leads", "s", time.monotonic() - killed)
    await waited_for(continues, "the standby measures", 120)
    starts = (at for at in site.kubelet.seen.appeared.values() if at > killed + _IN_FLIGHT_SECONDS)
    yield Row(f"leader killed, {QUEUED} queued: next client pod", "s", min(starts) - killed)
    await site.scale(1)


async def _ready(site: Site, count: int) -> bool:
    pods = await asyncio.to_thread(site.release.kubectl.list, "pods", f"app.kubernetes.io/instance={site.release.name}")
    conditions = (item for pod in pods for item in pod["status"].get("conditions", ()))
    return len([item for item in conditions if item["type"] == "Ready" and item["status"] == "True"]) == count


async def _turns(site: Site) -> AsyncIterator[Row]:
    """Measures the next runs of all namespaces after the first benchmark has ended."""
    seen = site.kubelet.seen

    def runs() -> list[tuple[float, str]]:
        """Returns when each run of a queued benchmark began, and in which namespace."""
        first = dict[tuple[str, str], float]()
        for (namespace, name, _), at in seen.appeared.items():
            first[namespace, name] = min(at, first.get((namespace, name), at))
        return sorted((at, namespace) for (namespace, name), at in first.items() if name.startswith(_QUEUED))

    async def enough() -> bool:
        return len(runs()) > len(OTHERS)

    await waited_for(enough, "each namespace has had its turn", 600)
    number = 1 + len(OTHERS)
    before = {namespace for _, namespace in runs()[:number]}
    times = [at for at, _ in runs()]
    name = f"{number} namespaces queueing"
    yield Row(f"{name}: namespaces left out by the first {number} runs", "", number - len(before), 0)
    yield Row(f"{name}: a run of {TRIALS} trials, to the next: median", "s", median(b - a for a, b in pairwise(times)))


async def _bare_delete(site: Site, benchmarks: Sequence[Object]) -> float | None:
    """Deletes the same objects while a peer only removes their finalizers."""
    await site.stop()
    await all_of(_restore(site, one) for one in benchmarks)
    collections = [(FILE_TRANSFERS.api, FILE_TRANSFERS.plural, None, "")]
    peer = asyncio.create_task(site.peer("finalizing", collections=collections, number=len(benchmarks)))
    await asyncio.sleep(_WATCHES_SECONDS)
    seconds = await _delete(site)
    await peer
    return seconds


async def _restore(site: Site, benchmark: Object) -> None:
    """Creates a deleted benchmark again, with its status and the finalizer."""
    namespace, name = name_of(benchmark)
    head = {"apiVersion": benchmark["apiVersion"], "kind": benchmark["kind"]}
    body = {**head, "metadata": {"name": name, "finalizers": [FINALIZER]}, "spec": benchmark["spec"]}
    await site.kube.create(FILE_TRANSFERS, namespace, body)
    place = {"name": name, "namespace": namespace}
    await site.operator.apply_status(
        FILE_TRANSFERS, namespace, {**head, "metadata": place, "status": benchmark["status"]}
    )


async def _delete(site: Site) -> float | None:
    async def gone() -> bool:
        found = await site.kube.request("GET", FILE_TRANSFERS.path(None), query={"limit": "1"})
        return not found["items"]

    names = [name_of(one) async for one in site.kube.each(FILE_TRANSFERS)]
    began = time.monotonic()
    await all_of(site.kube.delete(FILE_TRANSFERS, *name) for name in names)
    try:
        await waited_for(gone, "all are gone", _GONE_SECONDS)
    except TimeoutError:
        return None
    return time.monotonic() - began
