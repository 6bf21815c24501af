"""Runs a machine in QEMU that boots from a layer over a disk. The disk stays unchanged."""

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.errors import ClusterError
from tests.cluster.processes import Process, find, run, spawn, wait
from tests.cluster.vm.accelerator import EMULATION, choose
from tests.cluster.vm.disk import Disk
from tests.cluster.vm.network import Tap, UserNetwork, parameters
from tests.cluster.vm.ssh import Ssh

BOOT_SECONDS = 1800  # processors may be emulated, and other processes may be busy
LINES = 20  # lines of the console in an error

# An emulated processor does little in a time slice of the kernel, and would mostly switch between programs. Longer
# slices without preemption by waking programs avoid that. The files are those of Linux 6.1, the last slice of 6.12.
_LONGER_SLICES = """cd /sys/kernel/debug/sched
for slice in latency=60 min_granularity=30 base_slice=30; do
  file=${slice%=*}_ns
  if [ -e $file ]; then echo ${slice#*=}000000 >$file; fi
done
echo NO_WAKEUP_PREEMPTION >features
"""


@dataclass(frozen=True)
class Drive:
    """Another disk, a raw file. `read` limits reads in bytes per second."""

    file: Path
    writable: bool = True
    read: int | None = None

    @property
    def options(self) -> list[str]:
        """Returns QEMU's options. They disable the host's page cache, so that the machine's cache is the only one."""
        drive = f"file={_escape(self.file)},if=virtio,format=raw,cache=none,discard=unmap"
        drive += "" if self.writable else ",readonly=on"
        return ["-drive", drive + (f",throttling.bps-read={self.read}" if self.read else "")]


@dataclass(frozen=True)
class VirtualMachine:
    """A machine. `folder` has its files. `memory`, and the `size` of its disk, are in bytes.

    `parameters` are additional ones of the kernel. `wrap` precedes the command lines of QEMU and ssh.
    """

    name: str
    folder: Path
    disk: Disk
    network: UserNetwork
    tap: Tap | None = None
    memory: int = 4 << 30
    cpus: int = 2
    size: int = 20 << 30
    drives: tuple[Drive, ...] = ()
    parameters: tuple[str, ...] = ()
    wrap: tuple[str, ...] = ()

    @property
    def ssh(self) -> Ssh:
        return Ssh("127.0.0.1", self.network.port, self.disk.key, self.wrap)

    @property
    def console(self) -> Path:
        return self.folder / "console.log"

    @property
    def process(self) -> Process | None:
        """Returns QEMU's process, or None if the machine is down."""
        return find(None, self._variable)

    def boot(self, enter: Callable[[], None] = lambda: None) -> None:
        """Starts the machine and waits until ssh responds. `enter` runs in the new process before QEMU.

        If it does not start, the machine is stopped. Raises ClusterError with the end of its console.
        """
        self.disk.board.check()
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._layer.exists():
            backing = ["-b", str(self.disk.image), "-F", "raw"]
            run("qemu-img", "create", "-q", "-f", "qcow2", *backing, str(self._layer), str(self.size))
        self.console.unlink(missing_ok=True)
        chosen = choose(self.disk.board, self.disk.kernel)
        spawn([*self.wrap, *self.command(chosen)], self._variable, self.folder / "qemu.log", enter)
        try:
            wait(lambda: self.ssh.answers() or self.process is None, f"ssh of {self.name}", BOOT_SECONDS)
        except ClusterError as error:
            self.cut()
            raise ClusterError(f"{error}; {self._end_of_console()}") from error
        if self.process is None:
            raise ClusterError(f"{self.name} ended while it booted; {self._end_of_console()}")
        if chosen == EMULATION:
            self.ssh.call(_LONGER_SLICES)

    def command(self, accelerator: str) -> list[str]:
        """Returns QEMU's command line."""
        board, disk = self.disk.board, self.disk
        processor, own = (board.emulated, board.parameters) if accelerator == EMULATION else ("host", ())
        root = f"file={_escape(self._layer)},if=virtio,format=qcow2,cache=unsafe,discard=unmap"
        name = f"systemd.hostname={self.name}"
        console = f"console={board.console}"
        kernel = [console, "root=/dev/vda", "rw", "net.ifnames=0", name, parameters(self.tap), *own, *self.parameters]
        return [
            board.program,
            *("-machine", board.machine, "-accel", accelerator, "-cpu", processor),
            *("-smp", str(self.cpus), "-m", f"{self.memory >> 20}M"),
            *("-nodefaults", "-no-reboot", "-display", "none", "-device", "virtio-rng-pci"),
            *("-serial", f"file:{self.console}"),
            *("-kernel", str(disk.kernel), "-initrd", str(disk.initial)),
            *("-append", " ".join(kernel)),
            *("-drive", root),
            *(option for drive in self.drives for option in drive.options),
            *(self.tap.options if self.tap else []),
            *self.network.options,
        ]

    def cut(self) -> None:
        """Cuts the machine's power, unless it is down."""
        process = self.process
        if process:
            process.send(signal.SIGKILL)
            wait(lambda: not process.alive, f"end of {self.name}", 10)

    def shut_down(self) -> None:
        """Shuts the machine down: programs end, and data is written."""
        process = self.process
        if process:
            self.ssh.call("systemctl poweroff")
            wait(lambda: not process.alive, f"end of {self.name} (see {self.console})", BOOT_SECONDS)

    @property
    def _layer(self) -> Path:
        return self.folder / "layer.qcow2"

    @property
    def _variable(self) -> str:
        return f"TIERBENCH_MACHINE={self.folder}"

    def _end_of_console(self) -> str:
        lines = [
            line
            for file in (self.folder / "qemu.log", self.console)
            if file.exists()
            for line in file.read_text(errors="replace").splitlines()
        ]
        return "\n".join([f"the end of its console ({self.console}):", *lines[-LINES:]])


def _escape(path: Path) -> str:
    """Escapes a path for an option of QEMU, in which commas are separators."""
    return str(path).replace(",", ",,")
