"""Running programs; a failure is one error with what the program said."""

import subprocess


class BuildError(Exception):
    """An image cannot be built: the message says why."""


def output(*command: str) -> str:
    """What the program writes to standard output. Raises BuildError when it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise BuildError(f"no program '{command[0]}': run tools/setup") from error
    if done.returncode != 0:
        raise BuildError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr).strip()}")
    return done.stdout


def run(*command: str) -> None:
    """Run a program to its end. Raises BuildError when it fails."""
    output(*command)
