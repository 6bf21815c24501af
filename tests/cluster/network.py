"""The cluster's network: one switch in the control plane's machine, the host and each node on a link of its own."""

from pathlib import Path

from tests.cluster.addresses import Addresses
from tests.cluster.errors import ClusterError
from tests.cluster.machine import Machine
from tests.cluster.processes import run

_SWITCH = "switch"


def connect_host(control_plane: Machine, addresses: Addresses) -> None:
    """Make the switch and put the host on it."""
    pid = str(control_plane.pid)
    # A switch without an address of its own changes it with its ports, and is out of reach until all have asked again.
    station = addresses.station(addresses.control_plane)
    control_plane.network("ip", "link", "add", _SWITCH, "address", station, "type", "bridge")
    control_plane.network("ip", "address", "add", f"{addresses.control_plane}/24", "dev", _SWITCH)
    control_plane.network("ip", "link", "set", _SWITCH, "up")
    run("ip", "link", "add", addresses.interface, "type", "veth", "peer", "name", "host", "netns", pid)
    control_plane.network("ip", "link", "set", "host", "master", _SWITCH, "up")
    run("ip", "address", "add", f"{addresses.host}/24", "dev", addresses.interface)
    run("ip", "link", "set", addresses.interface, "alias", control_plane.cluster, "up")


def connect_node(
    control_plane: Machine, node: Machine, addresses: Addresses, index: int, nodes: int, link: str | None
) -> None:
    """Put node `index` of `nodes` on the switch, with routes to the pods of every other; `link` is its rate."""
    port, address = f"node{index}", addresses.node(index)
    peer = ["peer", "name", "eth0", "address", addresses.station(address), "netns", str(node.pid)]
    # the kernel may still be clearing away the port of a machine that has just been cut off
    control_plane.network("sh", "-c", f"ip link delete {port} 2>/dev/null || true")
    control_plane.network("ip", "link", "add", port, "type", "veth", *peer)
    control_plane.network("ip", "link", "set", port, "master", _SWITCH, "up")
    node.network("ip", "address", "add", f"{address}/24", "dev", "eth0")
    node.network("ip", "link", "set", "eth0", "up")
    node.network("ip", "route", "add", "default", "via", addresses.host)
    for other in range(nodes):
        if other != index:
            node.network("ip", "route", "add", addresses.node_pods(other), "via", addresses.node(other))
    run("ip", "route", "replace", addresses.node_pods(index), "via", address)
    control_plane.network("ip", "route", "replace", addresses.node_pods(index), "via", address)
    node.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
    if link:
        shape(control_plane, node, index, link)


def shape(control_plane: Machine, node: Machine, index: int, link: str | None) -> None:
    """Give the link of node `index` a rate each way, as tc writes it; None takes it away."""
    for machine, device in ((node, "eth0"), (control_plane, f"node{index}")):
        if link:
            rate = ["root", "tbf", "rate", link, "burst", "256kb", "latency", "50ms"]
            machine.network("tc", "qdisc", "replace", "dev", device, *rate)
        else:
            machine.network("tc", "qdisc", "delete", "dev", device, "root")


def disconnect_host(addresses: Addresses, cluster: str) -> None:
    """Take the host's interface and routes away, if they are this cluster's; the rest goes with the machines."""
    if _owner(addresses.interface) == cluster:
        try:
            run("ip", "link", "delete", addresses.interface)
        except ClusterError:  # the kernel clears it away itself, with the machine at its other end
            if _owner(addresses.interface) == cluster:
                raise


def _owner(interface: str) -> str | None:
    """The cluster of the host's interface, or None where there is no such interface."""
    try:
        return Path(f"/sys/class/net/{interface}/ifalias").read_text().strip()
    except OSError:
        return None
