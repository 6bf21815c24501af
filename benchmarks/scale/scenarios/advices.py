"""Many advices of one tenant: another tenant's advice is answered all the same, and the runs continue."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from statistics import median
from typing import Any, Final

from benchmarks.scale.connection import all_of
from benchmarks.scale.fixtures import waited_for
from benchmarks.scale.rows import Row, against
from benchmarks.scale.scenarios.results import write
from benchmarks.scale.site import NAMESPACE, Site
from tierbench.api.model import API_VERSION
from tierbench.api.placement_advice import ADVICES

NUMBER: Final = 1_000
BENCHMARKS: Final = 10
"""Of 100 results each."""
_OTHER: Final = "another"
_OTHERS: Final = 5
"""Advices of the other tenant, one after the other."""
_SECONDS: Final = 300
_PAUSE_SECONDS: Final = 0.02
_TURN: Final = 6.0
"""One waits for an answer and the pause after it, which is three times its CPU time, and then for its own."""


async def measure(site: Site) -> AsyncIterator[Row]:
    """The operator answers as many as its limit, and says so to the others."""
    await site.stop()
    await write(site, BENCHMARKS)
    process = await site.restart()
    process.forget_peak()
    alone = await _seconds_to_answer(site, NAMESPACE, "alone")
    used, began = process.cpu_seconds, time.monotonic()
    await all_of(site.kube.create(ADVICES, NAMESPACE, _advice(f"a{number:04d}")) for number in range(NUMBER))
    await site.create_namespaces(_OTHER)
    others = [await _seconds_to_answer(site, _OTHER, f"other{number}") for number in range(_OTHERS)]
    yield against(alone, f"{NUMBER} advices: another tenant's, median", "s", median(others), _TURN)
    with suppress(TimeoutError):
        await waited_for(lambda: _all_answered(site), "all", _SECONDS)
    yield Row(f"{NUMBER} advices: time of all", "s", time.monotonic() - began)
    yield Row(f"{NUMBER} advices: not answered within {_SECONDS} s", "", await _unanswered(site), 0)
    share = 100 * (process.cpu_seconds - used) / (time.monotonic() - began)
    yield Row(f"{NUMBER} advices: CPU meanwhile", "% of a core", share)
    yield Row(f"{NUMBER} advices: memory", "MiB", process.peak_mebibytes, 220)


async def _seconds_to_answer(site: Site, namespace: str, name: str) -> float:
    await site.kube.create(ADVICES, namespace, _advice(name))

    async def answered() -> bool:
        return _has_answer(await site.kube.get(ADVICES, namespace, name))

    return await waited_for(answered, f"advice {name} is answered", _SECONDS, _PAUSE_SECONDS)


def _has_answer(advice: dict[str, Any]) -> bool:
    return bool(advice.get("status", {}).get("conditions"))


async def _all_answered(site: Site) -> bool:
    await asyncio.sleep(1)
    return not await _unanswered(site)


async def _unanswered(site: Site) -> int:
    return sum([not _has_answer(one) async for one in site.kube.each(ADVICES, NAMESPACE)])


def _advice(name: str) -> dict[str, Any]:
    metadata = {"name": name}
    return {
        "apiVersion": API_VERSION,
        "kind": "PlacementAdvice",
        "metadata": metadata,
        "spec": {"clientClassName": "user"},
    }
