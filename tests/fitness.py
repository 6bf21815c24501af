"""Measures how much processor time this machine loses during a test of magnitudes."""

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

MOST_GAP_SECONDS = 0.1
MOST_LOST = 0.15
"""A fit machine loses at most this share of processor time."""

_NAP_SECONDS = 0.005
_WORK_SECONDS = 0.2


@dataclass
class Fitness:
    """`gap` is the longest delay of a thread that only sleeps, in seconds. `lost` has shares of processor time.

    They are what work on all processors lost before and after the test, and what the hypervisor took during it.
    """

    gap: float = 0.0
    lost: dict[str, float] = field(default_factory=dict)

    @property
    def unfit(self) -> str:
        """Describes what the machine lost. Empty for a fit machine."""
        found = [f"{share:.0%} of its processors {when}" for when, share in self.lost.items() if share > MOST_LOST]
        if self.gap > MOST_GAP_SECONDS:
            found.append(f"{self.gap * 1000:.0f} ms at one time")
        return f"the machine lost {' and '.join(found)}" if found else ""


@contextmanager
def watched() -> Iterator[Fitness]:
    """Yields the machine's fitness during the block. It is complete after the block."""
    fitness, ended = Fitness(), threading.Event()

    def watch() -> None:
        began = time.monotonic()
        while not ended.wait(_NAP_SECONDS):
            now = time.monotonic()
            fitness.gap = max(fitness.gap, now - began - _NAP_SECONDS)
            began = now

    fitness.lost["before the test"] = _lost_by_work()
    watcher, stolen, began = threading.Thread(target=watch, daemon=True), _stolen_seconds(), time.monotonic()
    watcher.start()
    try:
        yield fitness
    finally:
        ended.set()
        watcher.join()
        elapsed = (time.monotonic() - began) * (os.cpu_count() or 1)
        fitness.lost["to the hypervisor"] = (_stolen_seconds() - stolen) / elapsed
        fitness.lost["after the test"] = _lost_by_work()


def _lost_by_work() -> float:
    """Occupies all processors, and returns the largest share of the time that a processor lost."""
    processors = os.cpu_count() or 1
    with multiprocessing.get_context("forkserver").Pool(processors) as pool:
        shares = pool.map(_share_of_work, [_WORK_SECONDS] * processors, chunksize=1)
    return 1 - min(shares)


def _share_of_work(seconds: float) -> float:
    """Returns the share of the elapsed time in which this process had a processor."""
    began, used = time.monotonic(), time.process_time()
    while time.monotonic() - began < seconds:
        pass
    return (time.process_time() - used) / (time.monotonic() - began)


def _stolen_seconds() -> float:
    fields = Path("/proc/stat").read_text().splitlines()[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")
