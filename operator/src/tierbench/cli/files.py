"""`kubectl tierbench report` and `export`: write results to files."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tierbench.api.model import API_VERSION, Resource
from tierbench.api.result import BenchmarkResult
from tierbench.cli.command import (
    ExitCode,
    UserError,
    add_published_arguments,
    add_result_arguments,
)
from tierbench.cli.objects import read_files, select_runs, select_runs_with_traces
from tierbench.cli.output import write_output
from tierbench.kinds.registry import kinds
from tierbench.report.page import render
from tierbench.results.export import to_csv, to_parquet

Results = Sequence[BenchmarkResult]
_OBJECTS: Final = "json"


def add_report(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `report`."""
    parser.set_defaults(run=report)
    add_result_arguments(parser)
    add_published_arguments(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("report.html"),
        metavar="FILE",
        help="the file to write, - for standard output (default: report.html)",
    )


def report(options: argparse.Namespace) -> ExitCode:
    """Writes the report."""
    runs, specs, traces = select_runs_with_traces(options)
    published = read_files(options.beside).results
    page = render(runs, specs, traces, [path.name for path in options.source], published)
    if write_output(page, options.output):
        print(f"{options.output}: {sum(len(each.results) for each in runs)} results, {len(page) // 1000} kB")
    return ExitCode.ANSWER


def add_export(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `export`."""
    parser.set_defaults(run=export)
    add_result_arguments(parser)
    parser.add_argument(
        "--format",
        choices=(*_formats(), _OBJECTS),
        default="csv",
        help="csv (the default), parquet, json, or for brokers perftool or perftool-tsv",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("-"), metavar="FILE", help="the file (default: standard output)"
    )


def export(options: argparse.Namespace) -> ExitCode:
    """Writes the results.

    Raises:
        UserError: there are no results of this format, the file cannot be written, or a library is missing.
    """
    content = _objects(options) if options.format == _OBJECTS else _table(options)
    if not content:
        raise UserError(f"format {options.format} is for brokers, and no selected result is one: use --format csv")
    write_output(content, options.output)
    return ExitCode.ANSWER


def _objects(options: argparse.Namespace) -> str:
    """Returns a List of the results as JSON. The trace of a case follows its result."""
    runs, _, traces = select_runs_with_traces(options)
    objects: list[Resource] = []
    for result in (result for run in runs for result in run.results):
        trace = traces.get((result.metadata.namespace or "default", result.metadata.name))
        objects += [result] if trace is None else [result, trace]
    items = [{"apiVersion": API_VERSION, "kind": one.KIND.kind, **one.to_json()} for one in objects]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2) + "\n"


def _table(options: argparse.Namespace) -> str | bytes:
    runs, _ = select_runs(options)
    return _formats()[options.format]([result for each in runs for result in each.results])


def _formats() -> Mapping[str, Callable[[Results], str | bytes]]:
    of_kinds = {name: export for kind in kinds() for name, export in kind.exports.items()}
    return {"csv": to_csv, "parquet": _to_parquet, **of_kinds}


def _to_parquet(results: Results) -> bytes:
    if find_spec("pyarrow") is None:
        raise UserError("parquet needs another library: run `pip install 'tierbench[parquet]'`, or use --format csv")
    return to_parquet(results)
