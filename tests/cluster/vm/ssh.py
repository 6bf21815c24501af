"""Programs and files on another machine, over ssh as root."""

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
    """`key` is the file of the private key."""

    address: str
    port: int
    key: Path

    def command(self, *command: str) -> list[str]:
        """The command line that runs a program there, its words as they are."""
        return [*self._login, shlex.join(command)]

    def answers(self) -> bool:
        return subprocess.run(self.command("true"), capture_output=True, check=False).returncode == 0

    def call(self, script: str) -> int:
        """Run a shell script there, its output going where this program's goes; returns its exit status."""
        return subprocess.run([*self._login, script], stdin=subprocess.DEVNULL, check=False).returncode

    def copy_in(self, source: Path, target: str, *, without: tuple[str, ...] = ()) -> None:
        """Copy what is in the folder `source` into the folder `target` there, but for names that match `without`."""
        pack = ["tar", "-C", str(source), *(f"--exclude={name}" for name in without), "-cf", "-", "."]
        unpack = self.command("sh", "-ec", f"mkdir -p {shlex.quote(target)}; tar -C {shlex.quote(target)} -xf -")
        with subprocess.Popen(pack, stdout=subprocess.PIPE) as packing:
            done = subprocess.run(unpack, stdin=packing.stdout, capture_output=True, text=True, check=False)
        if packing.returncode or done.returncode:
            raise ClusterError(f"{source} cannot be copied to {self.address}:{target}: {done.stderr.strip()}")

    @property
    def _login(self) -> list[str]:
        options = [f"-o{option}" for option in _OPTIONS]
        return ["ssh", *options, "-i", str(self.key), "-p", str(self.port), f"root@{self.address}"]
