"""The program that stalls one node's disk until SIGTERM: CLUSTER NODE DISK RATE EVERY LENGTH (MAJOR:MINOR, seconds)."""

import signal
import sys
import threading

from tests.cluster.cgroups import Cgroups

STANDING = 1  # bytes a second: the first read waits for longer than any stall lasts


def main() -> None:
    """Stall for LENGTH seconds in every EVERY; the disk's RATE is restored after each."""
    cluster, node, disk, rate, every, length = sys.argv[1:]
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    cgroups = Cgroups(cluster)
    while not ended.wait(float(every) - float(length)):
        cgroups.throttle(node, disk, STANDING)
        ended.wait(float(length))
        cgroups.throttle(node, disk, int(rate) or None)


if __name__ == "__main__":
    main()
