"""Runs programs, and finds processes by what the kernel reports. There are no pid files that can be stale."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.errors import ClusterError
from tests.timeouts import pause


def run(*command: str, stdin: str | None = None) -> None:
    """Runs a program to its end. If it fails, the ClusterError has its standard error."""
    output(*command, stdin=stdin)


def output(*command: str, stdin: str | None = None) -> str:
    """Runs a program to its end and returns its output. Raises ClusterError if it fails."""
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ClusterError(f"no program '{command[0]}': run tools/setup") from error
    if done.returncode != 0:
        raise ClusterError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def wait(condition: Callable[[], bool], what: str, seconds: float) -> None:
    """Waits until the condition is true. After `seconds`, raises a ClusterError that names `what`."""
    deadline = time.monotonic() + seconds
    while True:
        start = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        if now > deadline:
            raise ClusterError(f"waited {seconds:.0f} s without success: {what}")
        time.sleep(pause(now - start, 0.05))


@dataclass(frozen=True)
class Process:
    """A process by its pid on the host."""

    pid: int

    @property
    def alive(self) -> bool:
        """Returns whether the process exists and is not a zombie."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False

    @property
    def name(self) -> str:
        try:
            return Path(f"/proc/{self.pid}/comm").read_text().strip()
        except OSError:
            return ""

    @property
    def program(self) -> bytes:
        """Returns an identifier of the program that the process executes now. It is empty if there is no process."""
        try:
            return Path(f"/proc/{self.pid}/auxv").read_bytes()
        except OSError:
            return b""

    @property
    def command(self) -> list[str]:
        try:
            return Path(f"/proc/{self.pid}/cmdline").read_text().split("\0")[:-1]
        except OSError:
            return []

    def child(self) -> "Process | None":
        try:
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        except OSError:
            return None
        return Process(int(children[0])) if children else None

    def has_environment(self, variable: str) -> bool:
        try:
            return variable.encode() in Path(f"/proc/{self.pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return False

    def send(self, number: signal.Signals) -> None:
        """Sends a signal, unless the process is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)


def processes() -> Iterator[Process]:
    """Yields every process of this machine."""
    return (Process(int(name)) for name in (entry.name for entry in Path("/proc").iterdir()) if name.isdigit())


_found: dict[tuple[str | None, str], Process] = {}  # reading all processes takes long where they are emulated


def find(program: str | None, variable: str) -> Process | None:
    """Returns the process of this program (None: any) that has the environment variable (NAME=VALUE)."""

    def fits(process: Process) -> bool:
        return program in (None, process.name) and process.has_environment(variable)

    known = _found.get((program, variable))
    if known is not None and fits(known):
        return known
    found = next(filter(fits, processes()), None)
    if found is not None:
        _found[program, variable] = found
    return found


def spawn(command: list[str], variable: str, log: Path, enter: Callable[[], None]) -> None:
    """Starts a program that outlives this one. `find` finds it by the environment variable (NAME=VALUE).

    `enter` runs in the new process before the program.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    key, _, value = variable.partition("=")
    with log.open("ab") as file:
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            cwd="/",
            env={"GOGC": "400", **os.environ, key: value},  # memory costs less than CPU, which tests measure with
            start_new_session=True,
            preexec_fn=enter,  # noqa: PLW1509 (this program has no other thread then)
        )
