"""Runs the built-in cluster from the command line: python3 -m tests.cluster --help."""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.cluster import binaries, edge, preflight, profiles
from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterError

_SWITCHES = {"stalls": Cluster.stalls, "network-policies": Cluster.network_policies}
_PRINTED: dict[str, Callable[[Cluster, argparse.Namespace], object]] = {
    "binaries": lambda _, __: binaries.build(binaries.asked()),
    "kubeconfig": lambda cluster, _: cluster.kubeconfig,
    "registry": lambda cluster, arguments: cluster.trust_registry(arguments.port),
}
_SIGNALS = {"stop": signal.SIGTERM, "kill": signal.SIGKILL, "pause": signal.SIGSTOP, "resume": signal.SIGCONT}


def main() -> int:
    """Runs one command. Prints an error as one line on standard error."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    arguments = _parser().parse_args()
    try:
        if arguments.command != "binaries":
            preflight.check_root()
        if arguments.command == "check":
            preflight.check(profiles.load(arguments.nodes), installed=False)
            return 0
        return _run(arguments, Cluster(arguments.name))
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.cluster", description="A real Kubernetes cluster on this machine."
    )
    parser.add_argument(
        "--name", default=os.environ.get("CLUSTER_NAME", "tierbench"), help="the cluster (CLUSTER_NAME; tierbench)"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start the cluster, or the parts of it that are down")
    up.add_argument(
        "--nodes", type=Path, default=profiles.DEFAULT, metavar="FILE", help="nodes and their hardware (nodes.toml)"
    )
    check = commands.add_parser("check", help="report what this machine lacks, without changes")
    check.add_argument("--nodes", type=Path, default=profiles.DEFAULT, metavar="FILE", help="nodes.toml")
    commands.add_parser("down", help="remove the cluster with everything that it created")
    commands.add_parser("status", help="every component and whether it runs")
    commands.add_parser("kubeconfig", help="print the path of the administrator's kubeconfig")
    commands.add_parser("env", help="print export lines for kubectl and helm; use with eval")
    commands.add_parser("binaries", help="build Kubernetes and its tools; print their folder")
    load = commands.add_parser("load", help="load images into every node")
    load.add_argument("archives", type=Path, nargs="+", metavar="IMAGE.tar", help="OCI archives")
    for command, text in (
        ("start", "start a component, or boot a node"),
        ("stop", "end a component, or cut a node's power"),
        ("kill", "end a component with SIGKILL"),
        ("pause", "stop a component with SIGSTOP"),
        ("resume", "continue a paused component with SIGCONT"),
    ):
        commands.add_parser(command, help=text).add_argument(
            "component", help="apiserver, jetson-1/kubelet, jetson-1 …"
        )
    stalls = commands.add_parser("stalls", help="let the disks of nodes that declare it stall under load")
    stalls.add_argument("switch", choices=("on", "off"))
    policies = commands.add_parser("network-policies", help="let every node enforce NetworkPolicies, by kube-router")
    policies.add_argument("switch", choices=("on", "off"))
    at_edge = commands.add_parser("edge", help="give a node the network of an edge, until interrupted")
    at_edge.add_argument("profile", choices=tuple(edge.PROFILES))
    at_edge.add_argument("node")
    registry = commands.add_parser("registry", help="let nodes pull from a registry of this host; print its HOST:PORT")
    registry.add_argument("port", type=int, help="where it listens, with plain HTTP")
    inside = commands.add_parser("exec-node", help="run a program on a node")
    inside.add_argument("node")
    inside.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM …")
    return parser


def _run(arguments: argparse.Namespace, cluster: Cluster) -> int:
    command = arguments.command
    if command == "up":
        began = time.monotonic()
        changed = cluster.up(arguments.nodes)
        print(
            f"cluster '{cluster.name}':",
            f"ready after {time.monotonic() - began:.1f} s" if changed else "is up already",
        )
        _print_environment(cluster)
    elif command == "down":
        print(f"cluster '{cluster.name}': {'gone' if cluster.down() else 'there was none'}")
    elif command == "status":
        return _status(cluster)
    elif command == "env":
        _print_environment(cluster)
    elif command == "load":
        for line in cluster.load(arguments.archives):
            print(line)
    elif command == "start":
        cluster.start(arguments.component)
    elif command in _PRINTED:
        print(_PRINTED[command](cluster, arguments))
    elif command in _SWITCHES:
        _SWITCHES[command](cluster, arguments.switch == "on")
    elif command == "edge":
        with cluster.edge(arguments.profile, arguments.node):
            signal.pause()
    elif command == "exec-node":
        program = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
        return subprocess.run(cluster.node(arguments.node).machine.inside(*program), check=False).returncode
    else:
        cluster.signal(arguments.component, _SIGNALS[command])
    return 0


def _print_environment(cluster: Cluster) -> None:
    print(f"export KUBECONFIG={cluster.kubeconfig}")
    print(f"export PATH={cluster.binaries}:$PATH")


def _status(cluster: Cluster) -> int:
    found = cluster.status()
    for component, running in found:
        print(f"{component:24} {'running' if running else 'stopped'}")
    return 0 if all(running for _, running in found) else 1


if __name__ == "__main__":
    sys.exit(main())
