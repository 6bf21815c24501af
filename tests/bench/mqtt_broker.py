"""A local Mosquitto without limits of its own."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
def broker() -> Iterator[int]:
    """The port on 127.0.0.1 where it answers."""
    if shutil.which("mosquitto") is None:
        raise SystemExit("bench: mosquitto is missing: apt-get install mosquitto")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder) / "mosquitto.conf"
        configuration.write_text(CONFIGURATION.format(user="user root" if os.geteuid() == 0 else "", port=port))
        process = subprocess.Popen(["mosquitto", "-c", configuration])
        try:
            _await(process, port)
            yield port
        finally:
            process.terminate()
            process.wait()


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"bench: Mosquitto does not answer on port {port}: {error}: see above") from error
            time.sleep(0.02)
        else:
            return
