"""A second cluster runs next to the first, survives crashes, and leaves nothing behind."""

import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster, ClusterError, cgroups
from tests.cluster.network import owner
from tests.cluster.processes import output, processes, wait
from tests.timeouts import TIMEOUT_FACTOR

pytestmark = pytest.mark.release
NODES = '[[node]]\nname = "one"\nmemory = "512Mi"\ndisk_size = "1Gi"\ncongestion_control = "reno"\n'


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    file = tmp_path / "nodes.toml"
    file.write_text(NODES)
    return file


@pytest.fixture
def second(cluster: Cluster) -> Iterator[Cluster]:
    second = Cluster(f"life-{secrets.token_hex(3)}")
    yield second
    second.down()


def host_objects(cluster: Cluster) -> list[str]:
    """Returns the objects of the cluster that are visible on this machine."""
    found = [str(cluster.folder)] if cluster.folder.exists() else []
    found += cgroups.of_clusters(cluster.name)
    found += [link.name for link in Path("/sys/class/net").iterdir() if owner(link.name) == cluster.name]
    found += [line for line in output("losetup", "--list", "--noheadings").splitlines() if f"/{cluster.name}/" in line]
    found += [line for line in Path("/proc/self/mounts").read_text().splitlines() if f"/{cluster.name}/" in line]
    return found + [process.name for process in processes() if f"/{cluster.name}/" in " ".join(process.command)]


def congestion_control(cluster: Cluster) -> str:
    """Returns the default congestion control of the node's connections."""
    return cluster.node("one").machine.output("cat", "/proc/sys/net/ipv4/tcp_congestion_control").strip()


def wait_until_ready(cluster: Cluster) -> None:
    """Waits for nodes. On a busy machine heartbeats are late while another cluster starts."""
    wait(cluster.ready, f"every node of {cluster.name} to be Ready", 60 * TIMEOUT_FACTOR)


def test_second_cluster_survives_crashes_and_leaves_nothing_behind(
    cluster: Cluster, second: Cluster, nodes: Path
) -> None:
    assert second.up(nodes)
    assert second.addresses != cluster.addresses
    wait_until_ready(cluster)
    assert second.ready()
    assert congestion_control(second) == "reno"  # every kernel has reno, and it is hardly ever the default
    assert host_objects(second)
    assert not second.up(nodes)

    second.stop("apiserver")
    second.signal("one", signal.SIGKILL)
    assert second.up(nodes)
    assert second.ready()

    tokens = second.folder / "tokens.csv"
    second.stop("apiserver")
    tokens.rename(second.folder / "lost.csv")
    with pytest.raises(ClusterError, match=r"(?s)apiserver has ended; the last lines of .*tokens\.csv"):
        second.up(nodes)
    (second.folder / "lost.csv").rename(tokens)
    assert second.up(nodes)

    control_plane = second.control_plane.machine
    control_plane.kill()
    assert second.up(nodes)
    assert second.ready()

    assert second.down()
    assert host_objects(second) == []
    assert not second.down()
    wait_until_ready(cluster)


def test_a_running_cluster_refuses_other_nodes(cluster: Cluster, nodes: Path) -> None:
    with pytest.raises(ClusterError, match="is up with other nodes"):
        cluster.up(nodes)


def test_a_missing_cluster_is_reported() -> None:
    nowhere = Cluster("nowhere")
    with pytest.raises(ClusterError, match="there is no cluster 'nowhere'"):
        nowhere.status()
    assert not nowhere.down()
