"""`kubectl tierbench report`, `export` and `link`: write results to files."""

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import yaml

from tierbench.api.model import Resource
from tierbench.api.result import BenchmarkResult
from tierbench.cli.command import (
    ExitCode,
    UserError,
    add_file_argument,
    add_output_argument,
    add_published_arguments,
    add_result_arguments,
)
from tierbench.cli.objects import read_files, select_runs
from tierbench.cli.output import objects_as, write_output
from tierbench.kinds.registry import kinds
from tierbench.report.page import render
from tierbench.results.export import tcp_to_csv, to_csv, to_parquet
from tierbench.results.measured_link import MeasuredLink, measured_link

Results = Sequence[BenchmarkResult]
_OBJECTS: Final = ("json", "yaml", "name")
_LINK_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,14}[a-z0-9])?")


def add_report(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `report`."""
    parser.set_defaults(run=report)
    add_result_arguments(parser)
    add_published_arguments(parser)
    add_file_argument(parser, "report.html")


def report(options: argparse.Namespace) -> ExitCode:
    """Writes the report."""
    runs, specs = select_runs(options)
    published = read_files(options.beside).results
    page = render(runs, specs, [path.name for path in options.source], published)
    if write_output(page, options.output_file):
        print(f"{options.output_file}: {sum(len(each.results) for each in runs)} results, {len(page) // 1000} kB")
    return ExitCode.ANSWER


def add_export(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `export`."""
    parser.set_defaults(run=export)
    add_result_arguments(parser)
    add_output_argument(parser, *_formats(), *_OBJECTS)
    add_file_argument(parser, "-")


def export(options: argparse.Namespace) -> ExitCode:
    """Writes the results.

    Raises:
        UserError: there are no results of this format, the file cannot be written, or a library is missing.
    """
    content = _objects(options) if options.output in _OBJECTS else _table(options)
    if not content:
        raise UserError(f"format {options.output} is for brokers, and no selected result is one: use -o csv")
    write_output(content, options.output_file)
    return ExitCode.ANSWER


def _objects(options: argparse.Namespace) -> str:
    """Returns a List of the results. The record of a case follows its result."""
    runs, _ = select_runs(options)
    objects: list[Resource] = []
    for result in (result for run in runs for result in run.results):
        objects += [result] if result.record is None else [result, result.record]
    return objects_as(options.output, objects)


def _table(options: argparse.Namespace) -> str | bytes:
    runs, _ = select_runs(options)
    return _formats()[options.output]([result for each in runs for result in each.results])


def _formats() -> Mapping[str, Callable[[Results], str | bytes]]:
    of_kinds = {name: export for kind in kinds() for name, export in kind.exports.items()}
    return {"csv": to_csv, "parquet": _to_parquet, "tcp": _tcp_to_csv, **of_kinds}


def _tcp_to_csv(results: Results) -> str:
    text, problems = tcp_to_csv(results)
    for problem in problems:
        print(f"Warning: {problem}", file=sys.stderr)
    if not text:
        raise UserError(
            "no selected result has samples of TCP: a NetworkBenchmark of TCP keeps them in BenchmarkRecords if "
            "traceIntervalMilliseconds is not 0. A file must contain the records, as export -o json writes them"
        )
    return text


def _to_parquet(results: Results) -> bytes:
    if find_spec("pyarrow") is None:
        raise UserError("parquet needs another library: run `pip install 'tierbench[parquet]'`, or use -o csv")
    return to_parquet(results)


def add_link(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `link`."""
    parser.set_defaults(run=link)
    add_result_arguments(parser)
    parser.add_argument(
        "--name", dest="link", type=_name, default="measured", help="name of the link (default: measured)"
    )
    parser.add_argument(
        "--trace-file",
        type=Path,
        metavar="FILE",
        help="write the rates over time to a ConfigMap in this file, and refer to it in place of two rates",
    )
    add_file_argument(parser, "-")


def _name(text: str) -> str:
    if not _LINK_NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not the name of a link: write at most 16 lower-case letters, digits and hyphens"
        )
    return text


def link(options: argparse.Namespace) -> ExitCode:
    """Writes the link.

    Raises:
        UserError: the results do not describe one network.
    """
    traced = options.trace_file is not None
    runs, _ = select_runs(options, records=traced)
    results = [result for run in runs for result in run.results]
    try:
        found = measured_link(results, options.link, traced=traced)
    except ValueError as error:
        raise UserError(str(error)) from None
    if traced:
        write_output(_config_map(found), options.trace_file)
    origin = dict.fromkeys(f"{result.spec.benchmark.name}, run {result.spec.run}" for result in results)
    write_output(_entry(found, "; ".join(origin)), options.output_file)
    return ExitCode.ANSWER


def _entry(found: MeasuredLink, origin: str) -> str:
    body: dict[str, Any] = json.loads(str(found.link))
    comments = "".join(f"# {text}\n" for text in (f"Measured by {origin}.", *found.notes))
    return comments + yaml.safe_dump({"links": [body]}, sort_keys=False)


def _config_map(found: MeasuredLink) -> str:
    head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": found.link.name}, "immutable": True}
    return yaml.safe_dump({**head, "data": dict(found.trace)}, sort_keys=False)
