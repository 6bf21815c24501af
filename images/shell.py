"""Runs programs. A failure is an error with the output of the program."""

import subprocess

_LINES = 20  # of a program's output that an error shows


class BuildError(Exception):
    """An image cannot be built. The message says why."""


def output(*command: str) -> str:
    """Returns what the program writes to standard output. Raises BuildError if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise BuildError(f"no program '{command[0]}': run tools/setup") from error
    if done.returncode != 0:
        output = (done.stdout + done.stderr).strip().splitlines()[-_LINES:]
        raise BuildError("\n".join([f"{' '.join(command)} failed:", *output]))
    return done.stdout


def run(*command: str) -> None:
    """Runs a program to its end. Raises BuildError if it fails."""
    output(*command)
