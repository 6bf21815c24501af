"""Runs programs. A failure is one error with the output of the program."""

import subprocess

_LINES = 20  # of a program's output that an error shows


class BuildError(Exception):
    """An image cannot be built: the message says why."""


def output(*command: str) -> str:
    """What the program writes to standard output. Raises BuildError when it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise BuildError(f"no program '{command[0]}': run tools/setup") from error
    if done.returncode != 0:
        output = (done.stdout + done.stderr).strip().splitlines()[-_LINES:]
        raise BuildError("\n".join([f"{' '.join(command)} failed:", *output]))
    return done.stdout


def run(*command: str) -> None:
    """Run a program to its end. Raises BuildError when it fails."""
    output(*command)
