"""Manages the control groups /tierbench/CLUSTER/daemons for daemons, and /tierbench/CLUSTER/NODE for pods.

Version 1 has a folder for each controller, and version 2 has one folder. File names differ. A read throttle of version
1 applies only to its own group, so each container gets one.
"""

import contextlib
import errno
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from tests.cluster.processes import Process, wait
from tests.cluster.profiles import Node

MOUNT = Path("/sys/fs/cgroup")
PERIOD_MICROSECONDS = 100_000
# The kubelet needs these controllers of version 2 if the kernel has them. The cluster itself needs io.
_DELEGATED = {"cpuset", "cpu", "io", "memory", "hugetlb", "pids"}


def version2() -> bool:
    return (MOUNT / "cgroup.controllers").exists()


def controllers() -> set[str]:
    """Returns the controllers that this machine offers."""
    if version2():
        return set((MOUNT / "cgroup.controllers").read_text().split())
    return {path.name for path in MOUNT.iterdir() if (path / "cgroup.procs").exists() and path.name != "unified"}


def refusal() -> str:
    """Returns why groups cannot be created and what to do, or an empty string if they can be created."""
    probe = Cgroups(f"probe-{os.getpid()}")
    try:
        probe.make_group("node")
    except OSError as error:
        if error.errno == errno.EBUSY:
            return (
                f"{MOUNT} is the root of a control-group namespace, as in a container, and has processes of its own: "
                "start the container with the host's control groups (--cgroupns=host), privileged"
            )
        reason = f"{error.strerror}: {error.filename}"
        return f"no permission to create control groups ({reason}): a container has to be privileged"
    finally:
        probe.remove()
    return ""


def of_clusters(names: str) -> list[str]:
    """Returns all groups of clusters whose names match a pattern. Other clusters may change meanwhile."""
    return [folder for folder, _, _ in os.walk(MOUNT) if fnmatch(folder, f"*/tierbench/{names}")]


@dataclass(frozen=True)
class Cgroups:
    """The control groups of the cluster with this name."""

    cluster: str

    def path(self, node: str) -> str:
        """Returns the path of the node's group in the kubelet's notation."""
        return f"/tierbench/{self.cluster}/{node}"

    def make(self, node: Node, disk: str) -> None:
        """Creates the group of the node's pods with the node's limits. `disk` is MAJOR:MINOR."""
        self.make_group(node.name)
        if node.memory:
            self._write(node.name, "memory", ("memory.limit_in_bytes", "memory.max"), str(node.memory))
        if node.cpus:
            quota = int(node.cpus * PERIOD_MICROSECONDS)
            if version2():
                self._write(node.name, "cpu", ("", "cpu.max"), f"{quota} {PERIOD_MICROSECONDS}")
            else:
                self._write(node.name, "cpu", ("cpu.cfs_period_us", ""), str(PERIOD_MICROSECONDS))
                self._write(node.name, "cpu", ("cpu.cfs_quota_us", ""), str(quota))
        if node.disk_read and version2():
            self.throttle(node.name, disk, node.disk_read)

    def throttle(self, node: str, disk: str, rate: int | None) -> None:
        """Limits reads of each of the node's containers from the disk (bytes per second). None removes the limit."""
        if version2():
            self._write(node, "io", ("", "io.max"), f"{disk} rbps={rate or 'max'}")
            return
        for folder, _, _ in os.walk(self._folder("blkio", node)):
            with contextlib.suppress(FileNotFoundError):  # the container has just ended
                Path(folder, "blkio.throttle.read_bps_device").write_text(f"{disk} {rate or 0}")

    def enter_daemons(self) -> None:
        """Moves the calling process into the group of the cluster's daemons."""
        self.enter("daemons")

    def enter(self, group: str) -> None:
        """Moves the calling process into a group, which may be within the group of a node."""
        for folder in self.make_group(group):
            (folder / "cgroup.procs").write_text("0")

    def pod(self, node: str, uid: str) -> list[Process]:
        """Returns every process of the pod, including the pause process."""
        names = (f"pod{uid}", f"pod{uid.replace('-', '_')}")
        tree = self._folder("memory", node)
        folders = (Path(folder) for folder, _, _ in os.walk(tree) if any(name in Path(folder).parts for name in names))
        return [process for folder in folders for process in _processes(folder)]

    def remove(self) -> None:
        """Kills every process of the cluster, and removes its groups."""
        # runc also creates groups of version 2. Systems with version 1 mount them as `unified`.
        trees = [top / "tierbench" / self.cluster for top in (*self._hierarchies(), MOUNT / "unified")]
        wait(lambda: all(_remove(tree) for tree in trees), f"end of the processes of cluster {self.cluster}", 20)
        for tree in trees:
            with suppress(OSError):  # other clusters exist
                tree.parent.rmdir()

    def _hierarchies(self) -> list[Path]:
        if version2():
            return [MOUNT]
        return sorted({(MOUNT / name).resolve() for name in controllers()})

    def _folder(self, controller: str, group: str) -> Path:
        top = MOUNT if version2() else MOUNT / controller
        return top / "tierbench" / self.cluster / group

    def make_group(self, group: str) -> list[Path]:
        """Creates the cluster's group of this name, and returns its folder in each hierarchy."""
        made = []
        for top in self._hierarchies():
            folder = top
            for name in ("tierbench", self.cluster, *group.split("/")):
                parent, folder = folder, folder / name
                if version2():
                    wanted = sorted(_DELEGATED & controllers())
                    (parent / "cgroup.subtree_control").write_text(" ".join(f"+{one}" for one in wanted))
                folder.mkdir(exist_ok=True)
                for file in ("cpuset.cpus", "cpuset.mems") if top.name == "cpuset" else ():
                    (folder / file).write_text((parent / file).read_text())
            made.append(folder)
        return made

    def _write(self, group: str, controller: str, files: tuple[str, str], value: str) -> None:
        (self._folder(controller, group) / files[version2()]).write_text(value)


def _processes(folder: Path) -> list[Process]:
    try:
        found = map(int, (folder / "cgroup.procs").read_text().split())
        return [Process(pid) for pid in found if pid]  # 0 is outside of this PID namespace
    except OSError:  # the group has just been removed
        return []


def _remove(tree: Path) -> bool:
    for folder, _, _ in os.walk(tree, topdown=False):
        for process in _processes(Path(folder)):
            process.send(signal.SIGKILL)
        with suppress(OSError):  # while processes are still ending
            Path(folder).rmdir()
    return not tree.exists()
