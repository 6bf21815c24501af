"""Measures many benchmarks at once, each on nodes of its own, with the logs of all clients followed."""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from statistics import median
from typing import Any, Final

from benchmarks.scale.connection import all_of
from benchmarks.scale.fixtures import BROKERS, waited_for
from benchmarks.scale.rows import Row
from benchmarks.scale.site import NAMESPACE, Site
from tests.e2e.benchmarks import broker
from tests.e2e.kubectl import KubectlError
from tierbench.api.record import RECORDS
from tierbench.kube.informer import WatchEvent, list_and_watch

BENCHMARKS: Final = 60
PODS: Final = 5
PACE: Final = 5.0
SECONDS: Final = 90
LATE_SECONDS: Final = 5.0
_FOLLOWED_SECONDS: Final = 180
_REPETITIONS: Final = 30

Trial = tuple[str, str, int, int]
"""Namespace, benchmark, case and number."""


async def measure(site: Site) -> AsyncIterator[Row]:
    """A stall is a trial that was taken in late, or never, or a loop that the operator's own health check misses."""
    numbers = range(BENCHMARKS)
    classes = {f"{role}-{number:02d}": 1 for role in ("server", "user") for number in numbers}
    async with site.nodes(classes), site.namespace():
        process = await site.restart()
        site.kubelet.pace = PACE
        site.kubelet.go.clear()
        await all_of(site.kube.create(BROKERS, NAMESPACE, _benchmark(number)) for number in numbers)
        what = f"{BENCHMARKS} running benchmarks, {BENCHMARKS * PODS} client pods"
        yield Row(f"{what}: stalls", "stalls", await _stalls(site), 0)
        yield Row(f"{what}: memory", "MiB", process.peak_mebibytes, 250)
        await asyncio.to_thread(site.kubectl, "delete", "brokerbenchmarks", "--all", timeout=300)


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


async def _stalls(site: Site) -> int:
    """Counts stalls. Trials begin when all clients should be followed."""
    taken: dict[Trial, float] = {}
    watching = asyncio.create_task(_watch(site, taken))

    async def followed() -> bool:
        return site.kubelet.following == BENCHMARKS * PODS

    try:
        seconds = await waited_for(followed, "all clients are followed", _FOLLOWED_SECONDS)
        print(f"running: all clients are followed after {seconds:.0f} s", flush=True)
    except TimeoutError:
        print(f"running: no more than {site.kubelet.following} clients are followed", flush=True)
    site.kubelet.go.set()
    began = time.monotonic()
    await asyncio.sleep(SECONDS)
    until = time.monotonic()
    await asyncio.sleep(2 * LATE_SECONDS)
    watching.cancel()
    printed = {trial: at for trial, at in site.kubelet.seen.printed.items() if began <= at <= until}
    delays = [taken.get(trial, math.inf) - at for trial, at in printed.items()]
    late = sum(delay > LATE_SECONDS for delay in delays)
    stuck = await asyncio.to_thread(_stuck, site)
    spread = f"median {median(delays):.2f} s, most {max(delays):.2f} s"
    print(f"running: {len(delays)} trials, {late} late, {spread} {stuck}", flush=True)
    return late + bool(stuck)


def _stuck(site: Site) -> str:
    """Returns failures of the operator's health check, or that it restarted."""
    namespace, pod = site.release.kubectl.namespace, site.release.pod
    try:
        site.release.kubectl("get", "--raw", f"/api/v1/namespaces/{namespace}/pods/{pod}:8080/proxy/healthz")
    except KubectlError as error:
        return str(error)
    restarts = site.restarts()
    return f"{restarts} restarts" if restarts else ""


async def _watch(site: Site, taken: dict[Trial, float]) -> None:
    """Notes when each trial was first seen in a record."""
    async for event in list_and_watch(site.kube, RECORDS, NAMESPACE, {}):
        if isinstance(event, WatchEvent):
            spec, status = event.item["spec"], event.item.get("status", {})
            for trial in status.get("trials", ()):
                taken.setdefault((NAMESPACE, spec["benchmark"]["name"], spec["case"], trial["trial"]), time.monotonic())
