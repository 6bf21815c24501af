"""Compares measurements with their limits, and with a peer: a bare program that does only the necessary work."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from benchmarks.peers.measure import ROOT

OUT: Final = ROOT / "build" / "scale"
RATIO: Final = 1.5
"""The largest ratio of the operator's value to that of its peer."""
COMPUTING: Final = 2.0
"""The same for CPU, and for times of which the operator computes a third or more, in decisions and in kopf.

Other load on the processors delays what computes more than a bare program that waits. With cold caches, short work also
takes more CPU, and equal work differs by half from one minute to the next.
"""


@dataclass(frozen=True)
class Row:
    """A quantity. `value` is None if it was not measured. `limit` is None if the value is only reported.

    If the row `has_peer`, the limit applies to the ratio of the value to that of the peer.
    """

    name: str
    unit: str
    value: float | None
    limit: float | None = None
    peer: float | None = None
    has_peer: bool = False

    @property
    def ratio(self) -> float | None:
        """Returns the value as a multiple of the peer's."""
        return self.value / self.peer if self.value is not None and self.peer else None

    @property
    def broken(self) -> bool:
        """Returns whether the value exceeds its limit."""
        found = self.ratio if self.has_peer else self.value
        return self.limit is not None and (found is None or math.isnan(found) or found > self.limit)


def against(peer: float | None, name: str, unit: str, value: float | None, limit: float | None = RATIO) -> Row:
    """Returns a row whose limit is a ratio to a peer."""
    return Row(name, unit, value, limit, peer, has_peer=True)


def report(rows: Sequence[Row]) -> bool:
    """Prints a table, and writes build/scale/results.json. Returns whether no limit is broken."""
    OUT.mkdir(parents=True, exist_ok=True)
    found = [{**asdict(row), "ratio": row.ratio, "broken": row.broken} for row in rows]
    (OUT / "results.json").write_text(json.dumps(found, indent=2) + "\n")
    print(f"{'':68} {'value':>9} {'peer':>9} {'ratio':>6} {'limit':>6}")
    for row in rows:
        value = "never" if row.value is None else f"{row.value:.2f}"
        peer = ("never" if row.has_peer else "") if row.peer is None else f"{row.peer:.2f}"
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        limit = "" if row.limit is None else f"{row.limit:g}{' x' if row.has_peer else ''}"
        state = "  BROKEN" if row.broken else ""
        print(f"{f'{row.name} [{row.unit}]':68} {value:>9} {peer:>9} {ratio:>6} {limit:>6}{state}", flush=True)
    return not any(row.broken for row in rows)
