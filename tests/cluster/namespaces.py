"""A machine made of namespaces for network, mounts, processes and host name, with a process 1 of its own.

Everything on it runs below its process 1, so killing that ends daemons, shims and containers at once, and the kernel
takes mounts, network interfaces and firewall rules away with them.
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
        """Its process 1, or None when the machine is down."""
        holder = find("unshare", f"TIERBENCH_MACHINE={self.cluster}/{self.name}")
        init = holder.child() if holder else None
        return init if init and init.alive and init.name == "sleep" else None

    @property
    def pid(self) -> int:
        """The pid of its process 1 on the host. Raises ClusterError when the machine is down."""
        init = self.init
        if init is None:
            raise ClusterError(f"{self.name} is not running: python3 -m tests.cluster --name {self.cluster} up")
        return init.pid

    def boot(self) -> None:
        """Make the namespaces. The mounts are those of the host, private, with /proc of its own."""
        # Ignored SIGCHLD is inherited by sleep: the kernel then reaps the orphans that every process 1 has to reap.
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
        """The command line that runs a program on this machine."""
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
        """Run a host's program in the machine's network alone, where host pids name other machines."""
        run(*self.in_network(*command))

    def in_network(self, *command: str) -> list[str]:
        """The command line that runs a host's program in the machine's network alone."""
        return ["nsenter", "--target", str(self.pid), "--net", "--", *command]

    def daemon(self, name: str) -> Process | None:
        waiter = self._waiter(name)
        child = waiter.child() if waiter else None
        return child if child and child.alive else None
