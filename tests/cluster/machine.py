"""What every machine of the cluster can do, whatever it is made of."""

import shlex
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from tests.cluster.cgroups import Cgroups
from tests.cluster.errors import ClusterError
from tests.cluster.processes import Process, find, output, run, spawn, wait


class Daemon(Protocol):
    """A daemon that runs on a machine."""

    @property
    def alive(self) -> bool: ...

    def send(self, number: signal.Signals) -> None:
        """Nothing happens when it is gone."""


@dataclass(frozen=True)
class Machine(ABC):
    """One machine: `cluster` and `name` find its processes, `logs` is the folder of its daemons' logs."""

    cluster: str
    name: str
    logs: Path
    cgroups: Cgroups

    carrier: ClassVar[str]  # the program that `inside` runs others with

    @property
    @abstractmethod
    def init(self) -> Process | None:
        """The process that the machine ends with, or None when the machine is down."""

    @abstractmethod
    def boot(self) -> None:
        """Start the machine. Raises ClusterError when it does not come up."""

    @abstractmethod
    def inside(self, *command: str) -> list[str]:
        """The command line that runs a program on this machine. Raises ClusterError when the machine is down."""

    @abstractmethod
    def daemon(self, name: str) -> Daemon | None:
        """The daemon, or None when it is not running."""

    def kill(self) -> None:
        """End everything on the machine at once, as a power cut would."""
        init = self.init
        if init:
            init.send(signal.SIGKILL)
            wait(lambda: not init.alive, f"end of {self.name}", 10)

    def run(self, *command: str, stdin: str | None = None) -> None:
        run(*self.inside(*command), stdin=stdin)

    def output(self, *command: str) -> str:
        return output(*self.inside(*command))

    def network(self, *command: str) -> None:
        """Run a program that sets up the machine's network."""
        self.run(*command)

    def write(self, folder: str, files: Mapping[str, str]) -> None:
        """Write files into the folder, by their names there."""
        script = ""
        for name, text in files.items():
            path = Path(folder, name)
            script += f"mkdir -p {path.parent}\nprintf %s {shlex.quote(text)} >{path}\n"
        self.run("sh", "-e", stdin=script)

    def start(self, daemon: str, *command: str) -> None:
        """Start a daemon unless it runs. It may have ended when this returns: its log says why."""
        if self.daemon(daemon) is None:
            spawn(self._carry(daemon, *command), self._variable(daemon), self.log(daemon), self.cgroups.enter_daemons)
            wait(lambda: self._started(daemon), f"start of {self.name}/{daemon}", 60)

    def signal(self, daemon: str, number: signal.Signals) -> None:
        """Send a signal to a daemon. SIGKILL and SIGTERM are waited for; SIGTERM becomes SIGKILL after 5 s."""
        process, waiter = self.daemon(daemon), self._waiter(daemon)
        if process is None or waiter is None:
            raise ClusterError(f"{self.name}/{daemon} is not running")
        process.send(number)
        if number is signal.SIGCONT:
            waiter.send(number)  # nsenter stops itself with the daemon that it waits for
        if number is signal.SIGTERM:
            # the API server alone takes longer: it waits a minute for its watchers to leave
            with suppress(ClusterError):
                wait(lambda: not process.alive, f"end of {self.name}/{daemon}", 5)
            process.send(signal.SIGKILL)
        if number in (signal.SIGKILL, signal.SIGTERM):
            wait(lambda: not process.alive, f"end of {self.name}/{daemon}", 10)

    def log(self, daemon: str) -> Path:
        return self.logs / f"{self.name}-{daemon}.log"

    def _carry(self, daemon: str, *command: str) -> list[str]:
        """The command line that runs a daemon on this machine."""
        return self.inside(*command)

    def _started(self, daemon: str) -> bool:
        """Whether the daemon runs, or has ended already."""
        return self.daemon(daemon) is not None or self._waiter(daemon) is None

    def _variable(self, daemon: str) -> str:
        return f"TIERBENCH_DAEMON={self.cluster}/{self.name}/{daemon}"

    def _waiter(self, daemon: str) -> Process | None:
        return find(self.carrier, self._variable(daemon))
