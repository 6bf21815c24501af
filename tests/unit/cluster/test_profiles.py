"""nodes.toml: valid files, and the messages about invalid ones."""

import pytest

from images.architectures import host
from tests.cluster import ClusterError, profiles
from tests.cluster.profiles import Link, Node, Stall
from tests.cluster.vm import BOARDS


def test_default_cluster_has_three_nodes_of_different_hardware() -> None:
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
        congestion_control = "bbr"
    """
    assert profiles.parse(text, "f") == [
        Node(
            name="pi-1",
            labels={"hw": "raspberry-pi-4"},
            memory=1 << 30,
            cpus=1.5,
            disk_size=20 << 30,
            disk_read=40 << 20,
            link=Link("100mbit"),
            stall=Stall(1 << 30, 2.5),
            congestion_control="bbr",
        )
    ]


def test_machine_may_be_virtual_and_of_another_architecture() -> None:
    text = '[[node]]\nname = "pi-1"\nmachine = "vm"\narch = "arm64"\nmemory = "2Gi"\ncpus = 4'
    (node,) = profiles.parse(text, "f")
    assert node == Node(name="pi-1", machine="vm", arch="arm64", memory=2 << 30, cpus=4)
    assert node.architecture.platform == "linux/arm64"


def test_clock_of_a_virtual_machine_may_be_off() -> None:
    text = '[[node]]\nname = "a"\nmachine = "vm"\nmemory = "2Gi"\nclock = "{}"'
    found = [profiles.parse(text.format(clock), "f")[0].clock for clock in ("-1h", "+2m", "-30s", "+0s")]
    assert found == [-3600, 120, -30, 0]


def test_link_may_have_delay_and_loss() -> None:
    text = '[[node]]\nname = "a"\nlink = { rate = "100mbit", delay = "20ms", jitter = "2ms", loss = "0.1%" }'
    assert profiles.parse(text, "f")[0].link == Link("100mbit", "20ms", "2ms", "0.1%")


def test_link_may_differ_in_the_other_direction() -> None:
    text = '[[node]]\nname = "a"\nlink = { rate = "12mbit", delay = "20ms", down = { rate = "43mbit" } }'
    link = profiles.parse(text, "f")[0].link
    assert link == Link("12mbit", "20ms", down=Link("43mbit"))
    assert link.emulated
    assert [one.rate for one in link.directions] == ["12mbit", "43mbit"]
    assert [one.rate for one in Link("5mbit").directions] == ["5mbit", "5mbit"]


def test_trace_of_a_link_is_next_to_the_file() -> None:
    text = '[[node]]\nname = "a"\nlink = { trace = "up.csv", queue = "200ms", down = { trace = "down.csv" } }'
    link = profiles.parse(text, "/examples/nodes.toml")[0].link
    assert link == Link(trace="/examples/up.csv", queue="200ms", down=Link(trace="/examples/down.csv"))
    assert link.recorded
    assert link.emulated


def test_omitted_key_means_no_limit() -> None:
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
        ('[[node]]\nname = "a"\nram = 1', "unknown key 'ram'; known are name, machine, arch, labels"),
        ('[[node]]\nname = "a"\nlabels = { hw = 1 }', "f: node 1 (a): labels: write a table of texts"),
        ('[[node]]\nname = "a"\nmemory = "384MB"', "memory = '384MB': write a whole number above 0 with Ki, Mi or Gi"),
        ('[[node]]\nname = "a"\nmemory = "1Mi"', "no pod runs in less than 64Mi"),
        ('[[node]]\nname = "a"\ndisk_read = "0Mi"', "disk_read = '0Mi': write a whole number above 0"),
        ('[[node]]\nname = "a"\ncpus = true', "cpus = True: write a number above 0"),
        ('[[node]]\nname = "a"\ncpus = -1', "cpus = -1: write a number above 0"),
        ('[[node]]\nname = "a"\ncongestion_control = "BBR v3"', "'BBR v3': write the name of an algorithm, such as"),
        ('[[node]]\nname = "a"\nlink = "1Gbps"', "link = '1Gbps': write a whole number with kbit, mbit or gbit"),
        (
            '[[node]]\nname = "a"\nlink = { rate = "1mbit", delay = 20 }',
            "link.delay = 20: write a number with us, ms or s",
        ),
        ('[[node]]\nname = "a"\nlink = { jitter = "2ms" }', "link.jitter: write the delay too"),
        (
            '[[node]]\nname = "a"\nlink = { delay = "1ms", jitter = "2ms" }',
            'link.jitter = "2ms": write at most the delay, 1ms',
        ),
        ('[[node]]\nname = "a"\nlink = { loss = "100%" }', "link.loss = '100%': write a number below 100 with %"),
        (
            '[[node]]\nname = "a"\nlink = { delay = "1ms", down = { latency = "2ms" } }',
            "link.down: write some of rate, delay, jitter, loss, queue, trace, such as",
        ),
        ('[[node]]\nname = "a"\nlink = { rate = "1mbit", down = "2mbit" }', "link.down: write some of rate"),
        (
            '[[node]]\nname = "a"\nlink = { latency = "2ms" }',
            "link: write some of rate, delay, jitter, loss, queue, t",
        ),
        ('[[node]]\nname = "a"\nlink = {}', "link: write some of rate, delay, jitter, loss, queue, trace, such as"),
        ('[[node]]\nname = "a"\nlink = { delay = "2ms", queue = "9ms" }', "link.queue: packets wait for a rate"),
        ('[[node]]\nname = "a"\nlink = { rate = "1mbit", trace = "a" }', "link: a trace is a rate: leave out"),
        ('[[node]]\nname = "a"\nlink = { trace = 3 }', "link.trace = 3: write the name of a file next"),
        (
            '[[node]]\nname = "a"\nmachine = "vm"\nmemory = "1Gi"\nlink = { trace = "a" }',
            "link.trace: netem knows no traces",
        ),
        ('[[node]]\nname = "a"\nclock = "-1h"', "clock: only a vm has a clock of its own"),
        ('[[node]]\nname = "a"\nclock = "1h"', "clock = '1h': write how far it is ahead or behind in s, m or h"),
        ('[[node]]\nname = "a"\nmachine = "docker"', "machine = 'docker': known are namespaces, vm"),
        ('[[node]]\nname = "a"\nmachine = "vm"\narch = "mips"', "arch = 'mips': known are amd64, arm64"),
        ('[[node]]\nname = "a"\nmachine = "vm"', 'a vm has memory of its own: write how much, such as memory = "2Gi"'),
        ('[[node]]\nname = "a"\nmachine = "vm"\nmemory = "64Mi"', "memory = '64Mi': no pod runs in less than 512Mi"),
        ('[[node]]\nname = "a"\nmachine = "vm"\nmemory = "1Gi"\ncpus = 0.5', "cpus = 0.5: a vm has whole processors"),
        (
            '[[node]]\nname = "a"\nmachine = "vm"\nmemory = "1Gi"\nstall = { every = "1Mi", length = 1 }',
            "stall: the disk of a vm cannot stall",
        ),
        ('[[node]]\nname = "a"\nstall = { every = "1Mi" }', "stall: write bytes and seconds"),
        (
            '[[node]]\nname = "a"\nstall = { every = "2s", length = 2 }',
            "stall.every = '2s': write a whole number above 0",
        ),
        ("[[node]]\nname = 'a'\n" * 16, "16 nodes; at most 15 have addresses"),
    ],
)
def test_error_names_the_key_and_a_valid_value(text: str, message: str) -> None:
    with pytest.raises(ClusterError) as caught:
        profiles.parse(text, "f")
    assert message in str(caught.value)


def test_node_in_namespaces_has_the_architecture_of_this_machine() -> None:
    other = next(name for name in BOARDS if name != host().name)
    with pytest.raises(ClusterError, match=f'arch = "{other}" is not this machine\'s: write machine = "vm" as well'):
        profiles.parse(f'[[node]]\nname = "a"\narch = "{other}"', "f")


def test_missing_file_is_named() -> None:
    with pytest.raises(ClusterError, match=r"nowhere.toml: No such file.*--nodes"):
        profiles.load(profiles.DEFAULT.with_name("nowhere.toml"))
