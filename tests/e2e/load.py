"""When a load is at a server, and not only about to be."""

from collections.abc import Callable
from pathlib import Path

from tests.e2e.kubectl import wait_for

ENOUGH_BYTES = 50_000


def wait_for_load(network: Callable[[], str]) -> None:
    """Returns in mid-trial, called in one: a client that has begun it may still be connecting. `network` reads the
    server's /proc/net/dev."""
    before = _received(network())
    wait_for("messages come in", lambda: _received(network()) > before + ENOUGH_BYTES)


def network_of(pid: int) -> Callable[[], str]:
    """Reads that of a process's pod."""
    return Path(f"/proc/{pid}/net/dev").read_text


def _received(devices: str) -> int:
    lines = (line.split(":") for line in devices.splitlines() if ":" in line)
    return next(int(counters.split()[0]) for name, counters in lines if name.strip() == "eth0")
