"""Gives nodes the networks of the edge. Each profile changes a node in its context."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Final

from tests.cluster.node import NodeMachine
from tests.cluster.processes import wait

AWAY_SECONDS: Final = 90
PERIOD_SECONDS: Final = 300
_KUBELET: Final = ("--protocol", "tcp", "--dport", "10250")
_PROXY: Final = "kube-proxy"
_SERVICES: Final = ("--table", "nat", "--list-rules", "KUBE-SERVICES")


@contextmanager
def no_logs(node: NodeMachine) -> Iterator[None]:
    """Closes the port of the kubelet, as on KubeEdge without its tunnel."""
    with _rules(node, ("INPUT", *_KUBELET, "--jump", "REJECT", "--reject-with", "tcp-reset")):
        yield


@contextmanager
def nat(node: NodeMachine) -> Iterator[None]:
    """Blocks connections to the node, but not from it. The API server's connection to the kubelet breaks as well."""
    new = ("--in-interface", "eth0", "--match", "conntrack", "--ctstate", "NEW", "--jump", "DROP")
    with _rules(node, ("INPUT", *new), ("FORWARD", *new), ("INPUT", *_KUBELET, "--jump", "DROP")):
        yield


@contextmanager
def bare(node: NodeMachine) -> Iterator[None]:
    """Removes kube-proxy with its rules, and the network of pods. Only the node itself keeps its network."""
    pods = node.control_plane.addresses.node_pods(node.machine.port.index)
    node.machine.signal(_PROXY, signal.SIGTERM)
    wait(lambda: not node.machine.daemon(_PROXY), f"the end of {_PROXY}", 60)
    try:
        node.machine.run("iptables", "--table", "nat", "--flush", "KUBE-SERVICES")
        with _rules(node, *(("FORWARD", way, pods, "--jump", "DROP") for way in ("--source", "--destination"))):
            yield
    finally:
        node.start(_PROXY)
        wait(lambda: "\n-A " in node.machine.output("iptables", *_SERVICES), "the rules of Services", 120)


@contextmanager
def flapping(node: NodeMachine) -> Iterator[None]:
    """Takes the link of the node down for 90 s of every 5 min, starting at once."""
    done = threading.Event()

    def flap() -> None:
        while not done.is_set():
            _link(node, "down")
            done.wait(AWAY_SECONDS)
            _link(node, "up")
            done.wait(PERIOD_SECONDS - AWAY_SECONDS)

    thread = threading.Thread(target=flap)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def cut_off(node: NodeMachine) -> Iterator[None]:
    """Takes the link of the node down."""
    _link(node, "down")
    try:
        yield
    finally:
        _link(node, "up")


def _link(node: NodeMachine, state: str) -> None:
    port = node.machine.port
    port.switch.network("ip", "link", "set", port.name, state)


@contextmanager
def _rules(node: NodeMachine, *rules: tuple[str, ...]) -> Iterator[None]:
    with ExitStack() as stack:
        for rule in rules:
            node.machine.run("iptables", "--insert", *rule)
            stack.callback(partial(node.machine.run, "iptables", "--delete", *rule))
        yield


PROFILES: Final[Mapping[str, Callable[[NodeMachine], AbstractContextManager[None]]]] = {
    "no-logs": no_logs,
    "bare": bare,
    "nat": nat,
    "flapping": flapping,
    "cut-off": cut_off,
}
"""The profiles by name."""
