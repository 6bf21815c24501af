"""`kubectl tierbench results`: tables in the form of a paper, the answer in words, and bars."""

import argparse

from rich.console import Console

from tierbench.cli.arguments import Subparsers, choose_beside, choose_results, command
from tierbench.cli.choice import chosen_runs
from tierbench.cli.errors import ExitCode
from tierbench.cli.files import read_files
from tierbench.cli.text import show_run

_WIDE = 200


def register(commands: Subparsers) -> None:
    """Adds the command."""
    text = "Show what was measured: a table for each benchmark, and the answer in words."
    parser = command(commands, "results", run, text)
    choose_results(parser)
    choose_beside(parser)


def run(options: argparse.Namespace) -> ExitCode:
    """Prints the results."""
    runs, _ = chosen_runs(options)
    published = read_files(options.beside).results
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDE
    for each in runs:
        console.print(*show_run(each, published), sep="\n")
    return ExitCode.ANSWER
