"""Defines the machine of a node, with the memory, processors, disk and link that nodes.toml declares."""

import shutil
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.machine import Machine
from tests.cluster.network import Port
from tests.cluster.processes import run
from tests.cluster.profiles import Link, Node

VOLUMES = "/var/lib/tierbench-volumes"

# Data of pods is on the node's disk. Images and logs are not, so a slow disk slows down only what is measured.
ON_DISK = ("mnt", "srv", "var/lib/kubelet", "var/lib/tierbench", VOLUMES.removeprefix("/"))


@dataclass(frozen=True)
class Hardware(Machine):
    """`folder` has the machine's files, and `programs` has its programs. `port` connects it to the switch."""

    profile: Node
    folder: Path
    programs: Path
    port: Port

    @staticmethod
    def prepare(profile: Node) -> None:
        """Creates the cached files for all machines of this kind. Raises ClusterError if that fails."""

    @property
    @abstractmethod
    def pods(self) -> str:
        """Returns the control group of the node's pods in the kubelet's notation."""

    @property
    @abstractmethod
    def ends(self) -> list[tuple[Machine, str]]:
        """Returns the machines and interfaces that shape the node's link: from the node, and to it."""

    @property
    def shaped(self) -> Link | None:
        """Returns the link that the kernel shapes at the ends, if any."""
        return self.profile.link

    @property
    def connected(self) -> bool:
        """Returns whether the link carries packets while the machine runs."""
        return True

    @property
    def disk(self) -> str:
        """Returns the block device of the node's disk, MAJOR:MINOR."""
        return self.output("mountpoint", "--fs-devno", "/var/lib/tierbench").strip()

    def container(self) -> str | None:
        """Returns the JSON specification that containers start from, or None for containerd's default."""
        return None

    def make_disk(self) -> Path:
        """Creates the file of the node's disk if it does not exist."""
        disk = self.folder / "disk"
        if not disk.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            run("truncate", f"--size={self.profile.disk_size or shutil.disk_usage(self.folder).free}", str(disk))
            # There are few inodes. All are written now, so that the kernel writes nothing later.
            options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
            run("mkfs.ext4", "-q", "-m", "0", "-T", "largefile4", "-E", options, str(disk))
        return disk
