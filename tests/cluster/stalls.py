"""A worn SD card: now and then the disk answers no read for a while. Reads from the page cache never wait."""

import signal
import sys
import threading
from pathlib import Path

from tests.cluster.cgroups import Cgroups
from tests.cluster.errors import ClusterError
from tests.cluster.machine import Machine
from tests.cluster.node import NodeMachine

_STANDING = 1  # bytes a second: the first read waits for longer than any stall lasts


def switch(on: bool, control_plane: Machine, nodes: list[NodeMachine]) -> None:
    """Start or end the stalls of every node that declares them. Raises ClusterError when none does."""
    stalling = [node for node in nodes if node.profile.stall]
    if not stalling:
        raise ClusterError("no node declares a stall: see nodes.toml")
    for node in stalling:
        daemon, profile, stall = f"stalls-{node.profile.name}", node.profile, node.profile.stall
        if on and stall:
            numbers = (str(value) for value in (profile.disk_read or 0, stall.every, stall.length))
            root = Path(__file__).parents[2]
            loop = [sys.executable, "-m", __name__, control_plane.cluster, profile.name, node.disk, *numbers]
            control_plane.start(daemon, "env", f"PYTHONPATH={root}", *loop)
        elif not on and control_plane.daemon(daemon):
            control_plane.signal(daemon, signal.SIGTERM)
            control_plane.cgroups.throttle(profile.name, node.disk, profile.disk_read)


def main() -> None:
    """Stall until SIGTERM: CLUSTER NODE DISK RATE EVERY LENGTH."""
    cluster, node, disk, rate, every, length = sys.argv[1:]
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    cgroups = Cgroups(cluster)
    while not ended.wait(float(every) - float(length)):
        cgroups.throttle(node, disk, _STANDING)
        ended.wait(float(length))
        cgroups.throttle(node, disk, int(rate) or None)


if __name__ == "__main__":
    main()
