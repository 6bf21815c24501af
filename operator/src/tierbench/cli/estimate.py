"""`kubectl tierbench estimate`: what a run of a benchmark takes, before it is created."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pydantic.alias_generators import to_camel
from rich.table import Table as Grid

from tierbench.api.benchmark import Benchmark
from tierbench.api.model import GROUP
from tierbench.api.quantity import parse_size
from tierbench.cli import console
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
from tierbench.domain.estimate import Estimate, estimate
from tierbench.kinds.registry import BENCHMARKS
from tierbench.results.units import show
from tierbench.workloads.workload import LINK


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
