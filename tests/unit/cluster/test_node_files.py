"""The files that describe the hardware of a node to its daemons."""

import json
import tomllib

from tests.cluster import node_files
from tests.cluster.addresses import Addresses
from tests.cluster.profiles import Node

HOST = "MemTotal:       24684084 kB\nMemFree:        1 kB\n"


def test_node_has_the_memory_of_its_limit() -> None:
    assert node_files.meminfo(Node("a", memory=384 << 20), HOST) == "MemTotal:       393216 kB\nMemFree:        1 kB\n"


def test_node_without_a_limit_has_the_memory_of_the_host() -> None:
    assert node_files.meminfo(Node("a"), HOST) == HOST


def test_part_of_a_processor_is_reserved() -> None:
    configuration = json.loads(node_files.kubelet(Node("a", cpus=0.5), Addresses(0), "/tierbench/c/a"))
    assert configuration["systemReserved"] == {"cpu": "500m"}
    assert configuration["cgroupRoot"] == "/tierbench/c/a"


def test_containers_start_with_a_read_throttle() -> None:
    default = {"process": {"rlimits": [], "cwd": "/"}, "linux": {"resources": {"devices": ["kept"]}}}
    spec = json.loads(node_files.container(json.dumps(default), "7:3", 1000))
    throttle = {"throttleReadBpsDevice": [{"major": 7, "minor": 3, "rate": 1000}]}
    assert spec == {"process": {"cwd": "/"}, "linux": {"resources": {"devices": ["kept"], "blockIO": throttle}}}


def test_registry_is_reached_by_its_address_over_http() -> None:
    ((name, text),) = node_files.registry("198.18.0.254:5000").items()
    assert name == "registries/198.18.0.254:5000/hosts.toml"
    assert tomllib.loads(text) == {"host": {"http://198.18.0.254:5000": {"capabilities": ["pull", "resolve"]}}}


def test_pods_start_with_the_congestion_control_of_their_node() -> None:
    plugins = json.loads(node_files.cni("198.18.1.0/24", "reno"))["plugins"]
    tuned = [plugin["sysctl"] for plugin in plugins if plugin["type"] == "tuning"]
    assert tuned == [{"net.ipv4.tcp_congestion_control": "reno"}]
