"""`kubectl tierbench init`: proposes a first benchmark."""

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from textwrap import wrap
from typing import Any, Final

import yaml

from tierbench.cli.cluster import Cluster, explain_unwatched
from tierbench.cli.command import ExitCode, UserError, run_with_cluster
from tierbench.domain.estimate import estimate
from tierbench.domain.proposal import Proposal, propose, propose_from_classes
from tierbench.kinds.registry import BENCHMARKS
from tierbench.results.units import show

_WIDTH: Final = 100


def add_init(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `init`."""
    parser.set_defaults(run=init)
    parser.add_argument(
        "--name", default="quick-start", metavar="NAME", help="the name of the benchmark (default: quick-start)"
    )
    parser.add_argument("--apply", action="store_true", help="create the objects instead of printing them")


def init(options: argparse.Namespace) -> ExitCode:
    """Prints or creates the proposed objects.

    Raises:
        UserError: no node can run pods, or the objects cannot be created.
    """
    proposal, warning = run_with_cluster(options, _propose)
    if warning:
        print(f"Warning: {warning}", file=sys.stderr)
    if not options.apply:
        sys.stdout.write(_to_yaml(proposal, options.name))
        return ExitCode.ANSWER
    namespace = run_with_cluster(options, partial(_create, proposal, options.name))
    for note in (*proposal.notes, _estimate(proposal)):
        print(note)
    print(
        f"Created benchmark {options.name}: see `kubectl tierbench watch {options.name} --namespace {namespace}`. It "
        f"starts if the operator watches namespace {namespace}."
    )
    return ExitCode.ANSWER


async def _propose(cluster: Cluster) -> tuple[Proposal, str]:
    """Returns the proposal, and a warning if no operator watches the namespace."""
    nodes = await cluster.schedulable_nodes()
    if nodes is None:
        proposal = propose_from_classes(await cluster.class_names())
        problem = (
            "you may list neither nodes nor node classes, or there are no classes. An administrator can run "
            "`kubectl tierbench init`, or grant `list` on nodes"
        )
    else:
        proposal = propose(nodes)
        problem = "no node is Ready, uncordoned and free of taints: see `kubectl get nodes`"
    if proposal is None:
        raise UserError(problem)
    watched = await cluster.watched_namespaces()
    return proposal, explain_unwatched(watched, cluster.namespace) if watched.excludes(cluster.namespace) else ""


async def _create(proposal: Proposal, name: str, cluster: Cluster) -> str:
    for body in proposal.node_classes():
        await cluster.create_class(body)
    await cluster.create_benchmark(proposal.benchmark(name))
    return cluster.namespace


def _to_yaml(proposal: Proposal, name: str) -> str:
    """Returns the objects as YAML. Comments explain the choices and estimate the cost of the benchmark."""
    comments = "".join(
        f"{line}\n"
        for note in (*proposal.notes, _estimate(proposal))
        for line in wrap(note, _WIDTH, initial_indent="# ", subsequent_indent="# ")
    )
    bodies: list[Mapping[str, Any]] = [*proposal.node_classes(), proposal.benchmark(name)]
    return comments + "---\n".join(yaml.safe_dump(body, sort_keys=False, default_flow_style=False) for body in bodies)


def _estimate(proposal: Proposal) -> str:
    body = proposal.benchmark("quick-start")
    found = estimate(BENCHMARKS[body["kind"]].model_validate(body))
    return (
        f"Estimate: {found.trials} trials, about {max(1, round(found.seconds / 60))} min over links of 100 Mbit/s, "
        f"{show('Bytes', found.bytes_moved)} moved, {show('Bytes', found.bytes_on_disk)} of disk per server node."
    )
