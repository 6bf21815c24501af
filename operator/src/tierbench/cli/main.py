"""The command line: parses arguments, runs a command, turns every problem into one line and an exit code."""

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Final, NoReturn

from tierbench.cli import advise, compare, export, init, report, rerun, results, watch
from tierbench.cli.errors import ExitCode, UserError

COMMANDS: Final = (init, watch, rerun, results, advise, compare, report, export)
PROGRAM: Final = "kubectl tierbench"
GARBAGE_THRESHOLD: Final = 1_000_000
"""New objects between two looks for garbage: thousands of results are all needed, and each look goes through them."""


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, and where help is."""

    def error(self, message: str) -> NoReturn:
        """Ends the program."""
        self.exit(ExitCode.UNUSABLE, f"{self.prog}: {message}; see `{self.prog} --help`\n")


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    root = Parser(prog=PROGRAM, description="Ask tierbench: on which class of node should a service run?")
    root.add_argument("--version", action="version", version=f"tierbench {version('tierbench')}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.register(commands)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and gives its exit code."""
    options = parser().parse_args(arguments)
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
        # The reader has seen enough; Python would complain once more when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    else:
        return code
    return ExitCode.ANSWER
