"""Measures the operator's capacity: `python3 -m benchmarks.scale [SCENARIO …]`. Exits with 1 if a limit is broken."""

import argparse
import asyncio
import sys
import time
import traceback
from collections.abc import Sequence

from benchmarks.scale.rows import Row, report
from benchmarks.scale.scenarios import SCENARIOS
from benchmarks.scale.site import site


def main() -> int:
    """Runs all scenarios, or those that are named."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.scale", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; all by default")
    parser.add_argument("--memory", default="", help="another limit of the operator's memory than the chart's, as 2Gi")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f"no scenario {', '.join(unknown)}: there are {', '.join(SCENARIOS)}")
    rows = asyncio.run(_measure(arguments.scenarios or list(SCENARIOS), arguments.memory))
    return 0 if report(rows) else 1


async def _measure(names: Sequence[str], memory: str) -> list[Row]:
    """Runs each scenario on a cluster of its own: an API server that has served another one answers more slowly."""
    rows: list[Row] = []
    for name in names:
        began = time.monotonic()
        try:
            async with site(name, memory) as where:
                async for row in SCENARIOS[name](where):
                    rows.append(row)
        except Exception:
            traceback.print_exc()
            rows.append(Row(f"{name}: measured to its end", "", None, 0))
        report(rows)
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main())
