"""A node: containerd, kubelet and kube-proxy on a machine with folders, a disk, memory and processors of its own."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import binaries, cgroups, node_files
from tests.cluster.control_plane import ControlPlane
from tests.cluster.machine import Machine
from tests.cluster.node_files import SETTINGS, SOCKET
from tests.cluster.processes import output, run, wait
from tests.cluster.profiles import Node

DAEMONS = ("containerd", "kubelet", "kube-proxy")
VOLUMES = "/var/lib/tierbench-volumes"

# Each node has these folders to itself. /var/lib comes last: it hides the folder that the others are taken from.
_OWN = ("run", "mnt", "srv", "var/log", "var/lib")
# These lie on the node's disk: pods' data. Images and logs do not, so that a slow disk slows what is measured alone.
_ON_DISK = ("mnt", "srv", "var/lib/kubelet", "var/lib/tierbench", VOLUMES.removeprefix("/"))
# The kubelet sets these for the whole kernel; a file of the node's own takes the write, and the host keeps its values.
_KERNEL = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


@dataclass(frozen=True)
class NodeMachine:
    """Node `index` of the cluster; `folder` holds its files."""

    machine: Machine
    profile: Node
    index: int
    folder: Path
    control_plane: ControlPlane

    @property
    def address(self) -> str:
        return self.control_plane.addresses.node(self.index)

    @property
    def disk(self) -> str:
        """The block device of the node's disk, MAJOR:MINOR."""
        return self.machine.output("mountpoint", "--fs-devno", "/var/lib/tierbench").strip()

    @property
    def throttled(self) -> bool:
        """Whether each container has a read throttle of its own."""
        return self.profile.disk_read is not None and not cgroups.version2()

    def boot(self) -> None:
        """Boot the machine with the node's own folders and its disk in place; what it had in /run is forgotten."""
        root, disk = self.folder / "root", self.folder / "disk"
        shutil.rmtree(root / "run", ignore_errors=True)
        for name in (*_OWN, *_ON_DISK, "disk", "run/tierbench/bin"):
            (root / name).mkdir(parents=True, exist_ok=True)
        self._write_files(root / "run/tierbench")
        self._make_disk(disk)
        self.machine.boot()
        self.machine.run("sh", "-e", stdin=self._mounts(root, disk))
        self.machine.cgroups.make(self.profile, self.disk)
        if self.throttled:
            ctr = binaries.program(self.control_plane.binaries, "ctr")
            spec = node_files.container(output(str(ctr), "oci", "spec"), self.disk, self.profile.disk_read or 0)
            (root / "run/tierbench/container.json").write_text(spec)

    @property
    def booted(self) -> bool:
        """Whether the machine runs and all of boot and network was done; /run forgets it with the machine."""
        return self.machine.init is not None and self._mark.exists()

    def mark_booted(self) -> None:
        self._mark.touch()

    @property
    def _mark(self) -> Path:
        return self.folder / "root/run/tierbench/booted"

    def start(self, daemon: str) -> None:
        """Start one of DAEMONS unless it runs."""
        commands = {
            "containerd": [self._program("containerd"), f"--config={SETTINGS}/containerd.toml", "--log-level=warn"],
            "kubelet": [
                f"{SETTINGS}/bin/kubelet",
                f"--config={SETTINGS}/kubelet.yaml",
                f"--kubeconfig={SETTINGS}/kubelet.kubeconfig",
                "--cert-dir=/var/lib/kubelet/pki",
                f"--hostname-override={self.profile.name}",
                f"--node-ip={self.address}",
                f"--node-labels={','.join(f'{key}={value}' for key, value in self.profile.labels.items())}",
                "--housekeeping-interval=10s",
            ],
            "kube-proxy": [
                f"{SETTINGS}/bin/kube-proxy",
                f"--kubeconfig={SETTINGS}/proxy.kubeconfig",
                f"--hostname-override={self.profile.name}",
                "--proxy-mode=iptables",
                f"--cluster-cidr={self.control_plane.addresses.pods}",
                "--conntrack-max-per-core=0",
                "--conntrack-min=0",
            ],
        }
        self.machine.start(daemon, *commands[daemon])

    def containerd_answers(self) -> bool:
        return (self.folder / "root" / SOCKET.removeprefix("/")).exists() and self.machine.daemon(
            "containerd"
        ) is not None

    def ctr(self, *arguments: str) -> list[str]:
        """The command line of containerd's client, in the namespace that the kubelet uses."""
        return self.machine.inside(self._program("ctr"), "--address", SOCKET, "--namespace", "k8s.io", *arguments)

    def _program(self, name: str) -> str:
        """A program as it is called on the node."""
        found = binaries.program(self.control_plane.binaries, name)
        return f"{SETTINGS}/bin/{name}" if found.is_absolute() else name

    def _write_files(self, folder: Path) -> None:
        plane, profile = self.control_plane, self.profile
        files = {
            "containerd.toml": node_files.containerd(self.throttled),
            "kubelet.yaml": node_files.kubelet(profile, plane.addresses, self.machine.cgroups.path(profile.name)),
            "kubelet.kubeconfig": plane.kubeconfig(profile.name).read_text(),
            "proxy.kubeconfig": plane.kubeconfig("proxy").read_text(),
            "ca.crt": (plane.folder / "pki" / "ca.crt").read_text(),
            "cni/10-bridge.conflist": node_files.cni(plane.addresses.node_pods(self.index)),
            "meminfo": node_files.meminfo(profile, Path("/proc/meminfo").read_text()),
            "cpus": f"0-{node_files.cpus(profile) - 1}\n",
            **{f"sys/{name}": f"{value}\n" for name, value in _KERNEL.items()},
        }
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def _make_disk(self, disk: Path) -> None:
        if disk.exists():
            wait(lambda: not output("losetup", "--associated", str(disk)), f"the kernel to let go of {disk}", 20)
            return
        size = self.profile.disk_size or shutil.disk_usage(self.folder).free
        run("truncate", f"--size={size}", str(disk))
        # few inodes, all written now: nothing is left that the kernel would write in the background
        run(
            "mkfs.ext4",
            "-q",
            "-m",
            "0",
            "-T",
            "largefile4",
            "-E",
            "lazy_itable_init=0,lazy_journal_init=0,nodiscard",
            str(disk),
        )

    def _mounts(self, root: Path, disk: Path) -> str:
        own = root / "run/tierbench"
        files = {"/proc/meminfo": "meminfo", "/sys/devices/system/cpu/online": "cpus"} | {
            f"/proc/sys/{name}": f"sys/{name}" for name in _KERNEL if Path("/proc/sys", name).exists()
        }
        lines = [
            f"mount --bind '{self.control_plane.binaries}' '{own}/bin'",
            f"device=$(losetup --find --show --direct-io=on '{disk}')",
            f"mount -o noatime,discard $device '{root}/disk'",
            "losetup --detach $device",  # in effect when the mount ends
        ]
        for name in _ON_DISK:
            lines += [f"mkdir -p '{root}/disk/{name}'", f"mount --bind '{root}/disk/{name}' '{root}/{name}'"]
        lines += [f"mount --bind '{own}/{file}' {place}" for place, file in files.items()]
        lines += [f"mount --rbind '{root}/{name}' /{name}" for name in _OWN]
        return "\n".join([*lines, "mount --make-rshared /"]) + "\n"
