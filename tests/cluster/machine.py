"""A machine of the cluster: namespaces for network, mounts, processes and host name, with a process 1 of its own.

Everything on a machine runs below its process 1, so killing it ends daemons, shims and containers at once, and the
kernel takes mounts, network interfaces and firewall rules away with them.
"""

import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.cgroups import Cgroups
from tests.cluster.errors import ClusterError
from tests.cluster.processes import Process, find, output, run, spawn, wait


@dataclass(frozen=True)
class Machine:
    """One machine: `cluster` and `name` find its processes, `logs` is the folder of its daemons' logs."""

    cluster: str
    name: str
    logs: Path
    cgroups: Cgroups

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

    def kill(self) -> None:
        """End everything on the machine at once, as a power cut would."""
        init = self.init
        if init:
            init.send(signal.SIGKILL)
            wait(lambda: not init.alive, f"end of {self.name}", 10)

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

    def run(self, *command: str, stdin: str | None = None) -> None:
        run(*self.inside(*command), stdin=stdin)

    def output(self, *command: str) -> str:
        return output(*self.inside(*command))

    def network(self, *command: str) -> None:
        """Run a host's program in the machine's network alone, where host pids name other machines."""
        run("nsenter", "--target", str(self.pid), "--net", "--", *command)

    def start(self, daemon: str, *command: str) -> None:
        """Start a daemon unless it runs. It may have ended when this returns: its log says why."""
        if self.daemon(daemon) is None:
            spawn(self.inside(*command), self._variable(daemon), self.log(daemon), self.cgroups.enter_daemons)
            wait(lambda: self._started(daemon), f"start of {self.name}/{daemon}", 60)

    def _started(self, daemon: str) -> bool:
        """Whether the daemon runs, or has ended already."""
        return self.daemon(daemon) is not None or self._waiter(daemon) is None

    def daemon(self, name: str) -> Process | None:
        """The daemon's process, or None when it is not running."""
        waiter = self._waiter(name)
        child = waiter.child() if waiter else None
        return child if child and child.alive else None

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

    def _variable(self, daemon: str) -> str:
        return f"TIERBENCH_DAEMON={self.cluster}/{self.name}/{daemon}"

    def _waiter(self, daemon: str) -> Process | None:
        return find("nsenter", self._variable(daemon))
