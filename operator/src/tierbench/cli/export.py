"""`kubectl tierbench export`: results for other programs."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tierbench.api.model import API_VERSION
from tierbench.api.result import BenchmarkResult
from tierbench.cli.arguments import Subparsers, choose_results, command
from tierbench.cli.choice import chosen_runs
from tierbench.cli.output import write
from tierbench.cli.problem import ExitCode, Problem
from tierbench.results import perftool, table


def _as_objects(results: Sequence[BenchmarkResult]) -> str:
    head = {"apiVersion": API_VERSION, "kind": BenchmarkResult.KIND.kind}
    items = [{**head, **result.to_json()} for result in results]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2) + "\n"


FORMATS: Final[Mapping[str, Callable[[Sequence[BenchmarkResult]], str]]] = {
    "csv": table.to_csv,
    "json": _as_objects,
    "perftool": perftool.to_json,
    "perftool-tsv": perftool.to_tsv,
}


def register(commands: Subparsers) -> None:
    """Adds the command."""
    text = "Give results to other programs: a table with a row a trial, objects, or the form of SINETStream's perftool."
    parser = command(commands, "export", run, text)
    choose_results(parser)
    parser.add_argument("--format", choices=FORMATS, default="csv", help="csv, json, perftool (brokers), perftool-tsv")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("-"), metavar="FILE", help="where to write it; standard output"
    )


def run(options: argparse.Namespace) -> ExitCode:
    """Writes the results."""
    runs, _ = chosen_runs(options)
    text = FORMATS[options.format]([result for each in runs for result in each.results])
    if not text:
        raise Problem(f"none of these results is a broker's: {options.format} is for brokers, take --format csv")
    write(text, options.output)
    return ExitCode.ANSWER
