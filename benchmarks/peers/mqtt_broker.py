"""Starts a local Mosquitto without limits."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers.measure import Command, as_server
from benchmarks.peers.server import await_port
from tests.ports import free_ports

START_SECONDS = 10

CONFIGURATION = """\
{user}
listener {port} 127.0.0.1
allow_anonymous true
persistence false
connection_messages false
log_type error
set_tcp_nodelay true
max_inflight_messages 0
max_queued_messages 0
"""


@contextmanager
def broker(*, apart: bool) -> Iterator[int]:
    """Yields the port of the broker on 127.0.0.1. With `apart`, the broker has its own processor."""
    if shutil.which("mosquitto") is None:
        raise SystemExit("bench: mosquitto is missing: apt-get install mosquitto")
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder) / "mosquitto.conf"
        configuration.write_text(CONFIGURATION.format(user="user root" if os.geteuid() == 0 else "", port=port))
        command: Command = ["mosquitto", "-c", configuration]
        process = subprocess.Popen(as_server(command) if apart else command)
        try:
            await_port("Mosquitto", process, port, START_SECONDS)
            yield port
        finally:
            process.terminate()
            process.wait()
