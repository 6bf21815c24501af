"""Runs a long step, and shows in one line how long it has taken and about how long it will still take.

Usage: python3 tools/progress.py TITLE SECONDS LOG COMMAND…. SECONDS is the time of the step on two processors from
empty caches. The output of the command is added to LOG. If the command fails, its last lines are printed.
"""

import subprocess
import sys
import time
from pathlib import Path

_LINES = 20  # of the log that a failure shows
_QUIET = 30  # seconds between lines if the output is no terminal


def _shown(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _left(seconds: float) -> str:
    return f"about {_shown(seconds)} left" if seconds >= 1 else "longer than usual"


def main() -> int:
    """Runs the command, and returns its exit code."""
    title, typical, log, command = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]
    terminal = sys.stdout.isatty()
    start, begin, end = ("\r", "", "\x1b[K") if terminal else ("", "\n", "\n")
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    print(f"{title} …", end=begin, flush=True)
    with log.open("a") as file:
        written = file.tell()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        while process.poll() is None:
            try:
                process.wait(1 if terminal else _QUIET)
            except subprocess.TimeoutExpired:
                passed = time.monotonic() - began
                print(f"{start}{title} … {_shown(passed)}, {_left(typical - passed)}", end=end, flush=True)
    failed = process.returncode != 0
    print(f"{start}{title}: {'failed' if failed else 'done'} in {_shown(time.monotonic() - began)}{end.strip()}")
    if failed:
        output = log.read_bytes()[written:].decode(errors="replace").splitlines()
        print("\n".join([*output[-_LINES:], f"(all of it: {log})"]), file=sys.stderr)
    return process.returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
