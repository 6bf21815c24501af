"""A real Mosquitto on loopback, with an account, and certificates of its own CA."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.paho.certificates import make_certificates
from tests.ports import free_ports

USERNAME, PASSWORD = "bench", "correct horse"
MESSAGE_SIZE_LIMIT = 200_000
START_SECONDS = 60
MESSAGE_BYTES = 1024  # packets that connect, subscribe or acknowledge have fewer

_FROZEN_SECONDS = 0.3  # enough for a client to send its next message
_RUNNING_SECONDS = 0.03  # for the steps of clients before they send messages

_CONFIGURATION = """\
{user}
allow_anonymous false
password_file {folder}/passwords
acl_file {folder}/acl
persistence true
persistence_location {folder}/
set_tcp_nodelay true
max_inflight_messages 0
max_queued_messages 0
message_size_limit {limit}
log_type error
listener {plain} 127.0.0.1
listener {secure} 127.0.0.1
certfile {folder}/server.crt
keyfile {folder}/server.key
listener {expired} 127.0.0.1
certfile {folder}/expired.crt
keyfile {folder}/expired.key
tls_version tlsv1.3
"""
_ACL = """\
user bench
topic readwrite tierbench/#
"""


@dataclass
class Mosquitto:
    """A Mosquitto with three listeners. `folder` contains ca.crt, username and password."""

    folder: Path
    plain: int
    secure: int
    expired: int
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def target(self) -> dict[str, str]:
        """The fields by which it differs from other targets of a plan."""
        return {"url": f"mqtt://127.0.0.1:{self.plain}", "passwordFile": str(self.folder / "password")}

    def start(self) -> None:
        """Starts the broker unless it runs, and waits until it answers."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(["mosquitto", "-c", self.folder / "mosquitto.conf"])
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.plain), timeout=1).close()
            except OSError as error:
                assert self._process.poll() is None, "Mosquitto ended: see above"
                assert time.monotonic() < deadline, f"Mosquitto does not answer: {error}"
                time.sleep(0.01)
            else:
                return

    def kill(self) -> None:
        """Ends the broker at once, like a node that goes down."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def freeze_with_messages_unread(self, unless: Callable[[], bool]) -> None:
        """Freezes the broker while it has unread messages. Returns without that once `unless` returns true."""
        while not unless():
            self._signal(signal.SIGSTOP)
            deadline = time.monotonic() + _FROZEN_SECONDS
            while time.monotonic() < deadline:
                if self._unread() >= MESSAGE_BYTES:
                    return
                time.sleep(0.005)
            self.resume()
            time.sleep(_RUNNING_SECONDS)

    def resume(self) -> None:
        """Continues a frozen broker."""
        self._signal(signal.SIGCONT)

    def _unread(self) -> int:
        """Returns the number of bytes that clients have sent and the broker has not read."""
        sockets = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
        return sum(int(fields[4].split(":")[1], 16) for fields in sockets if fields[1].endswith(f":{self.plain:04X}"))

    def restart(self) -> None:
        """Ends the broker as Kubernetes does, so that it saves its sessions, and starts it again."""
        assert self._process is not None
        self._process.terminate()
        self.resume()
        self._process.wait()
        self.start()

    def saved(self) -> bytes:
        """Returns what the broker saved. It contains the names of clients that have a session."""
        return (self.folder / "mosquitto.db").read_bytes()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


def make_broker(folder: Path) -> Mosquitto:
    """Returns a broker that is not started yet."""
    for program in ("mosquitto", "mosquitto_passwd"):
        assert shutil.which(program), f"{program} is missing: run tools/setup, or apt-get install mosquitto"
    folder.mkdir()
    broker = Mosquitto(folder, *free_ports(3))
    make_certificates(folder)
    (folder / "username").write_text(USERNAME)
    (folder / "password").write_text(PASSWORD)
    (folder / "acl").write_text(_ACL)
    subprocess.run(["mosquitto_passwd", "-b", "-c", folder / "passwords", USERNAME, PASSWORD], check=True)
    configuration = _CONFIGURATION.format(
        user="user root" if os.geteuid() == 0 else "",  # only this user may read the folder
        folder=folder,
        limit=MESSAGE_SIZE_LIMIT,
        plain=broker.plain,
        secure=broker.secure,
        expired=broker.expired,
    )
    (folder / "mosquitto.conf").write_text(configuration)
    return broker
