"""Defines what every machine of the cluster can do."""

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
    """A daemon on a machine."""

    @property
    def alive(self) -> bool: ...

    def send(self, number: signal.Signals) -> None:
        """Sends a signal, unless the daemon is gone."""


@dataclass(frozen=True)
class Machine(ABC):
    """A machine. `cluster` and `name` identify its processes. `logs` is the folder of its daemons' logs."""

    cluster: str
    name: str
    logs: Path
    cgroups: Cgroups

    carrier: ClassVar[str]  # the program with which `inside` runs others

    @property
    @abstractmethod
    def init(self) -> Process | None:
        """Returns the process whose end stops the machine, or None if the machine is down."""

    @abstractmethod
    def boot(self) -> None:
        """Starts the machine. Raises ClusterError if it does not start."""

    @abstractmethod
    def inside(self, *command: str) -> list[str]:
        """Returns the command line that runs a program on this machine. Raises ClusterError if the machine is down."""

    @abstractmethod
    def daemon(self, name: str) -> Daemon | None:
        """Returns the daemon, or None if it is not running."""

    def kill(self) -> None:
        """Ends all processes on the machine, as a power cut does."""
        init = self.init
        if init:
            init.send(signal.SIGKILL)
            wait(lambda: not init.alive, f"end of {self.name}", 10)

    def run(self, *command: str, stdin: str | None = None) -> None:
        run(*self.inside(*command), stdin=stdin)

    def output(self, *command: str) -> str:
        return output(*self.inside(*command))

    def network(self, *command: str) -> None:
        """Runs a program that configures the machine's network."""
        self.run(*command)

    def write(self, folder: str, files: Mapping[str, str]) -> None:
        """Writes files into the folder. `files` has their text by name."""
        script = ""
        for name, text in files.items():
            path = Path(folder, name)
            script += f"mkdir -p {path.parent}\nprintf %s {shlex.quote(text)} >{path}\n"
        self.run("sh", "-e", stdin=script)

    def start(self, daemon: str, *command: str) -> None:
        """Starts a daemon unless it runs. If it ends at once, its log has the reason."""
        if self.daemon(daemon) is None:
            spawn(self._carry(daemon, *command), self._variable(daemon), self.log(daemon), self.cgroups.enter_daemons)
            wait(lambda: self._started(daemon), f"start of {self.name}/{daemon}", 60)

    def signal(self, daemon: str, number: signal.Signals) -> None:
        """Sends a signal to a daemon. Waits after SIGKILL and SIGTERM. SIGTERM becomes SIGKILL after 5 s."""
        process, waiter = self.daemon(daemon), self._waiter(daemon)
        if process is None or waiter is None:
            raise ClusterError(f"{self.name}/{daemon} is not running")
        process.send(number)
        if number is signal.SIGCONT:
            waiter.send(number)  # nsenter stops together with the daemon that it waits for
        if number is signal.SIGTERM:
            # only the API server takes longer, because it waits a minute for its watchers
            with suppress(ClusterError):
                wait(lambda: not process.alive, f"end of {self.name}/{daemon}", 5)
            process.send(signal.SIGKILL)
        if number in (signal.SIGKILL, signal.SIGTERM):
            wait(lambda: not process.alive, f"end of {self.name}/{daemon}", 10)

    def log(self, daemon: str) -> Path:
        return self.logs / f"{self.name}-{daemon}.log"

    def _carry(self, daemon: str, *command: str) -> list[str]:
        """Returns the command line that runs a daemon on this machine."""
        return self.inside(*command)

    def _started(self, daemon: str) -> bool:
        """Returns whether the daemon runs or has ended."""
        return self.daemon(daemon) is not None or self._waiter(daemon) is None

    def _variable(self, daemon: str) -> str:
        return f"TIERBENCH_DAEMON={self.cluster}/{self.name}/{daemon}"

    def _waiter(self, daemon: str) -> Process | None:
        return find(self.carrier, self._variable(daemon))
