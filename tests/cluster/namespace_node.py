"""Runs a node on this machine's kernel, in namespaces with their own folders, disk and limits."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import binaries, cgroups, links, node_files
from tests.cluster.hardware import ON_DISK, Hardware
from tests.cluster.machine import Machine
from tests.cluster.namespaces import Namespaces
from tests.cluster.node_files import SETTINGS
from tests.cluster.processes import output, wait
from tests.cluster.profiles import Link, Node

# Each node has its own copy of these folders. /var/lib is last, because it hides the source of the others.
_OWN = ("run", "mnt", "srv", "var/log", "var/lib")
# The kubelet reads the size of the disk at its first mount point, so nothing may hide that.
_DISK = "run/tierbench/disk"
# The kubelet sets these for the whole kernel. Here it writes them to files of the node, so the host does not change.
_KERNEL = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


@dataclass(frozen=True)
class NamespaceNode(Hardware, Namespaces):
    @staticmethod
    def prepare(profile: Node) -> None:
        if links.is_pumped(profile.link):
            binaries.client()

    @property
    def pods(self) -> str:
        return self.cgroups.path(self.name)

    @property
    def ends(self) -> list[tuple[Machine, str]]:
        return [(self, "eth0"), (self.port.switch, self.port.name)]

    @property
    def shaped(self) -> Link | None:
        return None if links.is_pumped(self.profile.link) else self.profile.link

    @property
    def connected(self) -> bool:
        return not links.is_pumped(self.profile.link) or links.runs(self.port)

    def boot(self) -> None:
        """Boots with the node's own folders and disk. Its /run is empty."""
        root = self.folder / "root"
        shutil.rmtree(root / "run", ignore_errors=True)
        for name in (*_OWN, *ON_DISK, _DISK, "run/tierbench/bin"):
            (root / name).mkdir(parents=True, exist_ok=True)
        self._imitate(root / SETTINGS.removeprefix("/"))
        disk = self.make_disk()
        wait(lambda: not output("losetup", "--associated", str(disk)), f"the kernel to release {disk}", 20)
        Namespaces.boot(self)
        self.run("sh", "-e", stdin=self._mounts(root, disk))
        self.cgroups.make(self.profile, self.disk)
        self._plug()
        self.network("ip", "address", "add", f"{self.port.address}/24", "dev", "eth0")
        self.network("ip", "link", "set", "eth0", "up")
        self.network("ip", "route", "add", "default", "via", self.port.gateway)

    def _plug(self) -> None:
        """Creates eth0, and connects it with the switch."""
        if self.profile.link and links.is_pumped(self.profile.link):
            links.start(self, self.port, self.profile.link)
        else:
            peer = ["peer", "name", "eth0", "address", self.port.station, "netns", str(self.pid)]
            self.port.plug("link", "add", self.port.name, "type", "veth", *peer)

    def container(self) -> str | None:
        """Adds a read throttle to containers if the throttle of the node does not apply to them (cgroup v1)."""
        if self.profile.disk_read is None or cgroups.version2():
            return None
        return node_files.container(output("ctr", "oci", "spec"), self.disk, self.profile.disk_read)

    def _imitate(self, folder: Path) -> None:
        """Writes files that describe the node's hardware, and files for its kernel settings."""
        files = {
            "meminfo": node_files.meminfo(self.profile, Path("/proc/meminfo").read_text()),
            "cpus": f"0-{node_files.cpus(self.profile) - 1}\n",
            **{f"sys/{name}": f"{value}\n" for name, value in _KERNEL.items()},
        }
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def _mounts(self, root: Path, disk: Path) -> str:
        own = root / SETTINGS.removeprefix("/")
        files = {"/proc/meminfo": "meminfo", "/sys/devices/system/cpu/online": "cpus"} | {
            f"/proc/sys/{name}": f"sys/{name}" for name in _KERNEL if Path("/proc/sys", name).exists()
        }
        lines = [
            f"mount --bind '{self.programs}' '{own}/bin'",
            f"device=$(losetup --find --show --direct-io=on '{disk}')",
        ]
        lines += [f"mount --bind '{own}/{file}' {place}" for place, file in files.items()]
        lines += [f"mount --rbind '{root}/{name}' /{name}" for name in _OWN]
        lines += [
            f"mount -o noatime,discard $device /{_DISK}",
            "losetup --detach $device",  # takes effect when the mount ends
        ]
        for name in ON_DISK:
            lines += [f"mkdir -p /{_DISK}/{name}", f"mount --bind /{_DISK}/{name} /{name}"]
        return "\n".join([*lines, "mount --make-rshared /"]) + "\n"
