"""Waits for the start of a local server."""

import socket
import subprocess
import time


def await_port(name: str, process: subprocess.Popen[bytes], port: int, seconds: float) -> None:
    """Returns once the server answers on the port of 127.0.0.1.

    Raises:
        SystemExit: The server has ended, or the time is up.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"bench: {name} does not answer on port {port}: {error}: see above") from error
            time.sleep(0.02)
        else:
            return
