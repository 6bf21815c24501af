"""A node in a virtual machine has the declared hardware, survives a power cut, and leaves nothing behind."""

import json
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster, ClusterError
from tests.cluster.node import DAEMONS
from tests.cluster.processes import Process, wait
from tests.cluster.test_life import host_objects
from tests.cluster.vm import Debian, UserNetwork, VirtualMachine, free_port
from tests.vm.conftest import FOLDER

NODES = FOLDER / "amd64.toml"
ROOT = FOLDER.parents[1]
MIB = 1 << 20


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(f"vm-{secrets.token_hex(3)}")
    try:
        cluster.up(NODES)
        yield cluster
    finally:
        cluster.down()
    assert host_objects(cluster) == []


def test_node_has_the_labels_and_the_hardware_declared(cluster: Cluster) -> None:
    node = json.loads(cluster.kubectl("get", "node", "edge-1", "-o", "json"))
    assert node["metadata"]["labels"]["hw"] == "edge"
    assert node["metadata"]["labels"]["kubernetes.io/arch"] == "amd64"
    assert node["status"]["capacity"]["cpu"] == "2"
    assert 1800 * MIB < int(node["status"]["capacity"]["memory"].removesuffix("Ki")) << 10 <= 2048 * MIB
    assert "cloud" in node["status"]["nodeInfo"]["kernelVersion"]


def test_link_is_slow_and_loses_packets_in_each_direction(cluster: Cluster) -> None:
    near = cluster.node("cloud-1").machine
    statistics = near.output("ping", "-q", "-i", "0.02", "-c", "500", cluster.node("edge-1").address)
    lost = re.search(r"([0-9.]+)% packet loss", statistics)
    times = re.search(r"= ([0-9.]+)/([0-9.]+)/", statistics)
    assert lost
    assert times
    assert 0.2 < float(lost[1]) < 6, statistics  # 1% in each direction
    assert 34 < float(times[1]) < 60, statistics  # 20 ms in each direction, ±2 ms for most
    assert float(times[2]) > 39, statistics


def test_machine_has_its_own_page_cache(cluster: Cluster) -> None:
    machine = cluster.node("edge-1").machine

    def cached() -> int:
        (kibibytes,) = re.findall(r"^Cached: +(\d+) kB", machine.output("cat", "/proc/meminfo"), re.MULTILINE)
        return int(kibibytes) << 10

    machine.run("sh", "-c", "head -c 256M /dev/zero >/var/lib/tierbench/large; sync")
    assert cached() > 256 * MIB
    machine.run("sh", "-c", "echo 1 >/proc/sys/vm/drop_caches")
    assert cached() < 256 * MIB
    machine.run("sh", "-c", "cat /var/lib/tierbench/large >/dev/null")
    assert cached() > 256 * MIB


def test_daemons_receive_signals(cluster: Cluster) -> None:
    machine = cluster.node("edge-1").machine
    cluster.signal("edge-1/kube-proxy", signal.SIGSTOP)
    assert machine.output("ps", "-C", "kube-proxy", "-o", "stat=").startswith("T")
    cluster.signal("edge-1/kube-proxy", signal.SIGCONT)
    cluster.stop("edge-1/kube-proxy")
    assert ("edge-1/kube-proxy", False) in cluster.status()
    cluster.start("edge-1/kube-proxy")
    assert ("edge-1/kube-proxy", True) in cluster.status()


def test_node_survives_a_power_cut(cluster: Cluster) -> None:
    machine = cluster.node("edge-1").machine
    machine.run("sh", "-c", "echo kept >/var/lib/tierbench/kept; sync")
    machine.run("sh", "-c", "echo lost >/run/lost")
    cluster.signal("edge-1", signal.SIGKILL)
    down = [(f"edge-1/{daemon}", False) for daemon in DAEMONS]
    wait(lambda: set(down) <= set(cluster.status()), "the end of the daemons on the node", 10)
    wait(lambda: not cluster.ready(), "the node to become not ready", 120)
    assert cluster.up(NODES)
    assert cluster.ready()
    assert machine.output("cat", "/var/lib/tierbench/kept") == "kept\n"
    with pytest.raises(ClusterError, match="No such file"):
        machine.output("cat", "/run/lost")


def test_crash_during_boot_leaves_nothing_behind(cluster: Cluster) -> None:
    other = Cluster(f"vm-{secrets.token_hex(3)}")
    command = [sys.executable, "-m", "tests.cluster", "--name", other.name, "up", "--nodes", str(NODES)]
    with subprocess.Popen(command, cwd=ROOT) as up:
        try:
            wait(lambda: bool(_booting(other)), "qemu", 120)
        finally:
            up.kill()
    assert host_objects(other)
    other.down()
    assert host_objects(other) == []
    assert cluster.ready()


def _booting(cluster: Cluster) -> Process | None:
    try:
        return cluster.node("edge-1").machine.init
    except ClusterError:
        return None


def test_machine_that_does_not_boot_shows_the_end_of_its_console(tmp_path: Path) -> None:
    disk, parameters = Debian("trixie", "amd64").disk(), ("root=/nowhere", "rootdelay=1", "panic=1")
    machine = VirtualMachine("broken", tmp_path, disk, UserNetwork(free_port()), parameters=parameters)
    with pytest.raises(ClusterError, match=r"broken ended while it booted; the end of its console(.|\n)*/nowhere"):
        machine.boot()
    assert machine.process is None
