"""Compares measurements with their limits."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from benchmarks.peers.measure import ROOT

OUT = ROOT / "build" / "scale"


@dataclass(frozen=True)
class Row:
    """A quantity. `value` is None if it was not measured, `limit` is None if it is only reported."""

    name: str
    unit: str
    value: float | None
    limit: float | None = None

    @property
    def broken(self) -> bool:
        """Returns whether the value exceeds its limit."""
        return self.limit is not None and (self.value is None or math.isnan(self.value) or self.value > self.limit)


def report(rows: Sequence[Row]) -> bool:
    """Prints a table, and writes build/scale/results.json. Returns whether every limit is kept."""
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "results.json").write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    print(f"{'':64} {'value':>10} {'limit':>8}")
    for row in rows:
        value = "never" if row.value is None else f"{row.value:.2f}"
        limit = "" if row.limit is None else f"{row.limit:g}"
        print(f"{f'{row.name} [{row.unit}]':64} {value:>10} {limit:>8}{'  BROKEN' if row.broken else ''}", flush=True)
    return not any(row.broken for row in rows)
