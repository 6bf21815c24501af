"""`kubectl tierbench link`: writes what a benchmark has measured of a network as a link of another benchmark."""

import argparse
import json
import re
from pathlib import Path
from typing import Any, Final

import yaml

from tierbench.cli.command import ExitCode, UserError, add_file_argument, add_result_arguments
from tierbench.cli.objects import select_runs
from tierbench.cli.output import write_output
from tierbench.results.measured_link import MeasuredLink, measured_link

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,14}[a-z0-9])?")


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
    if not _NAME.fullmatch(text):
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
