"""`kubectl tierbench init`: node classes and a first benchmark for this cluster."""

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

import yaml

from tierbench.cli.arguments import Subparsers, command
from tierbench.cli.ask import ask
from tierbench.cli.errors import ExitCode, UserError
from tierbench.cli.watched import not_watched
from tierbench.domain.proposal import Proposal, propose, propose_from_classes

if TYPE_CHECKING:
    from tierbench.cli.cluster import Cluster

_WIDTH: Final = 100


def register(commands: Subparsers) -> None:
    """Adds the command."""
    text = (
        "Propose node classes and a first benchmark from the nodes of the cluster, as commented YAML. Exit code 0: "
        "proposed, 2: not possible."
    )
    parser = command(commands, "init", run, text)
    parser.add_argument("--name", default="quick-start", help="the name of the benchmark (quick-start)")
    parser.add_argument("--apply", action="store_true", help="create the objects instead of printing them")


def run(options: argparse.Namespace) -> ExitCode:
    """Prints or creates the proposed objects.

    Raises:
        UserError: no node can run pods, or the objects cannot be created.
    """
    proposal, warning = ask(options, _propose)
    if warning:
        print(f"Warning: {warning}", file=sys.stderr)
    if not options.apply:
        sys.stdout.write(document(proposal, options.name))
        return ExitCode.ANSWER
    namespace = ask(options, partial(_apply, proposal, options.name))
    for note in (*proposal.notes, _estimate(proposal)):
        print(note)
    print(
        f"Created benchmark {options.name}: see `kubectl tierbench watch {options.name} --namespace {namespace}`. It "
        f"starts if the operator watches namespace {namespace}."
    )
    return ExitCode.ANSWER


def document(proposal: Proposal, name: str) -> str:
    """The objects as YAML, with comments that say why, and what the benchmark costs."""
    comments = "".join(
        f"{line}\n"
        for note in (*proposal.notes, _estimate(proposal))
        for line in wrap(note, _WIDTH, initial_indent="# ", subsequent_indent="# ")
    )
    objects = [*proposal.node_classes(), proposal.benchmark(name)]
    return comments + "---\n".join(map(_yaml, objects))


def _yaml(body: Mapping[str, Any]) -> str:
    return yaml.safe_dump(body, sort_keys=False, default_flow_style=False)


def _estimate(proposal: Proposal) -> str:
    minutes = max(1, round(proposal.seconds / 60))
    moved, disk = proposal.bytes_moved / 2**20, proposal.bytes_on_disk / 2**20
    return (
        f"Estimate: {proposal.trials} downloads, about {minutes} min over links of 100 Mbit/s, {moved:.0f} MiB moved, "
        f"{disk:.0f} MiB of disk per server node."
    )


async def _propose(cluster: "Cluster") -> tuple[Proposal, str]:
    """The proposal, and a warning if no operator watches the namespace."""
    nodes = await cluster.schedulable_nodes()
    if nodes is None:
        proposal = propose_from_classes(await cluster.class_names())
        problem = (
            "you may list neither nodes nor node classes, or there are no classes: ask an administrator to run "
            "`kubectl tierbench init`, or for `list` on nodes"
        )
    else:
        proposal = propose(nodes)
        problem = "no node is Ready, uncordoned and free of taints: see `kubectl get nodes`"
    if proposal is None:
        raise UserError(problem)
    found = await cluster.watched()
    return proposal, not_watched(found, cluster.namespace) if found.misses(cluster.namespace) else ""


async def _apply(proposal: Proposal, name: str, cluster: "Cluster") -> str:
    for body in proposal.node_classes():
        await cluster.create_class(body)
    await cluster.create_benchmark(proposal.benchmark(name))
    return cluster.namespace
