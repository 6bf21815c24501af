"""Measures many benchmarks at once, each on its own nodes. The operator follows the logs of all clients."""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median
from typing import Any, Final

from benchmarks.scale.connection import all_of
from benchmarks.scale.fixtures import BROKERS, PEER, peer_records, waited_for
from benchmarks.scale.rows import COMPUTING, Row, against
from benchmarks.scale.site import NAMESPACE, Site
from tests.e2e.benchmarks import broker
from tests.e2e.kubectl import KubectlError
from tests.operator.recorded import Object
from tierbench.api.record import RECORDS
from tierbench.kube.informer import WatchEvent, list_and_watch

BENCHMARKS: Final = 60
PODS: Final = 5
PACE: Final = 5.0
SECONDS: Final = 60
LATEST: Final = 5.0
"""The limit for the time until a trial is taken in, as a multiple of the peer's median."""
_LAST_SECONDS: Final = 20
_FOLLOWED_SECONDS: Final = 180
_REPETITIONS: Final = 30

Trial = tuple[str, int, int]
"""Benchmark, case and number."""


async def measure(site: Site) -> AsyncIterator[Row]:
    """Measures the time until a record contains a trial. The peer applies the same statuses in the same bursts."""
    numbers = range(BENCHMARKS)
    classes = {f"{role}-{number:02d}": 1 for role in ("server", "user") for number in numbers}
    async with site.nodes(classes):
        process = await site.restart()
        site.kubelet.pace = PACE
        site.kubelet.go.clear()
        await all_of(site.kube.create(BROKERS, NAMESPACE, _benchmark(number)) for number in numbers)
        delays, memory = await _delays(site), process.peak_mebibytes
        stuck = await asyncio.to_thread(_stuck, site)
        first = await anext(site.kube.each(RECORDS, NAMESPACE))
        await asyncio.to_thread(site.kubectl, "delete", "brokerbenchmarks", "--all", timeout=300)
        bare = await _bare_delays(site, first["status"])
        what = f"{BENCHMARKS} running benchmarks, {BENCHMARKS * PODS} client pods"
        yield against(median(bare), f"{what}: a trial is taken in: median", "s", median(delays), COMPUTING)
        yield against(median(bare), f"{what}: the last one", "s", max(delays), LATEST)
        yield Row(f"{what}: overdue tasks and restarts", "", stuck, 0)
        yield Row(f"{what}: memory", "MiB", memory, 250)


def _benchmark(number: int) -> dict[str, Any]:
    return broker(
        f"brokers-{number:02d}",
        servers={"nodeClassNames": [f"server-{number:02d}"]},
        clients={"nodeClassNames": [f"user-{number:02d}"], "pods": PODS},
        pairs=[PODS],
        load={"durationSeconds": 2},
        repetitions=_REPETITIONS,
        warmupTrials=0,
    )


async def _bare_delays(site: Site, status: Object) -> list[float]:
    """Returns the seconds from the time when a status of the peer was due until it was seen."""
    trials = status["trials"][: int(SECONDS / PACE)]
    growing = [{**status, "trials": trials[: index + 1]} for index in range(len(trials))]
    statuses = await peer_records(site, BENCHMARKS, growing)
    async with _watch_trials(site) as taken:
        _, due = await site.peer("pacing", statuses=statuses, at_once=BENCHMARKS, period=PACE)
        await asyncio.sleep(PACE)
    trials = [(f"{PEER}-{index % BENCHMARKS:02d}", 1, 1 + index // BENCHMARKS) for index in range(len(due))]
    return [taken.get(trial, math.inf) - at for trial, at in zip(trials, due, strict=True)]


async def _delays(site: Site) -> list[float]:
    """Returns the seconds from the end of each trial until it is taken in. They begin when all clients are followed."""

    async def followed() -> bool:
        return site.kubelet.following == BENCHMARKS * PODS

    try:
        seconds = await waited_for(followed, "all clients are followed", _FOLLOWED_SECONDS)
        print(f"running: all clients are followed after {seconds:.0f} s", flush=True)
    except TimeoutError:
        print(f"running: no more than {site.kubelet.following} clients are followed", flush=True)
    async with _watch_trials(site) as taken:
        site.kubelet.go.set()
        began = time.monotonic()
        await asyncio.sleep(SECONDS)
        until = time.monotonic()
        await asyncio.sleep(_LAST_SECONDS)
    printed = {trial[1:]: at for trial, at in site.kubelet.seen.printed.items() if began <= at <= until}
    delays = [taken.get(trial, math.inf) - at for trial, at in printed.items()]
    print(f"running: {len(delays)} trials, {delays.count(math.inf)} never taken in", flush=True)
    return delays


def _stuck(site: Site) -> int:
    """Returns how often the operator restarted, plus one if its health check fails."""
    namespace, pod = site.release.kubectl.namespace, site.release.pod
    try:
        site.release.kubectl("get", "--raw", f"/api/v1/namespaces/{namespace}/pods/{pod}:8080/proxy/healthz")
    except KubectlError as error:
        print(f"running: {error}", flush=True)
        return 1 + site.restarts()
    return site.restarts()


@asynccontextmanager
async def _watch_trials(site: Site) -> AsyncIterator[dict[Trial, float]]:
    """Records when each trial was first seen in a record, until the context ends."""
    taken: dict[Trial, float] = {}

    async def watch() -> None:
        async for event in list_and_watch(site.kube, RECORDS, NAMESPACE, {}):
            if isinstance(event, WatchEvent):
                spec, status = event.item["spec"], event.item.get("status", {})
                for trial in status.get("trials", ()):
                    taken.setdefault((spec["benchmark"]["name"], spec["case"], trial["trial"]), time.monotonic())

    async with asyncio.TaskGroup() as group:
        task = group.create_task(watch())
        yield taken
        task.cancel()
