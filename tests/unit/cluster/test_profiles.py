"""nodes.toml: what it may say, and what is said of what it may not."""

import pytest

from tests.cluster import ClusterError, profiles
from tests.cluster.profiles import Node, Stall


def test_default_cluster_is_three_nodes_of_three_kinds() -> None:
    nodes = profiles.load(profiles.DEFAULT)
    assert [(node.name, node.labels["hw"]) for node in nodes] == [
        ("cloud-1", "cloud"),
        ("jetson-1", "jetson-nano"),
        ("user-1", "user"),
    ]


def test_every_key_is_read() -> None:
    text = """
        [[node]]
        name = "pi-1"
        labels = { hw = "raspberry-pi-4" }
        memory = "1Gi"
        cpus = 1.5
        disk_size = "20Gi"
        disk_read = "40Mi"
        link = "100mbit"
        stall = { every = "1Gi", length = 2.5 }
    """
    assert profiles.parse(text, "f") == [
        Node(
            name="pi-1",
            labels={"hw": "raspberry-pi-4"},
            memory=1 << 30,
            cpus=1.5,
            disk_size=20 << 30,
            disk_read=40 << 20,
            link="100mbit",
            stall=Stall(1 << 30, 2.5),
        )
    ]


def test_what_is_left_out_is_not_limited() -> None:
    assert profiles.parse('[[node]]\nname = "a"', "f") == [Node(name="a")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f: no node; write a table [[node]]"),
        ("[[node", "f: not TOML"),
        ("nodes = 3", "f: unknown key 'nodes'"),
        ("[[node]]", "f: node 1: name = None"),
        ('[[node]]\nname = "Cloud"', "f: node 1: name = 'Cloud': write lower-case"),
        ('[[node]]\nname = "a"\n[[node]]\nname = "a"', "two nodes are named 'a'"),
        ('[[node]]\nname = "a"\nram = 1', "unknown key 'ram'; known are name, labels, memory"),
        ('[[node]]\nname = "a"\nlabels = { hw = 1 }', "f: node 1 (a): labels: write a table of texts"),
        ('[[node]]\nname = "a"\nmemory = "384MB"', "memory = '384MB': write a whole number above 0 with Ki, Mi or Gi"),
        ('[[node]]\nname = "a"\nmemory = "1Mi"', "no pod runs in less than 64Mi"),
        ('[[node]]\nname = "a"\ndisk_read = "0Mi"', "disk_read = '0Mi': write a whole number above 0"),
        ('[[node]]\nname = "a"\ncpus = true', "cpus = True: write a number above 0"),
        ('[[node]]\nname = "a"\ncpus = -1', "cpus = -1: write a number above 0"),
        ('[[node]]\nname = "a"\nlink = "1Gbps"', "link = '1Gbps': write a whole number with kbit, mbit or gbit"),
        ('[[node]]\nname = "a"\nstall = { every = "1Mi" }', "stall: write bytes and seconds"),
        (
            '[[node]]\nname = "a"\nstall = { every = "2s", length = 2 }',
            "stall.every = '2s': write a whole number above 0",
        ),
        ("[[node]]\nname = 'a'\n" * 16, "16 nodes; at most 15 have addresses"),
    ],
)
def test_error_says_where_and_what_to_write(text: str, message: str) -> None:
    with pytest.raises(ClusterError) as caught:
        profiles.parse(text, "f")
    assert message in str(caught.value)


def test_missing_file_is_named() -> None:
    with pytest.raises(ClusterError, match=r"nowhere.toml: No such file.*--nodes"):
        profiles.load(profiles.DEFAULT.with_name("nowhere.toml"))
