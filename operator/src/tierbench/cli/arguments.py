"""Arguments that commands share."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tierbench.cli.errors import ExitCode

Handler = Callable[[argparse.Namespace], ExitCode]
Subparsers = Any  # argparse gives its class no public name


def command(commands: Subparsers, name: str, run: Handler, text: str) -> argparse.ArgumentParser:
    """A command with the arguments that say which cluster."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(run=run)
    parser.add_argument("-n", "--namespace", metavar="NAME", help="the namespace; by default that of the context")
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig")
    parser.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig; by default $KUBECONFIG or ~/.kube/config")
    return parser


def choose_results(parser: argparse.ArgumentParser) -> None:
    """The arguments that say which results."""
    parser.add_argument("name", nargs="?", metavar="[KIND/]NAME", help="the benchmark; by default all of the namespace")
    parser.add_argument("--run", type=_positive, dest="number", metavar="N", help="the run; by default the newest")
    parser.add_argument("--server", metavar="CLASS", help="only cases with servers on this node class")
    parser.add_argument("--client", metavar="CLASS", help="only cases with clients on this node class")
    parser.add_argument(
        "--where",
        type=_level,
        metavar="FACTOR=LEVEL",
        action="append",
        default=[],
        help="only cases at this level, as in tls=None; several times for several factors",
    )
    choose_files(parser)


def choose_files(parser: argparse.ArgumentParser) -> None:
    """The argument that says which files."""
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="FILE",
        action="append",
        default=[],
        help="read a file (- for standard input) instead of a cluster, or several: `kubectl get results -o json` or "
        "-o yaml, with ftb,results the benchmark's spec too; or a .csv as `export` writes it, published numbers too",
    )


def choose_beside(parser: argparse.ArgumentParser) -> None:
    """The argument that says which published numbers stand beside what was measured."""
    parser.add_argument(
        "--beside",
        type=Path,
        metavar="FILE",
        action="append",
        default=[],
        help="show the numbers of this file, a paper's for example, beside the cases that they are of; they are in no "
        "verdict; may be given again",
    )


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a run: runs count from 1")
    return int(text)


def _level(text: str) -> tuple[str, str]:
    factor, sign, level = text.partition("=")
    if not (factor and sign and level):
        raise argparse.ArgumentTypeError(f"{text!r} names no level: write FACTOR=LEVEL, as in fileSize=1Mi")
    return factor, level
