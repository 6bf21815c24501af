"""The cluster works, and its nodes have the hardware that nodes.toml declares."""

import concurrent.futures
import json
import re
from dataclasses import replace

import pytest

from tests.cluster import Cluster, profiles, stalls
from tests.cluster.conftest import Probe
from tests.cluster.processes import wait
from tests.cluster.profiles import Link, Stall
from tests.cluster.stall_loop import STALLED
from tests.timeouts import SLOWNESS, TIMEOUT_FACTOR

MIB = 1 << 20
PROFILES = {node.name: node for node in profiles.load(profiles.DEFAULT)}
Probes = dict[str, Probe]

# A shell can read a server's response.
DOWNLOAD = "exec 3<>/dev/tcp/{host}/{port}; printf 'GET /{file} HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"


def make_file(probe: Probe, name: str, mebibytes: int) -> None:
    probe(f"head -c {mebibytes}M /dev/urandom > /data/{name}; sync /data/{name}")


def drop_from_cache(name: str) -> str:
    """Returns a command that removes the file from the page cache."""
    return f"dd of=/data/{name} oflag=nocache conv=notrunc,fdatasync count=0 status=none"


def cached_bytes(probe: Probe, name: str) -> int:
    """Returns the bytes of the file that are in the page cache."""
    return int(probe(f"fincore --bytes --noheadings --output RES /data/{name}"))


def test_nodes_are_ready_with_the_declared_capacity(cluster: Cluster, probes: Probes) -> None:
    assert cluster.ready()
    nodes = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    capacity = {node["metadata"]["name"]: node["status"]["capacity"] for node in nodes}
    assert capacity["jetson-1"]["memory"] == "384Mi"
    assert capacity["jetson-1"]["cpu"] == "1"
    assert capacity["cloud-1"]["memory"] != "384Mi"


def test_every_access_to_a_server_works(probes: Probes) -> None:
    server, client = probes["cloud-1"], probes["user-1"]
    server("echo found > /data/smoke-page")
    host = f"{server.node}.{server.namespace}.svc.cluster.local"
    assert re.match(r"198\.18\.", client(f"getent hosts {host}"))
    port = server.kubectl("get", "service", server.node, "-o", "jsonpath={.spec.ports[0].nodePort}")
    other = server.cluster.node("jetson-1").address
    for way in ((host, 80), (server.address, 8080), (server.cluster.node("cloud-1").address, port), (other, port)):
        assert client(DOWNLOAD.format(host=way[0], port=way[1], file="smoke-page")).endswith("found\n"), way


def test_connections_begin_with_the_congestion_control_of_their_node(cluster: Cluster, probes: Probes) -> None:
    file = "/proc/sys/net/ipv4/tcp_congestion_control"
    for name, probe in probes.items():
        declared = PROFILES[name].congestion_control
        assert probe(f"cat {file}").strip() == declared
        assert cluster.node(name).machine.output("cat", file).strip() == declared


@pytest.mark.release
def test_host_path_is_another_folder_on_each_node(probes: Probes) -> None:
    for name, probe in probes.items():
        probe(f"echo {name} > /data/smoke-node")
    assert {name: probe("cat /data/smoke-node").strip() for name, probe in probes.items()} == {
        name: name for name in probes
    }


@pytest.mark.release
def test_page_cache_of_a_small_node_is_bounded(probes: Probes) -> None:
    def cached_after_reading(probe: Probe) -> int:
        probe("cat /data/smoke-large > /dev/null")
        return cached_bytes(probe, "smoke-large")

    for probe in (probes["cloud-1"], probes["jetson-1"]):
        make_file(probe, "smoke-large", 600)
    assert cached_after_reading(probes["jetson-1"]) <= 384 * MIB
    # some hosts reclaim idle pages within seconds, so one success is enough
    wait(lambda: cached_after_reading(probes["cloud-1"]) > 500 * MIB, "a page cache of 500 MiB", 30 * TIMEOUT_FACTOR)


@pytest.mark.measures
@pytest.mark.release
def test_disk_has_the_declared_rate(probes: Probes) -> None:
    make_file(probes["jetson-1"], "smoke-disk", 160)
    read = f"{drop_from_cache('smoke-disk')}; cat /data/smoke-disk > /dev/null"
    seconds = min(probes["jetson-1"].seconds(read) for _ in range(3))
    declared = PROFILES["jetson-1"].disk_read
    assert declared
    assert 0.7 * declared / SLOWNESS < 160 * MIB / seconds < 1.2 * declared


@pytest.mark.measures
@pytest.mark.release
def test_link_has_the_declared_rate(probes: Probes) -> None:
    make_file(probes["cloud-1"], "smoke-link", 200)
    probes["cloud-1"]("cat /data/smoke-link > /dev/null")
    download = DOWNLOAD.format(host=probes["cloud-1"].address, port=8080, file="smoke-link")
    seconds = min(probes["user-1"].seconds(f"({download}) > /dev/null") for _ in range(2))
    assert PROFILES["cloud-1"].link == Link("800mbit")
    assert 0.6 / SLOWNESS < 200 * MIB * 8 / seconds / 800e6 < 1.1


@pytest.mark.measures
@pytest.mark.release
def test_stalled_disk_blocks_reads_except_from_the_page_cache(cluster: Cluster, probes: Probes) -> None:
    probe, node = probes["jetson-1"], cluster.node("jetson-1")
    make_file(probe, "smoke-cached", 1)
    make_file(probe, "smoke-dropped", 8)
    cached = "for i in {1..20}; do cat /data/smoke-cached; done > /dev/null"

    def reading() -> bool:
        return any(process.name == "cat" for process in cluster.pod_processes(probe.namespace, probe.node))

    def cached_is_read_while_dropped_is_held() -> bool:
        probe(drop_from_cache("smoke-dropped"))
        probe(cached)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            cluster.cgroups.throttle("jetson-1", node.disk, STALLED)
            try:
                read = pool.submit(probe.seconds, "cat /data/smoke-dropped > /dev/null")
                wait(reading, "start of the read", 10 * TIMEOUT_FACTOR)
                answer = probe(f"timeout --signal=KILL {SLOWNESS} bash -c '{cached}' && echo read || echo held")
                assert not concurrent.futures.wait([read], timeout=1.5).done
            finally:
                cluster.cgroups.throttle("jetson-1", node.disk, node.profile.disk_read)
            assert read.result(timeout=5 * TIMEOUT_FACTOR) > 1.5
        return answer.strip() == "read"

    # some hosts reclaim idle pages within seconds, so one success is enough
    wait(cached_is_read_while_dropped_is_held, "reads from the page cache of a stalled disk", 60 * TIMEOUT_FACTOR)


@pytest.mark.measures
@pytest.mark.release
def test_disk_stalls_after_the_declared_bytes_until_stalls_are_off(cluster: Cluster, probes: Probes) -> None:
    probe, node, control_plane = probes["jetson-1"], cluster.node("jetson-1"), cluster.control_plane.machine
    length = 3 * SLOWNESS
    worn = replace(node, profile=replace(node.profile, stall=Stall(every=64 * MIB, length=length)))
    make_file(probe, "smoke-stalled", 96)
    read = "cat /data/smoke-stalled > /dev/null"
    stalls.switch(True, control_plane, [worn])
    try:
        probe(drop_from_cache("smoke-stalled"))
        assert probe.seconds(read) > length
        # These bytes are less than what causes the next stall.
        assert probe.seconds("head --bytes=8M /data/smoke-stalled > /dev/null") < length
    finally:
        stalls.switch(False, control_plane, [worn])
    probe(drop_from_cache("smoke-stalled"))
    assert probe.seconds(read) < length


@pytest.mark.release
def test_stalls_need_a_node_that_declares_them(cluster: Cluster) -> None:
    cluster.stalls(True)
    try:
        daemon = cluster.control_plane.machine.daemon
        assert daemon("stalls-jetson-1")
        assert not daemon("stalls-cloud-1")
    finally:
        cluster.stalls(False)
    assert not daemon("stalls-jetson-1")


@pytest.mark.release
def test_logs_and_processes_of_a_pod_can_be_read(cluster: Cluster, probes: Probes) -> None:
    probe = probes["cloud-1"]
    assert "start worker process" in probe.kubectl("logs", probe.node, "--container=nginx")
    names = {process.name for process in cluster.pod_processes(probe.namespace, probe.node)}
    assert {"nginx", "sleep", "pause"} <= names


@pytest.mark.release
def test_default_service_account_cannot_read_secrets(cluster: Cluster, probes: Probes) -> None:
    token = "cat /var/run/secrets/kubernetes.io/serviceaccount/token"
    assert probes["user-1"](token).count(".") == 2
    rights = cluster.kubectl("auth", "can-i", "--list", "--as=system:serviceaccount:default:default")
    assert "selfsubjectreviews" in rights
    assert "secrets" not in rights
