"""Runs a machine in namespaces for network, mounts, processes and host name, with its own process 1.

All its processes descend from process 1. When that is killed, daemons, shims and containers end, and the kernel removes
mounts, network interfaces and firewall rules.
"""

from dataclasses import dataclass
from typing import ClassVar

from tests.cluster.errors import ClusterError
from tests.cluster.machine import Machine
from tests.cluster.processes import Process, find, run, spawn, wait


@dataclass(frozen=True)
class Namespaces(Machine):
    carrier: ClassVar[str] = "nsenter"

    @property
    def init(self) -> Process | None:
        """Returns its process 1, or None if the machine is down."""
        holder = find("unshare", f"TIERBENCH_MACHINE={self.cluster}/{self.name}")
        init = holder.child() if holder else None
        return init if init and init.alive and init.name == "sleep" else None

    @property
    def pid(self) -> int:
        """Returns the pid of its process 1 on the host. Raises ClusterError if the machine is down."""
        init = self.init
        if init is None:
            raise ClusterError(f"{self.name} is not running: python3 -m tests.cluster --name {self.cluster} up")
        return init.pid

    def boot(self) -> None:
        """Creates the namespaces. The mounts are private copies of the host's, with another /proc."""
        # sleep inherits that SIGCHLD is ignored, so the kernel reaps orphans. This is a duty of process 1.
        command = ["unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc"]
        spawn(
            [*command, "env", "--ignore-signal=CHLD", "sleep", "infinity"],
            f"TIERBENCH_MACHINE={self.cluster}/{self.name}",
            self.logs / f"{self.name}.log",
            self.cgroups.enter_daemons,
        )
        wait(lambda: self.init is not None, f"process 1 of {self.name} (see {self.logs / self.name}.log)", 60)
        self.run("hostname", self.name)
        self.run("ip", "link", "set", "lo", "up")

    def inside(self, *command: str) -> list[str]:
        """Returns the command line that runs a program on this machine."""
        return [
            "nsenter",
            "--target",
            str(self.pid),
            "--net",
            "--mount",
            "--pid",
            "--uts",
            "--ipc",
            "--wd=/",
            "--",
            *command,
        ]

    def network(self, *command: str) -> None:
        """Runs a program of the host in the machine's network, but not in its process namespace."""
        run(*self.in_network(*command))

    def in_network(self, *command: str) -> list[str]:
        """Returns the command line that runs a program of the host in the machine's network."""
        return ["nsenter", "--target", str(self.pid), "--net", "--", *command]

    def daemon(self, name: str) -> Process | None:
        waiter = self._waiter(name)
        child = waiter.child() if waiter else None
        return child if child and child.alive else None
