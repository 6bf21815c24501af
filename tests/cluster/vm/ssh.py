"""Runs programs on another machine, and copies files to it, over ssh as root."""

import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.errors import ClusterError

_OPTIONS = (
    "BatchMode=yes",
    "IdentitiesOnly=yes",
    "StrictHostKeyChecking=no",
    "UserKnownHostsFile=/dev/null",
    "LogLevel=ERROR",
    "ConnectTimeout=10",
)


@dataclass(frozen=True)
class Ssh:
    """`key` is the file of the private key, and `wrap` precedes ssh's command line.

    `control` is the socket of a connection that programs share while it is held.
    """

    address: str
    port: int
    key: Path
    wrap: tuple[str, ...] = ()
    control: Path | None = None

    def hold(self) -> list[str]:
        """Returns the command line that holds the shared connection until it ends."""
        return [*self._login, "-M", "-N"]

    def command(self, *command: str) -> list[str]:
        """Returns the command line that runs a program on the machine with exactly these words."""
        return [*self._login, shlex.join(command)]

    def answers(self) -> bool:
        return subprocess.run(self.command("true"), capture_output=True, check=False).returncode == 0

    def call(self, script: str) -> int:
        """Runs a shell script on the machine with this program's output, and returns its exit status."""
        return subprocess.run([*self._login, script], stdin=subprocess.DEVNULL, check=False).returncode

    def copy_in(self, source: Path, target: str, *, without: tuple[str, ...] = ()) -> None:
        """Copies the contents of the folder `source` into the machine's `target`, except names that match `without`."""
        pack = ["tar", "-C", str(source), *(f"--exclude={name}" for name in without), "-cf", "-", "."]
        unpack = self.command("sh", "-ec", f"mkdir -p {shlex.quote(target)}; tar -C {shlex.quote(target)} -xf -")
        with subprocess.Popen(pack, stdout=subprocess.PIPE) as packing:
            done = subprocess.run(unpack, stdin=packing.stdout, capture_output=True, text=True, check=False)
        if packing.returncode or done.returncode:
            raise ClusterError(f"{source} cannot be copied to {self.address}:{target}: {done.stderr.strip()}")

    @property
    def _login(self) -> list[str]:
        options = [*_OPTIONS, *([f"ControlPath={self.control}"] if self.control else [])]
        login = ["-i", str(self.key), "-p", str(self.port), f"root@{self.address}"]
        return [*self.wrap, "ssh", *(f"-o{option}" for option in options), *login]
