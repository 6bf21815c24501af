"""The packet pump delays, loses and limits what a node sends and receives. Two namespaces are enough to see it."""

import json
import math
import os
import re
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cluster import links
from tests.cluster.addresses import Addresses
from tests.cluster.cgroups import Cgroups
from tests.cluster.namespaces import Namespaces
from tests.cluster.network import Port
from tests.cluster.processes import wait
from tests.cluster.profiles import Link
from tests.timeouts import TIMEOUT_FACTOR

RATES = (5, 20, 50, 90)  # Mbit/s
SWITCH = "198.18.15.1"
FULL = 1442  # bytes of an Ethernet frame with 1400 bytes of UDP

Plug = Callable[[Link], "Cable"]


class Cable:
    """A machine at a switch, connected by the pump."""

    def __init__(self, switch: Namespaces, node: Namespaces, link: Link) -> None:
        self.switch, self.node, self.port = switch, node, Port(switch, Addresses(15), 0)
        self.link = link
        self.connect()

    def connect(self) -> None:
        links.start(self.node, self.port, self.link)
        self.node.network("ip", "address", "add", f"{self.port.address}/24", "dev", "eth0")
        self.node.network("ip", "link", "set", "eth0", "up")

    def ping(self, count: int, pause: float) -> list[float]:
        """Returns the round trips of the answered pings in milliseconds, without the first one, which waits for ARP."""
        options = ["-n", "-c", str(count), "-i", str(pause), "-W", "5"]
        command = ["sh", "-c", 'ping "$@" || true', "ping", *options, SWITCH]
        return [float(text) for text in re.findall(r"icmp_seq=(?!1 )\d+ .*time=([0-9.]+)", self.node.output(*command))]

    def cpu_seconds(self) -> float:
        """Returns the processor time that the pump has taken."""
        pump = self.switch.daemon(f"link-{self.port.name}")
        assert pump
        fields = Path(f"/proc/{pump.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def flood(self, megabits: float, *options: str) -> float:
        """Sends more than the link carries, and returns what arrives in Mbit/s of Ethernet frames."""
        limit = ["timeout", f"{60 * TIMEOUT_FACTOR:.0f}"]
        load = ["--udp", "--bitrate", f"{1.2 * megabits}M", "--length", "1400", "--time", "6", "--json", *options]
        with ThreadPoolExecutor() as pool:
            server = pool.submit(self.switch.output, *limit, "iperf3", "--server", "--one-off", "--json")
            wait(self._listens, "iperf3 to listen", 30 * TIMEOUT_FACTOR)
            client = json.loads(self.node.output(*limit, "iperf3", "--client", SWITCH, *load))
            receiver = client if "--reverse" in options else json.loads(server.result())
        inner = [interval["sum"] for interval in receiver["intervals"]][
            1:-1
        ]  # the queue fills and empties in the others
        received, seconds = (sum(float(one[key]) for one in inner) for key in ("bytes", "seconds"))
        return received / seconds * 8 / 1e6 * FULL / 1400

    def _listens(self) -> bool:
        return ":5201" in self.switch.output("ss", "-Hltn")


@pytest.fixture
def plug(tmp_path: Path) -> Iterator[Plug]:
    name = f"links-{secrets.token_hex(3)}"
    cgroups = Cgroups(name)
    switch, node = (Namespaces(name, machine, tmp_path, cgroups) for machine in ("switch", "node"))

    def connected(link: Link) -> Cable:
        for machine in (switch, node):
            machine.boot()
        switch.network("ip", "link", "add", "switch", "type", "bridge")
        switch.network("ip", "address", "add", f"{SWITCH}/24", "dev", "switch")
        switch.network("ip", "link", "set", "switch", "up")
        return Cable(switch, node, link)

    yield connected
    cgroups.remove()


def test_packets_are_late_in_each_direction(plug: Plug) -> None:
    times = plug(Link(delay="20ms", down=Link(delay="5ms"))).ping(20, 0.01)
    assert len(times) == 19
    assert min(times) >= 24.5


def test_declared_share_of_packets_is_lost(plug: Plug) -> None:
    pings = 1000
    answered = len(plug(Link(loss="10%")).ping(pings + 1, 0.002))
    share = 0.9**2
    assert abs(answered - share * pings) < 5 * math.sqrt(pings * share * (1 - share))


def test_a_pump_that_ended_is_noticed_and_starts_again(plug: Plug) -> None:
    cable = plug(Link(delay="1ms"))
    assert links.runs(cable.port)
    cable.switch.signal("link-node0", signal.SIGKILL)
    assert not links.runs(cable.port)
    cable.connect()
    assert cable.ping(3, 0.01)


@pytest.mark.measures
@pytest.mark.release
@pytest.mark.parametrize("rate", RATES)
def test_rate_is_the_declared_one_and_cheap(plug: Plug, rate: int) -> None:
    cable = plug(Link(rate=f"{rate}mbit", delay="20ms", down=Link(rate="30mbit", delay="20ms")))
    began, before = time.monotonic(), cable.cpu_seconds()
    found = [cable.flood(rate), cable.flood(30, "--reverse")]
    share = (cable.cpu_seconds() - before) / (time.monotonic() - began)
    assert found == [pytest.approx(rate, rel=0.03), pytest.approx(30, rel=0.03)]
    assert share < 0.4


@pytest.mark.measures
@pytest.mark.release
@pytest.mark.parametrize("rate", RATES)
def test_delay_is_the_declared_one(plug: Plug, rate: int) -> None:
    times = sorted(plug(Link(rate=f"{rate}mbit", delay="20ms")).ping(500, 0.02))
    assert sum(times) / len(times) == pytest.approx(40, abs=1)  # 0.5 ms in each direction
    assert times[int(0.99 * len(times))] < 44
