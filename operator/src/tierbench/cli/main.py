"""The command line: parses arguments, runs a command, prints each problem as one line."""

import argparse
import gc
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from pkgutil import resolve_name
from textwrap import fill, indent
from typing import Final, NamedTuple, NoReturn

from tierbench.cli.command import ExitCode, UserError, add_cluster_arguments
from tierbench.cli.output import escaped_output

PROGRAM: Final = "kubectl tierbench"
_WIDTH: Final = 100
_MAXIMUM_ERROR: Final = 300
GARBAGE_THRESHOLD: Final = 1_000_000
"""Allocations between two garbage collections. Each collection visits all results, and a command needs all of them."""


class Command(NamedTuple):
    """A command: the function that adds its arguments, as `module:function`, a help text, and examples.

    Each example is a purpose, and the arguments of `kubectl tierbench` for it.
    """

    arguments: str
    help: str
    examples: Mapping[str, str]


# Modules are imported when their command is used: most are slow to import.
COMMANDS: Final[Mapping[str, Command]] = {
    "init": Command(
        "tierbench.cli.init:add_init",
        "Propose node classes and a first benchmark for the nodes of the cluster, as YAML with comments. Exit code 0: "
        "proposed, 2: not possible.",
        {
            "Print the objects": "init",
            "Create the objects in a namespace": "init --apply -n team-a",
            "Choose the name of the benchmark": "init --name first > first.yaml",
        },
    ),
    "doctor": Command(
        "tierbench.cli.doctor:add_doctor",
        "Check whether benchmarks can use node classes: images, logs, networks, clock, memory and disk. Short pods "
        "check a node of each class. Exit code 0: usable, 1: something is missing, 2: not possible.",
        {
            "Check all classes": "doctor",
            "Check two classes in a namespace, with the nodes that were used": "doctor cloud jetson -n team-a -o wide",
            "Check nodes without a pod network": "doctor edge --host-network --timeout 5m",
        },
    ),
    "join": Command(
        "tierbench.cli.join:add_join",
        "Invite a machine outside the cluster to an external node class. Prints the command to run on the machine: it "
        "has a token that is valid once, and not for long. Exit code 0: invited or removed, 2: not possible.",
        {
            "Invite a machine": "join laptop",
            "Name the member, and where it reaches the operator": "join phones --name anna --collector 192.0.2.7:30443",
            "Remove a member": "join phones --remove anna",
        },
    ),
    "estimate": Command(
        "tierbench.cli.init:add_estimate",
        "Estimate the time, traffic and storage of a run before you create its benchmark. Nodes that share a link, "
        "slow disks and refinement take longer.",
        {
            "Estimate the benchmarks of a manifest": "estimate -f benchmark.yaml",
            "Assume a network of 1 Gbit/s": "estimate -f benchmark.yaml --rate 1G",
            "Estimate the next run of a benchmark in the cluster": "estimate tbf/files -o wide",
        },
    ),
    "watch": Command(
        "tierbench.cli.watch:add_watch",
        "Show the progress of a benchmark until it ends. Exit code 0: complete, 1: failed, 2: unknown.",
        {
            "Watch a benchmark": "watch files",
            "Watch for half an hour at most": "watch files --timeout 30m",
            "Name the kind, if several benchmarks have the name": "watch tbf/files -n team-a",
        },
    ),
    "rerun": Command(
        "tierbench.cli.runs:add_rerun",
        "Start a new run of a benchmark, after the current run if there is one. Exit code 0: requested, 2: not "
        "possible.",
        {
            "Measure again": "rerun files",
            "Measure again, and watch the run for an hour and a half at most": "rerun files --watch --timeout 1h30m",
            "Name the kind, and the cluster": "rerun brokerbenchmark/telemetry --context edge",
        },
    ),
    "suspend": Command(
        "tierbench.cli.runs:add_suspend",
        "Suspend a benchmark: end its pods, release its nodes, and keep its trials. Exit code 0: suspended, 2: not "
        "possible.",
        {
            "Suspend a benchmark": "suspend files",
            "Name the kind": "suspend tbf/files",
            "Suspend a benchmark of another namespace": "suspend files -n team-a",
        },
    ),
    "resume": Command(
        "tierbench.cli.runs:add_resume",
        "Resume a suspended benchmark with its next trial. Exit code 0: resumed, 2: not possible.",
        {
            "Resume a benchmark": "resume files",
            "Resume a benchmark, and watch it": "resume tbf/files --watch",
            "Resume a benchmark of another namespace": "resume files -n team-a",
        },
    ),
    "delete-run": Command(
        "tierbench.cli.runs:add_delete_run",
        "Delete the results of runs that have ended. Exit code 0: deleted, 1: cancelled, 2: not possible.",
        {
            "Print what would be deleted": "delete-run files 3 --dry-run=client",
            "Delete a run after a question": "delete-run files 3",
            "Delete two runs without a question": "delete-run tbf/files 1 2 --yes",
        },
    ),
    "results": Command(
        "tierbench.cli.results:add_results",
        "Show the results: a table for each benchmark, and the answer.",
        {
            "Show the newest run of a benchmark": "results files",
            "Show every quantity of an earlier run": "results files --run 3 -o wide",
            "Show the results of a team in all namespaces": "results -A -l team=storage",
        },
    ),
    "advise": Command(
        "tierbench.cli.advise:add_advise",
        "Recommend a node class or settings for a service. Exit code 0: there is a best one. 1: no winner is shown. "
        "2: there are no usable results.",
        {
            "Answer a PlacementAdvice": "advise photos",
            "Ask for a workload": "advise --client-class user --size 512M=3 --size 2G --max-retries 0",
            "Choose settings from the results of a file": "advise -f all.json --choose broker,compression -o yaml",
        },
    ),
    "compare": Command(
        "tierbench.cli.compare:add_compare",
        "Compare two runs, benchmarks, node classes or settings in all cases that both measured. Exit code 0: B is not "
        "shown to be worse in any case. 1: B is worse in some case. 2: there is nothing to compare.",
        {
            "Compare two runs, and tolerate 5%": "compare files@2 files@3 --tolerance 5",
            "Compare two node classes": "compare cloud jetson --by p99",
            "Compare two settings": "compare tls=None tls=TLSv1.3 -o json",
        },
    ),
    "report": Command(
        "tierbench.cli.files:add_report",
        "Write a report: the answer, plots, evidence and every trial in one HTML file that needs no network.",
        {
            "Write report.html": "report files",
            "Choose the run and the file": "report files --run 3 --output-file files-3.html",
            "Write a report from a file": "report -f results.json",
        },
    ),
    "link": Command(
        "tierbench.cli.files:add_link",
        "Write what a NetworkBenchmark has measured as a link, which clients of another benchmark can imitate. Exit "
        "code 0: written, 2: not possible.",
        {
            "Print the entry for spec.links": "link field --name lte",
            "Choose one of several networks": "link field --client-class phone --server-class cloud",
            "Record the rates of each second, too": "link field --name drive --trace-file drive.yaml",
        },
    ),
    "export": Command(
        "tierbench.cli.files:add_export",
        "Write results for other programs: a table with one row per trial or per sample of TCP, objects, or the format "
        "of SINETStream's perftool.",
        {
            "Keep a run with its trials": "export files --run 3 -o json --output-file files-3.json",
            "Write a table of all namespaces for a notebook": "export -A -o parquet --output-file trials.parquet",
            "Write TCP over time, one row per sample": "export network -o tcp --output-file tcp.csv",
        },
    ),
}


class Parser(argparse.ArgumentParser):
    """Reports a wrong argument in one line that names the help."""

    def error(self, message: str) -> NoReturn:
        """Ends the program."""
        self.exit(ExitCode.UNUSABLE, f"{self.prog}: {message}; see `{self.prog} --help`\n")


def parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Returns the parser of all commands. Only commands that the arguments name have their own arguments."""
    root = Parser(
        prog=PROGRAM, description="Measure a service on classes of nodes, and find the class on which it should run."
    )
    root.add_argument("--version", action="version", version=f"tierbench {version('tierbench')}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        subparser = commands.add_parser(
            name,
            help=command.help,
            description=fill(command.help, _WIDTH),
            epilog=f"examples:\n{indent(show_examples(command), '  ')}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        if name in arguments:
            add_arguments(name, subparser)
    return root


def show_examples(command: Command) -> str:
    """Returns the examples of a command, each after its purpose as a comment."""
    return "\n".join(f"# {why}\n{PROGRAM} {how}" for why, how in command.examples.items())


def add_arguments(name: str, parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of a command."""
    add_cluster_arguments(parser)
    resolve_name(COMMANDS[name].arguments)(parser)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    with escaped_output():
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    options = parser(given).parse_args(given)
    gc.set_threshold(GARBAGE_THRESHOLD)
    try:
        code: ExitCode = options.run(options)
        sys.stdout.flush()
    except UserError as problem:
        print(f"{PROGRAM}: {problem}", file=sys.stderr)
        return ExitCode.UNUSABLE
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe. Without this, Python reports it again when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        if options.verbose:
            traceback.print_exc()
        print(_describe_defect(error), file=sys.stderr)
        return ExitCode.UNUSABLE
    else:
        return code
    return ExitCode.ANSWER


def _describe_defect(error: Exception) -> str:
    """Returns one line about an error that no command expects, and what to report."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(f"{type(error).__name__}: {error}".split())[:_MAXIMUM_ERROR]
    return (
        f"{PROGRAM}: unexpected error: {text} ({Path(place.filename).name}:{place.lineno}). This is a defect: report "
        f"this line, the command, and `{PROGRAM} --version`. With -v the command prints the traceback."
    )
