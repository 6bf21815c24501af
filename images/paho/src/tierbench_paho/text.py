"""Trials for a person to read."""

import math
from itertools import accumulate
from typing import Final, TextIO

from .contract import COMPLETED, Json

_NAMES: Final = {"roundTrip": "round trip", "acknowledge": "acknowledged after"}
_BUCKETS_PER_DOUBLING: Final = 64


class TextReport:
    """Shows each trial in a line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def started(self, case: int, trial: int, warmup: bool) -> None:
        """Nothing: a person waits for the end."""

    def ended(self, trial: Json) -> None:
        """One line."""
        of = f"case {trial['case']}, " if "case" in trial else ""
        name = f"{of}{'warm-up' if trial['warmup'] else 'trial'} {trial['trial']}"
        seconds = trial["durationNanoseconds"] / 1e9
        counts = trial.get("exchange", {})
        if trial["outcome"] != COMPLETED:
            result = f"failed after {seconds:.3f} s: {trial['failure']['reason']}: {trial['failure']['message']}"
        else:
            rate = counts.get("received", counts["acknowledged"]) / seconds if seconds else math.nan
            name = "acknowledge" if "received" not in counts else "roundTrip"
            times = trial["distributions"].get(name, {"count": 0})
            result = (
                f"{seconds:9.3f} s  {rate:9.0f} messages/s  "
                f"{_NAMES[name]} {_milliseconds(times, 0.5)} (p99 {_milliseconds(times, 0.99)}) ms"
            )
        shown = ("sent", "lost", "duplicated", "retried", "errors")
        print(
            f"{name:10} {result}  {', '.join(f'{word} {counts[word]}' for word in shown if word in counts)}",
            file=self._out,
            flush=True,
        )


def _milliseconds(histogram: Json, share: float) -> str:
    if not histogram["count"]:
        return "-"
    running = accumulate(histogram["counts"])
    wanted = share * histogram["count"]
    index = next(index for index, below in zip(histogram["indexes"], running, strict=True) if below >= wanted)
    return f"{2 ** (index / _BUCKETS_PER_DOUBLING) / 1e6:.3f}"
