"""What all commands share: arguments, exit codes, errors and access to a cluster."""

import argparse
import asyncio
import math
import re
from collections.abc import Awaitable, Callable
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from tierbench.cli.cluster import Cluster

Answer = TypeVar("Answer")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATIONS: Final = (
    (2 * 60, "s", ""),
    (10 * 60, "m", "s"),
    (3 * 3600, "m", ""),
    (8 * 3600, "h", "m"),
    (2 * 86400, "h", ""),
    (8 * 86400, "d", "h"),
    (math.inf, "d", ""),
)
"""The unit of a duration below each limit, and the unit of the rest, as in `duration.HumanDuration` of Kubernetes."""


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
    parser.add_argument("-v", "--verbose", action="store_true", help="print the traceback of an unexpected error")


def add_result_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that select results."""
    parser.add_argument(
        "name", nargs="?", metavar="[KIND/]NAME", help="the benchmark (default: all benchmarks of the namespace)"
    )
    parser.add_argument("--run", type=run_number, dest="number", metavar="N", help="the run (default: the newest run)")
    parser.add_argument("--server-class", metavar="CLASS", help="select cases with servers on this node class")
    parser.add_argument("--client-class", metavar="CLASS", help="select cases with clients on this node class")
    parser.add_argument(
        "--where",
        type=_level,
        metavar="FACTOR=LEVEL",
        action="append",
        default=[],
        help="select cases at this level, as in tls=None; repeat it for further factors",
    )
    add_source_arguments(parser)


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that say where results are read from: namespaces and labels in a cluster, or files."""
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="read the results of all namespaces")
    parser.add_argument(
        "-l",
        "--selector",
        default="",
        metavar="SELECTOR",
        help="read only results with these labels, as in tierbench.io/run=3,team!=a",
    )
    add_from_argument(
        parser,
        "read a file instead of a cluster, or standard input (-). It is a .csv file that `export` wrote, or the "
        "output of `kubectl get results` with -o json or -o yaml. With `kubectl get tbf,results` it has the specs of "
        "benchmarks, too. Can be repeated",
    )


def add_from_argument(parser: argparse.ArgumentParser, text: str) -> None:
    """Adds the argument that names files to read, with this help."""
    parser.add_argument(
        "-f", "--from", dest="source", type=Path, metavar="FILE", action="append", default=[], help=text
    )


def add_output_argument(parser: argparse.ArgumentParser, *formats: str) -> None:
    """Adds the argument that names the output format. The first format is the default."""
    parser.add_argument(
        "-o",
        "--output",
        choices=formats,
        default=formats[0],
        metavar="FORMAT",
        help=f"the output format: {', '.join(formats)} (default: {formats[0]})",
    )


def add_file_argument(parser: argparse.ArgumentParser, default: str) -> None:
    """Adds the argument that names the file to write."""
    standard = "standard output" if default == "-" else default
    parser.add_argument(
        "--output-file",
        type=Path,
        default=Path(default),
        metavar="FILE",
        help=f"the file to write, or - for standard output (default: {standard})",
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


def run_number(text: str) -> int:
    """Parses the number of a run."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of a run: the first run is 1")
    return int(text)


def _level(text: str) -> tuple[str, str]:
    factor, sign, level = text.partition("=")
    if not (factor and sign and level):
        raise argparse.ArgumentTypeError(f"{text!r} is not FACTOR=LEVEL, as in fileSize=1Mi")
    return factor, level


def parse_duration(text: str) -> float:
    """Parses a duration as kubectl does, such as 90s or 1h30m, or a number of seconds. Returns seconds."""
    parts = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?", text)
    numbers = [int(number or 0) for number in parts.groups()] if parts else []
    total = sum(number * _SECONDS[unit] for number, unit in zip(numbers, "hms", strict=False))
    if not total:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: write 90, 90s, 10m or 1h30m")
    return float(total)


def duration(seconds: float) -> str:
    """Formats a duration as kubectl does for AGE, such as 40s, 2m10s, 65m or 5h12m."""
    whole = max(0, round(seconds))
    unit, rest = next((unit, rest) for limit, unit, rest in _DURATIONS if whole < limit)
    text = f"{whole // _SECONDS[unit]}{unit}"
    left = whole % _SECONDS[unit] // _SECONDS[rest] if rest else 0
    return f"{text}{left}{rest}" if left else text


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
