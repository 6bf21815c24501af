"""What the cluster needs of this machine, each thing checked, with what to do when it is missing."""

import os
import re
import shutil
from pathlib import Path

from tests.cluster import cgroups
from tests.cluster.errors import ClusterError
from tests.cluster.processes import output
from tests.cluster.profiles import Node

_PROGRAMS = (
    "etcd",
    "containerd",
    "ctr",
    "runc",
    "iptables",
    "conntrack",
    "ip",
    "tc",
    "nsenter",
    "unshare",
    "openssl",
    "buildah",
    "losetup",
    "mkfs.ext4",
)
_ALL_USERS = ["0", "0", "4294967295"]  # first user inside, first outside, how many
_CONTROLLERS = {"cpu", "cpuset", "memory", "pids"}


def check_name(name: str) -> None:
    """A cluster's name is part of folder names."""
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?", name):
        raise ClusterError(f"--name {name!r}: write at most 32 lower-case letters, digits and '-'")


def check_root() -> None:
    """Namespaces, mounts and control groups belong to root; one in a user namespace is none."""
    if os.geteuid() != 0 or Path("/proc/self/uid_map").read_text().split() != _ALL_USERS:
        raise ClusterError(
            "the built-in cluster needs root: run this with sudo, or use CLUSTER=current with a cluster of yours"
        )


def check(nodes: list[Node]) -> None:
    """Raises ClusterError for the first thing that is missing for these nodes."""
    check_root()
    for program in _PROGRAMS:
        if shutil.which(program) is None:
            raise ClusterError(f"no program '{program}': run tools/setup")
    if not Path("/usr/lib/cni").is_dir():
        raise ClusterError("no CNI plugins in /usr/lib/cni: run tools/setup")
    needed = _CONTROLLERS | (
        {"io" if cgroups.version2() else "blkio"} if any(node.disk_read or node.stall for node in nodes) else set()
    )
    missing = needed - cgroups.controllers()
    if missing:
        raise ClusterError(
            f"the kernel offers no control group '{min(missing)}' below {cgroups.MOUNT}: mount or enable it"
        )
    _try_kernel(any(node.link for node in nodes))


def _try_kernel(shaped: bool) -> None:
    """Try in a network namespace what the cluster is built from; the first refusal names what the kernel lacks."""
    steps = {
        "network interfaces of type veth": "ip link add name probe0 type veth peer name probe1",
        "network interfaces of type bridge": "ip link add name probe2 type bridge",
        "loop devices": "losetup --find",
        "overlay file systems": "grep -qw overlay /proc/filesystems || modprobe overlay",
        "firewall on bridges": "test -d /proc/sys/net/bridge || modprobe br_netfilter",
        "firewall rules (iptables nat)": "iptables -t nat -A POSTROUTING -m comment --comment x -j MASQUERADE",
    }
    if shaped:
        steps["a token bucket (tc tbf)"] = "tc qdisc add dev probe0 root tbf rate 1mbit burst 256kb latency 50ms"
    script = "\n".join(f"({step}) >/dev/null 2>&1 || {{ echo '{what}'; exit; }}" for what, step in steps.items())
    try:
        missing = output("unshare", "--net", "sh", stdin=script).strip()
    except ClusterError as error:
        raise ClusterError(f"the kernel refuses a network namespace ({error}): this needs real root") from error
    if missing:
        raise ClusterError(f"the kernel offers no {missing}: the built-in cluster cannot run here; use CLUSTER=current")
