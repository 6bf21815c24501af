"""The program that stalls one node's disk (MAJOR:MINOR) until SIGTERM: CLUSTER NODE DISK RATE EVERY LENGTH."""

import signal
import sys
import threading
from pathlib import Path

from tests.cluster.cgroups import Cgroups

STANDING = 2  # bytes a second: the first read waits for longer than any stall lasts; version 2 refuses 1
LOOK = 0.05  # seconds
SECTOR = 512  # bytes, whatever the disk's own are


def bytes_read(disk: str) -> int:
    """What was ever read from the disk. Source: the kernel's Documentation/block/stat.rst."""
    return int(Path(f"/sys/dev/block/{disk}/stat").read_text().split()[2]) * SECTOR


def main() -> None:
    """Stall for LENGTH seconds after every EVERY bytes read; RATE (bytes a second) is restored after each."""
    cluster, node, disk, rate, every, length = sys.argv[1:]
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    cgroups = Cgroups(cluster)
    due = bytes_read(disk) + int(every)
    print(f"the first stall comes when {due} bytes are read", flush=True)
    while not ended.wait(LOOK):
        if bytes_read(disk) >= due:
            cgroups.throttle(node, disk, STANDING)
            ended.wait(float(length))
            cgroups.throttle(node, disk, int(rate) or None)
            due += int(every)


if __name__ == "__main__":
    main()
