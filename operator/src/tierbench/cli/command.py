"""What all commands share: arguments, exit codes, errors and access to a cluster."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tierbench.cli.cluster import Cluster

Answer = TypeVar("Answer")


class ExitCode(IntEnum):
    """The exit code of a command. NO means that the benchmark failed, no class is best, or the second one is worse."""

    ANSWER = 0
    NO = 1
    UNUSABLE = 2
    INTERRUPTED = 130


class UserError(Exception):
    """A problem that the user can solve. The message is one line and says how."""


class UnknownKindError(UserError):
    """An object of an API version or a kind of benchmark that this version does not know. Commands skip it."""


def add_cluster_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that name a cluster and a namespace."""
    parser.add_argument("-n", "--namespace", metavar="NAME", help="the namespace (default: that of the context)")
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig")
    parser.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig (default: $KUBECONFIG or ~/.kube/config)")


def add_result_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that select results."""
    parser.add_argument(
        "name", nargs="?", metavar="[KIND/]NAME", help="the benchmark (default: all benchmarks of the namespace)"
    )
    parser.add_argument("--run", type=_run_number, dest="number", metavar="N", help="the run (default: the newest run)")
    parser.add_argument("--server", metavar="CLASS", help="select cases with servers on this node class")
    parser.add_argument("--client", metavar="CLASS", help="select cases with clients on this node class")
    parser.add_argument(
        "--where",
        type=_level,
        metavar="FACTOR=LEVEL",
        action="append",
        default=[],
        help="select cases at this level, as in tls=None; repeat it for further factors",
    )
    add_file_arguments(parser)


def add_file_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the argument that names files to read instead of a cluster."""
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="FILE",
        action="append",
        default=[],
        help="read a file instead of a cluster, or standard input (-). It is a .csv file that `export` wrote, or the "
        "output of `kubectl get results` with -o json or -o yaml. With `kubectl get ftb,results` it has the specs of "
        "benchmarks, too. Can be repeated",
    )


def add_published_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the argument that names files with published numbers."""
    parser.add_argument(
        "--beside",
        type=Path,
        metavar="FILE",
        action="append",
        default=[],
        help="show published numbers from this file, such as those of a paper, next to your cases. Verdicts do not "
        "use them. Can be repeated",
    )


def _run_number(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of a run: the first run is 1")
    return int(text)


def _level(text: str) -> tuple[str, str]:
    factor, sign, level = text.partition("=")
    if not (factor and sign and level):
        raise argparse.ArgumentTypeError(f"{text!r} is not FACTOR=LEVEL, as in fileSize=1Mi")
    return factor, level


def run_with_cluster(options: argparse.Namespace, query: "Callable[[Cluster], Awaitable[Answer]]") -> Answer:
    """Runs a coroutine with the cluster that the arguments name, and returns its result.

    Raises:
        UserError: the kubeconfig is unusable, or the API server does not answer or refuses a request.
    """
    from tierbench.cli.cluster import connect  # noqa: PLC0415 (slow to load; commands with --from do not need it)

    async def run() -> Answer:
        async with connect(options.kubeconfig, options.context, options.namespace) as cluster:
            return await query(cluster)

    return asyncio.run(run())
