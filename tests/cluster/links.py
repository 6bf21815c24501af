"""Emulates the link of a node with a packet pump if the kernel has no network emulator."""

import json
import signal
import subprocess
from functools import cache

from tests.cluster import binaries
from tests.cluster.errors import ClusterError
from tests.cluster.namespaces import Namespaces
from tests.cluster.network import Port
from tests.cluster.processes import run, wait
from tests.cluster.profiles import Link

_NETEM = "ip link add name probe0 type veth peer name probe1 && tc qdisc add dev probe0 root netem delay 1ms"


@cache
def kernel_emulates() -> bool:
    """Returns whether this machine's kernel has the network emulator (sch_netem)."""
    return subprocess.run(["unshare", "--net", "sh", "-c", _NETEM], capture_output=True, check=False).returncode == 0


def is_pumped(link: Link | None) -> bool:
    """Returns whether the link of a namespace needs the pump."""
    return link is not None and link.emulated and (link.recorded or not kernel_emulates())


def start(node: Namespaces, port: Port, link: Link) -> None:
    """Creates the node's eth0 and the port, and starts a pump between them in the switch's machine."""
    switch, daemon, far = port.switch, _daemon(port), f"far{port.index}"
    if switch.daemon(daemon):
        switch.signal(daemon, signal.SIGKILL)
    up, down = (json.dumps(path(one)) for one in link.directions)
    ends = ["--first", far, "--second", port.name]
    switch.start(daemon, str(binaries.client()), "link", *ends, "--up", up, "--down", down, "--seed", str(port.index))
    wait(lambda: _exists(switch, port.name), f"the link of {node.name} (see {switch.log(daemon)})", 60)
    switch.network("ip", "link", "set", far, "netns", str(node.pid), "name", "eth0", "address", port.station)
    port.connect()


def runs(port: Port) -> bool:
    """Returns whether the pump of this port carries packets."""
    return port.switch.daemon(_daemon(port)) is not None


def path(link: Link) -> dict[str, float | str]:
    """Returns the settings of the pump for one direction."""
    late = {"delayNanoseconds": round(link.seconds * 1e9), "jitterNanoseconds": round(link.jitter_seconds * 1e9)}
    given: dict[str, float | str] = {**late, "loss": link.share}
    if link.rate is None and link.trace is None:
        return given
    rate = {"trace": link.trace} if link.trace else {"bitsPerSecond": int(link.bits_per_second)}
    return {**given, **rate, "queueNanoseconds": round(link.queue_seconds * 1e9)}


def _daemon(port: Port) -> str:
    return f"link-{port.name}"


def _exists(machine: Namespaces, device: str) -> bool:
    try:
        run(*machine.in_network("ip", "link", "show", device))
    except ClusterError:
        return False
    return True
