"""The machine of a node, with the memory, processors, disk and link that nodes.toml declares."""

import shutil
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.machine import Machine
from tests.cluster.network import Port
from tests.cluster.processes import run
from tests.cluster.profiles import Node

VOLUMES = "/var/lib/tierbench-volumes"

# These lie on the node's disk: pods' data. Images and logs do not, so that a slow disk slows what is measured alone.
ON_DISK = ("mnt", "srv", "var/lib/kubelet", "var/lib/tierbench", VOLUMES.removeprefix("/"))


@dataclass(frozen=True)
class Hardware(Machine):
    """`folder` holds its files, `programs` those that run on it; it is plugged into the switch at `port`."""

    profile: Node
    folder: Path
    programs: Path
    port: Port

    @staticmethod
    def prepare(profile: Node) -> None:
        """Make what is made once and kept for all machines of this kind. Raises ClusterError when it cannot be."""

    @property
    @abstractmethod
    def pods(self) -> str:
        """The control group of the node's pods, as the kubelet writes it."""

    @property
    @abstractmethod
    def ends(self) -> list[tuple[Machine, str]]:
        """Where the node's link is shaped, a machine and a network interface for each way."""

    @property
    def disk(self) -> str:
        """The block device of the node's disk, MAJOR:MINOR."""
        return self.output("mountpoint", "--fs-devno", "/var/lib/tierbench").strip()

    def container(self) -> str | None:
        """The specification that containers start from, in JSON; None: containerd's own."""
        return None

    def make_disk(self) -> Path:
        """The file of the node's disk, made when it is not there."""
        disk = self.folder / "disk"
        if not disk.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            run("truncate", f"--size={self.profile.disk_size or shutil.disk_usage(self.folder).free}", str(disk))
            # few inodes, all written now: nothing is left that the kernel would write in the background
            options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
            run("mkfs.ext4", "-q", "-m", "0", "-T", "largefile4", "-E", options, str(disk))
        return disk
