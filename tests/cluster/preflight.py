"""Checks what the cluster needs from this machine, and reports everything that is missing, with what to do."""

import os
import re
import shutil
from pathlib import Path

from tests.cluster import cgroups, links
from tests.cluster.binaries import cache
from tests.cluster.errors import ClusterError
from tests.cluster.processes import output
from tests.cluster.profiles import Node

STATE = Path("/var/lib/tierbench-cluster")

_PROGRAMS = (
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
_ARCHITECTURES = ("x86_64", "aarch64")
_ALL_USERS = ["0", "0", "4294967295"]  # first user inside, first outside, number
_CONTROLLERS = {"cpu", "cpuset", "memory", "pids"}
_MEMORY = 7 << 30  # bytes that a machine of 8 GiB shows
_DISK = 3 << 30  # bytes
_DISK_TO_BUILD = 12 << 30  # bytes, half of it for the cache of the Go compiler
_INSTANCES = 1024  # inotify instances of this machine. A cluster of three nodes uses about 35, and Debian allows 128.
_INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")  # of all network namespaces


def check_name(name: str) -> None:
    """Checks that the cluster's name can be part of folder names."""
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?", name):
        raise ClusterError(f"--name {name!r}: write at most 32 lower-case letters, digits and '-'")


def check_root() -> None:
    """Checks for root outside of user namespaces. Namespaces, mounts and control groups need it."""
    if os.geteuid() != 0 or Path("/proc/self/uid_map").read_text().split() != _ALL_USERS:
        raise ClusterError(
            "the built-in cluster needs root: run this with sudo, or use CLUSTER=current with a cluster of yours"
        )


def check(nodes: list[Node], *, installed: bool = True) -> None:
    """Raises ClusterError with everything that is missing for these nodes. `installed` includes programs."""
    check_root()
    found = [*_hardware(), *_control_groups(nodes), *_inotify(), *_congestion(nodes), *_kernel(nodes)]
    found += _programs() if installed else []
    if found:
        lines = "".join(f"\n  - {one}" for one in found)
        raise ClusterError(f"the built-in cluster cannot run here (CLUSTER=current uses one of yours):{lines}")


def _programs() -> list[str]:
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    missing += [] if Path("/usr/lib/cni").is_dir() else ["the CNI plugins in /usr/lib/cni"]
    return [f"not installed: {', '.join(missing)}: run tools/setup"] if missing else []


def _hardware() -> list[str]:
    found = []
    if os.uname().machine not in _ARCHITECTURES:
        found.append(f"the processor is {os.uname().machine}: Kubernetes is built for {' and '.join(_ARCHITECTURES)}")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if memory < _MEMORY:
        found.append(f"{memory / 2**30:.1f} GiB of memory: {_MEMORY >> 30} GiB are needed")
    disk = _DISK if cache().exists() else _DISK_TO_BUILD
    for place in (STATE, cache()):
        free = shutil.disk_usage(next(folder for folder in (place, *place.parents) if folder.exists())).free
        if free < disk:
            found.append(f"{free / 2**30:.1f} GiB of disk are free for {place}: {disk >> 30} GiB are needed")
    return found


def _control_groups(nodes: list[Node]) -> list[str]:
    needed = set(_CONTROLLERS)
    if any(node.disk_read or node.stall for node in nodes):
        needed.add("io" if cgroups.version2() else "blkio")
    missing = needed - cgroups.controllers()
    found = [f"the kernel offers no control group '{one}' below {cgroups.MOUNT}: mount it" for one in sorted(missing)]
    if "memory" in missing:
        found[sorted(missing).index("memory")] = (
            "the kernel's memory controller is off: add cgroup_enable=memory to its command line "
            "(/etc/default/grub, or cmdline.txt on a Raspberry Pi) and restart"
        )
    refusal = cgroups.refusal()
    return [*found, refusal] if refusal else found


def _inotify() -> list[str]:
    if int(_INOTIFY.read_text()) >= _INSTANCES or os.access(_INOTIFY, os.W_OK):
        return []
    want = f"sysctl -w fs.inotify.max_user_instances={_INSTANCES}"
    return [f"{_INOTIFY.read_text().strip()} inotify instances, and no permission to raise them: {want} outside"]


def _congestion(nodes: list[Node]) -> list[str]:
    lacking = _not_allowed(nodes)
    if not lacking or os.access(_ALLOWED, os.W_OK):
        return []
    want = f'sysctl -w net.ipv4.tcp_allowed_congestion_control="{_ALLOWED.read_text().strip()} {" ".join(lacking)}"'
    return [f"the kernel does not allow the congestion control {', '.join(lacking)} to containers: {want} outside"]


def _not_allowed(nodes: list[Node]) -> list[str]:
    """Returns the nodes' algorithms that this machine's kernel allows only in the host's network namespace."""
    used = dict.fromkeys(node.congestion_control for node in nodes if node.machine == "namespaces")
    allowed = _ALLOWED.read_text().split() if _ALLOWED.exists() else []  # a container may lack the file in /proc
    return [algorithm for algorithm in used if allowed and algorithm not in allowed]


def raise_limits(nodes: list[Node]) -> None:
    """Raises the limits of inotify instances and congestion control until the machine restarts."""
    if int(_INOTIFY.read_text()) < _INSTANCES:
        _INOTIFY.write_text(str(_INSTANCES))
    lacking = _not_allowed(nodes)
    if lacking:
        try:
            _ALLOWED.write_text(" ".join([_ALLOWED.read_text().strip(), *lacking]))
        except OSError as error:
            known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().strip()
            message = (
                f"the kernel has no congestion control {', '.join(lacking)}: load its module, or use one of {known}"
            )
            raise ClusterError(message) from error


def _kernel(nodes: list[Node]) -> list[str]:
    """Tries the kernel's features in a network namespace. Skips programs that are not installed yet."""
    steps = {
        "network interfaces of type veth": "ip link add name probe0 type veth peer name probe1",
        "network interfaces of type bridge": "ip link add name probe2 type bridge",
        "loop devices": "losetup --find",
        "overlay file systems": "grep -qw overlay /proc/filesystems || modprobe overlay",
        f"overlay file systems in {STATE.parent} (in a container: mount a volume there)": _OVERLAY,
        "firewall on bridges": "test -d /proc/sys/net/bridge || modprobe br_netfilter",
        "firewall rules (iptables nat)": "iptables -t nat -A POSTROUTING -m comment --comment x -j MASQUERADE",
    }
    if any(node.link and node.machine == "namespaces" for node in nodes):
        steps["a token bucket (tc tbf)"] = "tc qdisc add dev probe0 root tbf rate 1mbit burst 256kb latency 50ms"
    if any(node.machine == "vm" or links.is_pumped(node.link) for node in nodes):
        steps["network interfaces of type tap: load the module tun"] = "ip tuntap add dev probe3 mode tap"
    script = "\n".join(
        f"! command -v {step.split()[0]} >/dev/null || ({step}) >/dev/null 2>&1 || echo '{what}'"
        for what, step in steps.items()
    )
    try:
        missing = output("unshare", "--net", "--mount", "sh", stdin=script).splitlines()
    except ClusterError as error:
        return [f"the kernel refuses a network namespace ({error}): this needs real root"]
    return [f"the kernel offers no {one}" for one in missing]


_OVERLAY = f"""cd $(mktemp --directory --tmpdir={STATE.parent}) && mkdir lower upper work merged
  mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged; done=$?
  umount merged; rm -r $PWD; exit $done"""
