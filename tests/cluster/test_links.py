"""The packet pump delays, loses and limits packets from and to a node or a pod. Tests use two namespaces."""

import json
import math
import os
import re
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cluster import binaries, links
from tests.cluster.addresses import Addresses
from tests.cluster.cgroups import Cgroups
from tests.cluster.namespaces import Namespaces
from tests.cluster.network import Port
from tests.cluster.processes import Process, wait
from tests.cluster.profiles import Link
from tests.timeouts import TIMEOUT_FACTOR

RATES = (5, 20, 50, 90, 100)  # Mbit/s
SWITCH = "198.18.15.1"
SWITCH_V6, POD_V6 = "2001:db8::1", "2001:db8::2"
FULL = 1442  # bytes of an Ethernet frame with 1400 bytes of UDP

Plug = Callable[[Link], "Cable"]


class Cable:
    """A node and a switch. The pump is the cable between them."""

    def __init__(self, switch: Namespaces, node: Namespaces, link: Link) -> None:
        self.switch, self.node, self.port = switch, node, Port(switch, Addresses(15), 0)
        self.link = link
        self.connect()

    def connect(self) -> None:
        links.start(self.node, self.port, self.link)
        self.configure()

    def configure(self) -> None:
        self.node.network("ip", "address", "add", f"{self.port.address}/24", "dev", "eth0")
        self.node.network("ip", "link", "set", "eth0", "up")

    @property
    def pump(self) -> Process | None:
        return self.switch.daemon(f"link-{self.port.name}")

    def reconnect(self) -> None:
        """Starts the pump again."""
        self.connect()

    def cut(self) -> None:
        """Kills the pump."""
        self.switch.signal(f"link-{self.port.name}", signal.SIGKILL)

    def ping(self, count: int, pause: float) -> list[float]:
        """Returns the round trips of the answered pings in milliseconds, except the first one, which waits for ARP."""
        options = ["-n", "-c", str(count), "-i", str(pause), "-W", "5"]
        command = ["sh", "-c", 'ping "$@" || true', "ping", *options, SWITCH]
        return [float(text) for text in re.findall(r"icmp_seq=(?!1 )\d+ .*time=([0-9.]+)", self.node.output(*command))]

    def cpu_seconds(self) -> float:
        """Returns the processor time of the pump so far."""
        pump = self.pump
        assert pump
        fields = Path(f"/proc/{pump.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def flood(self, megabits: float, *options: str) -> float:
        """Sends more than the link carries. Returns the received rate in Mbit/s of Ethernet frames."""
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


class PodCable(Cable):
    """A pod and a switch. The pump runs in the pod, between its programs and its interface."""

    def connect(self) -> None:
        self.port.plug(
            "link", "add", self.port.name, "type", "veth", "peer", "name", "eth0", "netns", str(self.node.pid)
        )
        self.configure()
        self.node.network("ip", "link", "set", "eth0", "address", self.port.station)
        self.node.network("ip", "address", "add", f"{POD_V6}/64", "dev", "eth0", "nodad")
        self.node.network("ip", "route", "add", "default", "via", SWITCH)
        self.reconnect()

    def reconnect(self) -> None:
        """Starts the pump, for the first time or again."""
        up, down = (json.dumps(links.path(one)) for one in self.link.directions)
        ready = self.node.logs / f"ready-{secrets.token_hex(3)}"
        command = [
            str(binaries.client()),
            "link",
            "--before",
            "eth0",
            "--up",
            up,
            "--down",
            down,
            "--ready",
            str(ready),
        ]
        self.node.start("link", *command)
        wait(ready.exists, f"the pod's link (see {self.node.log('link')})", 60)

    @property
    def pump(self) -> Process | None:
        return self.node.daemon("link")

    def cut(self) -> None:
        self.node.signal("link", signal.SIGKILL)


@pytest.fixture(params=[Cable, PodCable])
def plug(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Plug]:
    name = f"links-{secrets.token_hex(3)}"
    cgroups = Cgroups(name)
    switch, node = (Namespaces(name, machine, tmp_path, cgroups) for machine in ("switch", "node"))

    def connected(link: Link) -> Cable:
        for machine in (switch, node):
            machine.boot()
        switch.network("ip", "link", "add", "switch", "type", "bridge")
        switch.network("ip", "address", "add", f"{SWITCH}/24", "dev", "switch")
        switch.network("ip", "address", "add", f"{SWITCH_V6}/64", "dev", "switch", "nodad")
        switch.network("ip", "link", "set", "switch", "up")
        cable: Cable = request.param(switch, node, link)
        return cable

    yield connected
    cgroups.remove()


def test_link_delays_packets_in_each_direction(plug: Plug) -> None:
    times = plug(Link(delay="20ms", down=Link(delay="5ms"))).ping(20, 0.01)
    assert len(times) == 19
    assert min(times) >= 24.5


def test_link_loses_the_declared_share_of_packets(plug: Plug) -> None:
    pings = 1000
    answered = len(plug(Link(loss="10%")).ping(pings + 1, 0.002))
    share = 0.9**2
    assert abs(answered - share * pings) < 5 * math.sqrt(pings * share * (1 - share))


def test_link_passes_no_packets_until_its_killed_pump_restarts(plug: Plug) -> None:
    cable = plug(Link(delay="1ms"))
    assert cable.ping(3, 0.01)
    cable.cut()
    assert cable.pump is None
    assert not cable.ping(3, 0.01)
    cable.reconnect()
    assert cable.ping(3, 0.01)


@pytest.mark.measures
def test_link_follows_a_recorded_rate(plug: Plug, tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("0,5\n60,5\n")
    cable = plug(Link(trace=str(tmp_path / "trace.csv"), down=Link()))
    assert cable.flood(5) == pytest.approx(5, rel=0.1)


@pytest.mark.parametrize("plug", [PodCable], indirect=True)
def test_pod_with_a_link_keeps_its_addresses_routes_and_data(plug: Plug, tmp_path: Path) -> None:
    cable = plug(Link(rate="80mbit", delay="1ms", down=Link(delay="1ms")))
    addresses = json.loads(cable.node.output("ip", "-json", "address", "show", "dev", "link0"))[0]
    local = {one["local"]: one["prefixlen"] for one in addresses["addr_info"] if one["scope"] == "global"}
    assert (local, addresses["address"]) == ({cable.port.address: 24, POD_V6: 64}, cable.port.station)
    assert "default via " + SWITCH in cable.node.output("ip", "route")
    sent = tmp_path / "sent"
    sent.write_bytes(secrets.token_bytes(4 << 20))
    for host in (SWITCH, SWITCH_V6):
        assert _copy(cable.switch, cable.node, host, sent) == sent.read_bytes()
    assert _copy(cable.node, cable.switch, cable.port.address, sent) == sent.read_bytes()


def _copy(server: Namespaces, client: Namespaces, host: str, file: Path) -> bytes:
    """Copies a file over TCP, and returns the copy. The pump has to cut the long segments."""
    listen = f"import socket; s = socket.create_server(({host!r}, 5201), family=socket.{_family(host)})"
    serve = f"{listen}; print(flush=True); s.accept()[0].sendfile(open({str(file)!r}, 'rb'))"
    fetch = (
        f"import socket; s = socket.create_connection(({host!r}, 5201)); f = open({str(file)!r} + '.copy', 'wb')\n"
        "while block := s.recv(1 << 16): f.write(block)"
    )
    with ThreadPoolExecutor() as pool:
        served = pool.submit(server.output, "timeout", f"{60 * TIMEOUT_FACTOR:.0f}", sys.executable, "-c", serve)
        wait(lambda: ":5201" in server.output("ss", "-Hltn"), "the server to listen", 30 * TIMEOUT_FACTOR)
        client.run("timeout", f"{60 * TIMEOUT_FACTOR:.0f}", sys.executable, "-c", fetch)
        served.result()
    return Path(f"{file}.copy").read_bytes()


def _family(host: str) -> str:
    return "AF_INET6" if ":" in host else "AF_INET"


@pytest.mark.measures
@pytest.mark.release
@pytest.mark.parametrize("rate", RATES)
def test_link_has_the_declared_rate_and_takes_little_cpu(plug: Plug, rate: int) -> None:
    cable = plug(Link(rate=f"{rate}mbit", delay="20ms", down=Link(rate="30mbit", delay="20ms")))
    began, before = time.monotonic(), cable.cpu_seconds()
    found = [cable.flood(rate), cable.flood(30, "--reverse")]
    share = (cable.cpu_seconds() - before) / (time.monotonic() - began)
    assert found == [pytest.approx(rate, rel=0.03), pytest.approx(30, rel=0.03)]
    assert share < 0.4


@pytest.mark.measures
@pytest.mark.release
@pytest.mark.parametrize("rate", RATES)
def test_link_has_the_declared_delay(plug: Plug, rate: int) -> None:
    times = sorted(plug(Link(rate=f"{rate}mbit", delay="20ms")).ping(500, 0.02))
    assert sum(times) / len(times) == pytest.approx(40, abs=1)  # 0.5 ms in each direction
    assert times[int(0.99 * len(times))] < 44
