"""`kubectl tierbench init` and `estimate`: propose a first benchmark, and say what a run takes."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

import yaml
from pydantic.alias_generators import to_camel
from rich.table import Table as Grid

from tierbench.api.benchmark import Benchmark
from tierbench.api.model import GROUP
from tierbench.api.quantity import parse_size
from tierbench.cli import console
from tierbench.cli.cluster import Cluster, explain_unwatched
from tierbench.cli.command import (
    ExitCode,
    UserError,
    add_from_argument,
    add_output_argument,
    duration,
    run_with_cluster,
)
from tierbench.cli.objects import parse_object, parse_reference, read_files
from tierbench.cli.output import data_as, write_output
from tierbench.domain.proposal import Estimate, Proposal, estimate, propose, propose_from_classes
from tierbench.kinds.registry import BENCHMARKS
from tierbench.results.units import show
from tierbench.workloads.workload import LINK

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


def add_estimate(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `estimate`."""
    parser.set_defaults(run=run)
    parser.add_argument("name", nargs="?", metavar="[KIND/]NAME", help="a benchmark of the cluster or of the files")
    add_from_argument(parser, "a file with manifests of benchmarks, or standard input (-); can be repeated")
    parser.add_argument(
        "--rate",
        type=_rate,
        default=LINK,
        metavar="BITS",
        help="the rate of the network in bits per second, as in 1G (default: 100M)",
    )
    add_output_argument(parser, "table", "wide", "json", "yaml")


def _rate(text: str) -> int:
    try:
        rate = parse_size(text)
    except ValueError:
        rate = 0
    if not rate:
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate: write bits per second, as in 100M or 1G")
    return rate


def run(options: argparse.Namespace) -> ExitCode:
    """Prints an estimate for each benchmark.

    Raises:
        UserError: there is no such benchmark, or it is invalid.
    """
    found = [(benchmark, estimate(benchmark, options.rate)) for benchmark in _benchmarks(options)]
    if options.output in {"table", "wide"}:
        console.show(_grid(found, wide=options.output == "wide"))
        return ExitCode.ANSWER
    items = [{"kind": one.KIND.kind, "name": one.metadata.name, **_camel_case(of)} for one, of in found]
    write_output(data_as(options.output, {"bitsPerSecond": options.rate, "items": items}), Path("-"))
    return ExitCode.ANSWER


def _camel_case(of: Estimate) -> dict[str, float | None]:
    return {to_camel(name): value for name, value in asdict(of).items()}


def _benchmarks(options: argparse.Namespace) -> Sequence[Benchmark]:
    reference = None if options.name is None else parse_reference(options.name)
    if not options.source:
        if reference is None:
            raise UserError("name a benchmark, or a file with -f")
        return [run_with_cluster(options, lambda cluster: cluster.find(reference))]
    found = [
        parse_object(BENCHMARKS[kind], {"metadata": {"name": name, "namespace": namespace}, "spec": spec}, "the file")
        for (kind, namespace, name), spec in read_files(options.source).specs.items()
        if reference is None or (reference.name == name and reference.kind in {None, BENCHMARKS[kind]})
    ]
    if not found:
        raise UserError(f"there is no benchmark{f' {options.name}' if reference else ''} in the files")
    return found


def _grid(found: Sequence[tuple[Benchmark, Estimate]], *, wide: bool) -> Grid:
    grid = Grid(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="")
    for name in ("NAME", "CASES", "TRIALS", "TIME", "MOVED", "STORED", *(("SERVERS", "DISK") if wide else ())):
        grid.add_column(name)
    for benchmark, of in found:
        cells = (
            f"{benchmark.KIND.singular}.{GROUP}/{benchmark.metadata.name}",
            str(of.cases),
            str(of.trials),
            duration(of.seconds),
            show("Bytes", of.bytes_moved),
            show("Bytes", of.bytes_stored),
            *((str(of.servers), show("Bytes", of.bytes_on_disk)) if wide else ()),
        )
        grid.add_row(*cells)
    return grid
