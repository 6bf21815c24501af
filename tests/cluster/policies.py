"""Runs kube-router on every node while network policies are on. The cluster's CNI enforces none."""

import shutil
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.cluster import binaries
from tests.cluster.addresses import SERVICES
from tests.cluster.errors import ClusterError
from tests.cluster.node import NodeMachine
from tests.cluster.node_files import SETTINGS
from tests.cluster.processes import wait

_DAEMON = "kube-router"
_PROGRAM = f"{SETTINGS}/{_DAEMON}"
_CHAINS = ("KUBE-ROUTER-INPUT", "KUBE-ROUTER-FORWARD", "KUBE-ROUTER-OUTPUT")
"""The chains from which all rules of kube-router are reached."""


def switch(on: bool, nodes: Sequence[NodeMachine]) -> None:
    """Starts kube-router on each node that lacks it, or ends it and removes its rules."""
    for node in nodes:
        if on and not node.machine.daemon(_DAEMON):
            _start(node, binaries.tool(_DAEMON))
        elif not on and node.machine.daemon(_DAEMON):
            node.machine.signal(_DAEMON, signal.SIGTERM)
            for chain in _CHAINS:
                node.machine.run("iptables", "--flush", chain)
    if on:
        for node in nodes:
            what = f"kube-router of {node.profile.name} (see {node.machine.log(_DAEMON)})"
            wait(partial(_enforces, node), what, 60)


def _enforces(node: NodeMachine) -> bool:
    try:
        rules = [node.machine.output("iptables", "--list-rules", chain) for chain in _CHAINS]
    except ClusterError:  # the chain does not exist yet
        return False
    return all("\n-A " in found for found in rules)


def _start(node: NodeMachine, program: Path) -> None:
    """Starts a copy of the program, because a node may not see the folder where it was built."""
    if node.profile.machine != "namespaces":
        raise ClusterError(f"{node.profile.name} is a virtual machine: no network policies there")
    shutil.copy2(program, node.machine.folder / "root" / _PROGRAM.removeprefix("/"))
    kubeconfig = node.control_plane.kubeconfig("router").read_text()
    node.machine.write(SETTINGS, {"router.kubeconfig": kubeconfig})
    node.machine.start(
        _DAEMON,
        _PROGRAM,
        f"--kubeconfig={SETTINGS}/router.kubeconfig",
        f"--hostname-override={node.profile.name}",
        f"--service-cluster-ip-range={SERVICES}",
        "--run-firewall=true",
        "--run-router=false",
        "--run-service-proxy=false",
        "--run-loadbalancer=false",
        "--enable-cni=false",
        "--health-port=0",
        "--metrics-port=0",
    )
