"""`kubectl tierbench export`: results for other programs."""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tierbench.api.model import API_VERSION, Resource
from tierbench.api.result import BenchmarkResult
from tierbench.cli.arguments import Subparsers, choose_results, command
from tierbench.cli.choice import chosen_runs, chosen_with_traces
from tierbench.cli.errors import ExitCode, UserError
from tierbench.cli.output import write
from tierbench.kinds.registry import kinds
from tierbench.report.timeline import Traces
from tierbench.results import table

Results = Sequence[BenchmarkResult]
OBJECTS: Final = "json"


def _as_objects(results: Results, traces: Traces) -> str:
    """Results, each followed by the trace of its case."""
    objects: list[Resource] = []
    for result in results:
        trace = traces.get((result.metadata.namespace or "default", result.metadata.name))
        objects += [result] if trace is None else [result, trace]
    items = [{"apiVersion": API_VERSION, "kind": one.KIND.kind, **one.to_json()} for one in objects]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2) + "\n"


def _as_parquet(results: Results) -> bytes:
    if find_spec("pyarrow") is None:
        raise UserError("parquet needs one more library: `pip install 'tierbench[parquet]'`, or take --format csv")
    from tierbench.results.parquet import to_parquet  # noqa: PLC0415 (an optional extra)

    return to_parquet(table.trial_table(results))


def _formats() -> Mapping[str, Callable[[Results], str | bytes]]:
    own = {name: export for kind in kinds() for name, export in kind.exports.items()}
    return {"csv": table.to_csv, "parquet": _as_parquet, **own}


def register(commands: Subparsers) -> None:
    """Adds the command."""
    text = "Give results to other programs: a table with a row a trial, objects, or the form of SINETStream's perftool."
    parser = command(commands, "export", run, text)
    choose_results(parser)
    parser.add_argument(
        "--format",
        choices=(*_formats(), OBJECTS),
        default="csv",
        help="csv, parquet, json, perftool (brokers), perftool-tsv",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("-"), metavar="FILE", help="where to write it; standard output"
    )


def run(options: argparse.Namespace) -> ExitCode:
    """Writes the results.

    Raises:
        UserError: there is nothing to write, it cannot be written, or a library is missing.
    """
    content = _objects(options) if options.format == OBJECTS else _table(options)
    if not content:
        raise UserError(f"none of these results is a broker's: {options.format} is for brokers, take --format csv")
    write(content, options.output)
    return ExitCode.ANSWER


def _objects(options: argparse.Namespace) -> str:
    runs, _, traces = chosen_with_traces(options)
    return _as_objects([result for each in runs for result in each.results], traces)


def _table(options: argparse.Namespace) -> str | bytes:
    runs, _ = chosen_runs(options)
    return _formats()[options.format]([result for each in runs for result in each.results])
