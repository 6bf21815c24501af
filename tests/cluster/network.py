"""Builds the cluster's network: a switch in the control plane's machine, with links to the host and the nodes."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.addresses import Addresses
from tests.cluster.errors import ClusterError
from tests.cluster.namespaces import Namespaces
from tests.cluster.processes import run
from tests.cluster.profiles import Link

if TYPE_CHECKING:
    from tests.cluster.hardware import Hardware

_SWITCH = "switch"


def connect_host(control_plane: Namespaces, addresses: Addresses) -> None:
    """Creates the switch, and connects the host."""
    pid = str(control_plane.pid)
    # Without a fixed address the switch takes that of a port. Then it is unreachable until all others resolve it again.
    station = addresses.station(addresses.control_plane)
    control_plane.network("ip", "link", "add", _SWITCH, "address", station, "type", "bridge")
    control_plane.network("ip", "address", "add", f"{addresses.control_plane}/24", "dev", _SWITCH)
    control_plane.network("ip", "link", "set", _SWITCH, "up")
    run("ip", "link", "add", addresses.interface, "type", "veth", "peer", "name", "host", "netns", pid)
    control_plane.network("ip", "link", "set", "host", "master", _SWITCH, "up")
    run("ip", "address", "add", f"{addresses.host}/24", "dev", addresses.interface)
    run("ip", "link", "set", addresses.interface, "alias", control_plane.cluster, "up")


@dataclass(frozen=True)
class Port:
    """The port of node `index` at the switch, which is the control plane's machine."""

    switch: Namespaces
    addresses: Addresses
    index: int

    @property
    def name(self) -> str:
        """Returns the switch's interface."""
        return f"node{self.index}"

    @property
    def address(self) -> str:
        """Returns the node's address."""
        return self.addresses.node(self.index)

    @property
    def station(self) -> str:
        """Returns the node's Ethernet address."""
        return self.addresses.station(self.address)

    @property
    def gateway(self) -> str:
        return self.addresses.host

    def plug(self, *command: str) -> None:
        """Creates the switch's interface with this `ip` command, and connects it."""
        # the kernel may still be removing the port of a machine that has just ended
        self.switch.network("sh", "-c", f"ip link delete {self.name} 2>/dev/null || true")
        self.switch.network("ip", *command)
        self.connect()

    def connect(self) -> None:
        """Connects the existing interface."""
        self.switch.network("ip", "link", "set", self.name, "master", _SWITCH, "up")


def connect_node(node: "Hardware", nodes: int) -> None:
    """Adds routes between the node's pods and those of the other `nodes`, and shapes the node's declared link."""
    port, addresses = node.port, node.port.addresses
    pods = addresses.node_pods(port.index)
    for other in range(nodes):
        if other != port.index:
            node.network("ip", "route", "replace", addresses.node_pods(other), "via", addresses.node(other))
    run("ip", "route", "replace", pods, "via", port.address)
    port.switch.network("ip", "route", "replace", pods, "via", port.address)
    node.run("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.ping_group_range=0 2147483647")  # as systemd sets it
    node.run("sysctl", "-qw", f"net.ipv4.tcp_congestion_control={node.profile.congestion_control}")
    if node.shaped:
        shape(node, node.shaped)


def shape(node: "Hardware", link: Link | None) -> None:
    """Sets the link's rate, delay and loss in each direction, or removes them if `link` is None."""
    for number, (machine, device) in enumerate(node.ends):
        if link:
            machine.network("tc", "qdisc", "replace", "dev", device, "root", *discipline(link.directions[number]))
        else:
            machine.network("tc", "qdisc", "delete", "dev", device, "root")


def discipline(link: Link) -> list[str]:
    """Returns tc's discipline: a token bucket, or netem for delay and loss."""
    if link.rate and link.delay is None and link.loss is None:
        return ["tbf", "rate", link.rate, "burst", "256kb", "latency", link.queue]
    # the packets in flight, and a queue like that of the token bucket
    packets = math.ceil(link.bits_per_second * (link.seconds + link.queue_seconds) / (8 * 1514))
    words = ["netem", "limit", str(packets)]
    words += ["delay", link.delay, *([link.jitter] if link.jitter else [])] if link.delay else []
    words += ["loss", link.loss] if link.loss else []
    return words + (["rate", link.rate] if link.rate else [])


def disconnect_host(addresses: Addresses, cluster: str) -> None:
    """Removes the host's interface and routes if they belong to this cluster. The rest ends with the machines."""
    if owner(addresses.interface) == cluster:
        try:
            run("ip", "link", "delete", addresses.interface)
        except ClusterError:  # the kernel removes it, too, with the machine at its other end
            if owner(addresses.interface) == cluster:
                raise


def owner(interface: str) -> str | None:
    """Returns the cluster of the host's interface, or None if there is no such interface."""
    try:
        return Path(f"/sys/class/net/{interface}/ifalias").read_text().strip()
    except OSError:
        return None
