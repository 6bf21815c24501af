"""`kubectl tierbench report`: one self-contained HTML page."""

import argparse
from pathlib import Path

from tierbench.cli.arguments import Subparsers, choose_beside, choose_results, command
from tierbench.cli.choice import chosen_with_traces
from tierbench.cli.errors import ExitCode
from tierbench.cli.files import read_files
from tierbench.cli.output import write
from tierbench.report.page import render


def register(commands: Subparsers) -> None:
    """Adds the command."""
    text = "Write a report: the answer, plots, evidence and every trial in one HTML file that needs no network."
    parser = command(commands, "report", run, text)
    choose_results(parser)
    choose_beside(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("report.html"),
        metavar="FILE",
        help="where to write it (- for standard output); by default report.html",
    )


def run(options: argparse.Namespace) -> ExitCode:
    """Writes the report."""
    runs, specs, traces = chosen_with_traces(options)
    published = read_files(options.beside).results
    page = render(runs, specs, traces, [path.name for path in options.source], published)
    if write(page, options.output):
        print(f"{options.output}: {sum(len(each.results) for each in runs)} results, {len(page) // 1000} kB")
    return ExitCode.ANSWER
