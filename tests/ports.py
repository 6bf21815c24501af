"""Finds TCP ports that no other process takes before a test's server listens on them."""

import fcntl
import os
import socket
from pathlib import Path

FIRST, LAST = 20_000, 29_999
"""They are below the ports of outgoing connections, and below Kubernetes' node ports."""

_CURSOR = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tierbench" / "ports"
"""A file with the next port, as text. Go's tests use the same file."""


def free_ports(count: int) -> list[int]:
    """Returns different free ports on loopback. It returns a port again only after all others."""
    _CURSOR.parent.mkdir(parents=True, exist_ok=True)
    with _CURSOR.open("a+") as cursor:
        fcntl.flock(cursor, fcntl.LOCK_EX)
        cursor.seek(0)
        text = cursor.read().strip()
        following = int(text) if text.isdigit() else FIRST
        found: list[int] = []
        for _ in range(FIRST, LAST + 1):
            port = following if FIRST <= following <= LAST else FIRST
            following = port + 1
            if _is_free(port):
                found.append(port)
            if len(found) == count:
                break
        else:
            raise RuntimeError(f"fewer than {count} free ports from {FIRST} to {LAST}")
        cursor.truncate(0)
        cursor.write(str(following))
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
