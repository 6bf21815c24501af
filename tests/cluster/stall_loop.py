"""Stalls one node's disk (MAJOR:MINOR) until SIGTERM. Arguments: CLUSTER NODE DISK RATE EVERY LENGTH."""

import signal
import sys
import threading
from pathlib import Path

from tests.cluster.cgroups import Cgroups

STALLED = 2  # bytes per second: the first read takes longer than any stall, and version 2 refuses 1
POLL_SECONDS = 0.05  # seconds
SECTOR = 512  # bytes, for all sizes of the disk's sectors


def bytes_read(disk: str) -> int:
    """Returns the bytes read from the disk so far. Source: the kernel's Documentation/block/stat.rst."""
    return int(Path(f"/sys/dev/block/{disk}/stat").read_text().split()[2]) * SECTOR


def main() -> None:
    """Stalls for LENGTH seconds after every EVERY bytes read, and then restores RATE (bytes per second)."""
    cluster, node, disk, rate, every, length = sys.argv[1:]
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    cgroups = Cgroups(cluster)
    due = bytes_read(disk) + int(every)
    print(f"the first stall comes when {due} bytes are read", flush=True)
    while not ended.wait(POLL_SECONDS):
        if bytes_read(disk) >= due:
            cgroups.throttle(node, disk, STALLED)
            ended.wait(float(length))
            cgroups.throttle(node, disk, int(rate) or None)
            due += int(every)


if __name__ == "__main__":
    main()
