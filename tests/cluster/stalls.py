"""Imitates a worn SD card: after some reads the disk stalls. Reads from the page cache never wait."""

import signal
import sys
from functools import partial
from pathlib import Path

from tests.cluster.errors import ClusterError
from tests.cluster.machine import Machine
from tests.cluster.node import NodeMachine
from tests.cluster.processes import wait

_LOOP = "tests.cluster.stall_loop"


def switch(on: bool, control_plane: Machine, nodes: list[NodeMachine]) -> None:
    """Starts (with a new count) or ends the stalls of nodes that declare them. Raises ClusterError if none does."""
    stalling = [(node, node.profile.stall) for node in nodes if node.profile.stall]
    if not stalling:
        raise ClusterError("no node declares a stall: see nodes.toml")
    for node, stall in stalling:
        daemon, profile = f"stalls-{node.profile.name}", node.profile
        if control_plane.daemon(daemon):
            control_plane.signal(daemon, signal.SIGTERM)
            control_plane.cgroups.throttle(profile.name, node.disk, profile.disk_read)
        if on:
            numbers = (str(value) for value in (profile.disk_read or 0, stall.every, stall.length))
            loop = [sys.executable, "-m", _LOOP, control_plane.cluster, profile.name, node.disk, *numbers]
            log = control_plane.log(daemon)
            log.unlink(missing_ok=True)
            control_plane.start(daemon, "env", f"PYTHONPATH={Path(__file__).parents[2]}", *loop)
            wait(partial(_has_output, log), f"the first output in {log}", 60)


def _has_output(log: Path) -> bool:
    """Returns whether the loop has started to count, or has reported why it cannot."""
    return log.stat().st_size > 0
