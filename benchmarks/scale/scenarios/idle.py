"""Checks that an idle operator sends no requests."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from benchmarks.scale.audit import counted
from benchmarks.scale.fixtures import complete
from benchmarks.scale.rows import Row
from benchmarks.scale.site import Site

BENCHMARKS: Final = 100
SECONDS: Final = 120
_SETTLE_SECONDS: Final = 30


async def measure(site: Site) -> AsyncIterator[Row]:
    """Counts the requests in two minutes while all benchmarks are complete."""
    await site.stop()
    await complete(site, [f"files-{number:03d}" for number in range(BENCHMARKS)])
    await site.restart()
    await asyncio.sleep(_SETTLE_SECONDS)
    site.audit.new_requests()
    answered = await site.metric("tierbench_api_requests_total")
    await asyncio.sleep(SECONDS)
    asked = site.audit.new_requests()
    by_operator = await site.metric("tierbench_api_requests_total") - answered
    found = counted(asked)
    print(
        f"idle: {found or 'nothing'} of {len(asked)} requests; by the operator's own metric {by_operator:.0f}",
        flush=True,
    )
    yield Row(f"idle with {BENCHMARKS} complete, {SECONDS} s: requests", "requests", found.total(), 0)
