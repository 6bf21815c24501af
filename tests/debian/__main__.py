"""Boots a stock Debian with what the project needs installed, hands in the project and what is built, and runs steps there."""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.cluster import binaries
from tests.cluster.errors import ClusterError
from tests.cluster.processes import run
from tests.cluster.vm import ARCHITECTURES, Debian, UserNetwork, VirtualMachine, free_port
from tests.cluster.vm.virtual_machine import Drive

ROOT = Path(__file__).parents[2]
RELEASES = {"12": "bookworm", "13": "trixie"}
PROJECT = "/root/tierbench"
PATIENCE = 6  # times as long as on a common machine: processors may be emulated
MEMORY = 8 << 30

_PYTEST = f"PATIENCE={PATIENCE} .venv/bin/pytest --durations=15"
STEPS = {
    "check": "tools/check",
    "demo": "tools/demo demo tests/debian/demo",
    "full-demo": "tools/demo demo examples/file-transfer-demo",
    "cluster": f"{_PYTEST} tests/cluster",
    "e2e": f"{_PYTEST} tests/e2e/test_evidence.py tests/e2e/test_faults.py",
}
DEFAULT = ("check", "demo", "cluster", "e2e")

# What decides what `make setup` installs; it runs once, when the disk is made.
_SETUP = ("Makefile", "tools/setup", "tools/go", "operator/pyproject.toml", "operator/constraints.txt")


def main() -> int:
    """Run the steps; the exit status says whether all passed."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.debian", description=__doc__)
    parser.add_argument("release", choices=RELEASES, help="Debian's version")
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"{', '.join(STEPS)}; by default {' '.join(DEFAULT)}")
    arguments = parser.parse_args()
    steps = arguments.steps or DEFAULT
    unknown = [step for step in steps if step not in STEPS]
    if unknown:
        parser.error(f"no step '{unknown[0]}'; there are {', '.join(STEPS)}")
    try:
        with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
            return _run(RELEASES[arguments.release], steps, Path(folder))
    except ClusterError as error:
        print(f"debian: {error}", file=sys.stderr)
        return 1


def _run(release: str, steps: list[str], folder: Path) -> int:
    machine = _machine(release, folder)
    began = time.monotonic()
    machine.boot()
    failed = 0
    try:
        print(f"Debian {release} is up after {time.monotonic() - began:.0f} s", flush=True)
        machine.ssh.check(_TAKE_OVER)
        for step in steps:
            began = time.monotonic()
            code = machine.ssh.call(f"cd {PROJECT} && {STEPS[step]}")
            failed += code != 0
            print(f"{step}: {'failed' if code else 'passed'} after {time.monotonic() - began:.0f} s", flush=True)
    finally:
        machine.cut()
    print(f"{len(steps) - failed} passed, {failed} failed")
    return 1 if failed else 0
