"""Runs a node in a virtual machine with its own kernel, memory, page cache and clock.

QEMU runs in the network of the control plane's machine, where it is connected to the switch, and in the cluster's
control groups. Programs in the machine run over ssh, which does not use the node's link.
"""

import math
import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from tests.cluster import binaries, images
from tests.cluster.hardware import ON_DISK, Hardware
from tests.cluster.machine import Machine
from tests.cluster.node_files import SETTINGS
from tests.cluster.processes import Process, run, spawn, wait
from tests.cluster.profiles import Node
from tests.cluster.vm import BOARDS, Debian, Disk, Drive, Ssh, Tap, UserNetwork, VirtualMachine

RELEASE = "trixie"

_PACKAGES = ("conntrack", "containerd", "containernetworking-plugins", "ethtool", "iptables", "runc")
_SSH = 2200  # the port of the first node, in the network of the control plane's machine
_SYSTEM = 16 << 30  # bytes of the sparse disk with Debian, images and logs
_PROGRAMS = 2 << 30  # bytes of the sparse disk with Kubernetes
# Incoming packets pass through another interface, because a kernel shapes only outgoing packets.
_SETUP = f"""
mkdir -p {SETTINGS}/bin /disk
mount -o ro /dev/vdc {SETTINGS}/bin
mount -o noatime,discard /dev/vdb /disk
for name in {" ".join(ON_DISK)}; do
  mkdir -p /disk/$name /$name
  mount --bind /disk/$name /$name
done
modprobe -a br_netfilter ifb nf_conntrack overlay sch_netem
ip link show ifb0 >/dev/null 2>&1 || ip link add ifb0 type ifb
ip link set ifb0 up
tc qdisc add dev eth0 ingress
tc filter add dev eth0 ingress matchall action mirred egress redirect dev ifb0
"""


@dataclass(frozen=True)
class RemoteDaemon:
    """A daemon in a virtual machine. An ssh process runs it."""

    machine: Machine
    name: str
    ssh: Process

    @property
    def alive(self) -> bool:
        return self.ssh.alive

    def send(self, number: signal.Signals) -> None:
        self.machine.run("sh", "-c", f"kill -{number:d} $(cat {pid_file(self.name)}) 2>/dev/null || true")


@dataclass(frozen=True)
class VirtualNode(Hardware):
    carrier: ClassVar[str] = "ssh"

    @staticmethod
    def prepare(profile: Node) -> None:
        BOARDS[profile.architecture.name].check()
        _debian(profile).disk()
        binaries.build(binaries.asked(), profile.architecture)
        images.build("pause", profile.architecture)

    @property
    def init(self) -> Process | None:
        """Returns QEMU's process."""
        return self._machine.process

    @property
    def pods(self) -> str:
        return "/"

    @property
    def ends(self) -> list[tuple[Machine, str]]:
        return [(self, "eth0"), (self, "ifb0")]

    def boot(self) -> None:
        self.make_disk()
        self._make_programs()
        if not self._debian.exists():
            self._debian.symlink_to(_debian(self.profile).disk().folder)
        self.port.plug("tuntap", "add", "dev", self.port.name, "mode", "tap")
        self._reachable.boot(self.cgroups.enter_daemons)
        self._control.unlink(missing_ok=True)
        spawn(self._ssh.hold(), self._variable("ssh"), self.log("ssh"), self.cgroups.enter_daemons)
        wait(self._control.exists, f"ssh of {self.name} (see {self.log('ssh')})", 60)
        self.run("sh", "-e", stdin=_SETUP)
        if self.profile.clock:
            self.run("date", f"--set={self.profile.clock:+d} seconds")
        if self.profile.link and self.profile.link.emulated:
            # The link loses or delays packets one by one, not in the groups that the kernel forms.
            self.run("ethtool", "-K", "eth0", "tso", "off", "gso", "off", "gro", "off")

    def inside(self, *command: str) -> list[str]:
        return self._ssh.command(*command)

    def daemon(self, name: str) -> RemoteDaemon | None:
        ssh = self._waiter(name)
        return RemoteDaemon(self, name, ssh) if ssh and ssh.alive else None

    def _carry(self, daemon: str, *command: str) -> list[str]:
        return self.inside("sh", "-c", f'echo $$ >{pid_file(daemon)}; exec "$@"', "sh", *command)

    @property
    def _machine(self) -> VirtualMachine:
        return VirtualMachine(
            self.name,
            self.folder / "machine",
            Disk(BOARDS[self.profile.architecture.name], self._debian),
            UserNetwork(_SSH + self.port.index, alone=True),
            Tap(self.port.name, self.port.station, self.port.address, self.port.gateway),
            memory=self.profile.memory or 0,
            cpus=math.ceil(self.profile.cpus or os.cpu_count() or 1),
            size=_SYSTEM,
            drives=(Drive(self.folder / "disk", read=self.profile.disk_read), Drive(self._programs, writable=False)),
            parameters=("systemd.mask=containerd.service",),
        )

    @property
    def _reachable(self) -> VirtualMachine:
        """Returns the machine with ssh access. Raises ClusterError if the control plane's machine is down."""
        return replace(self._machine, wrap=tuple(self.port.switch.in_network()))

    @property
    def _ssh(self) -> Ssh:
        """Returns one connection for all programs. A connection takes an emulated processor one second."""
        return replace(self._reachable.ssh, control=self._control)

    @property
    def _control(self) -> Path:
        return self.logs / f"{self.port.index}.ssh"  # the path of a socket has to be short

    @property
    def _debian(self) -> Path:
        """Returns the folder of the disk below the machine's layer, from which it first booted."""
        return self.folder / "debian"

    @property
    def _programs(self) -> Path:
        return self.folder / "programs"

    def _make_programs(self) -> None:
        self._programs.unlink(missing_ok=True)
        run("truncate", f"--size={_PROGRAMS}", str(self._programs))
        run("mkfs.ext4", "-q", "-d", str(self.programs), str(self._programs))


def pid_file(daemon: str) -> str:
    return f"{SETTINGS}/{daemon}.pid"


def _debian(profile: Node) -> Debian:
    return Debian(RELEASE, profile.architecture.name, _PACKAGES)
