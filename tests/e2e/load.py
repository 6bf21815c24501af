"""When a load is at a server, and not only about to be."""

from collections.abc import Callable
from pathlib import Path

from tests.e2e.benchmarks import Running
from tests.e2e.kubectl import wait_for

ENOUGH_BYTES = 50_000


def wait_for_load(running: Running, network: Callable[[], str], seconds: float = 120) -> None:
    """Returns in mid-trial: a client that has begun one may still be connecting. `network` reads the server's
    /proc/net/dev."""
    running.wait_for_trial(seconds=seconds)
    before = _received(network())
    wait_for("messages come in", lambda: _received(network()) > before + ENOUGH_BYTES)


def network_of(pid: int) -> Callable[[], str]:
    """Reads that of a process's pod."""
    return Path(f"/proc/{pid}/net/dev").read_text


def _received(devices: str) -> int:
    lines = (line.split(":") for line in devices.splitlines() if ":" in line)
    return next(int(counters.split()[0]) for name, counters in lines if name.strip() == "eth0")
