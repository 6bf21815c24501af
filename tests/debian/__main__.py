"""Boots a stock Debian on which the project is set up, hands in the project and what is built, and runs steps there."""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from images import architectures
from tests.cluster import binaries
from tests.cluster.errors import ClusterError
from tests.cluster.processes import output, run
from tests.cluster.vm import Debian, Disk, UserNetwork, VirtualMachine, free_port
from tests.cluster.vm.virtual_machine import Drive

ROOT = Path(__file__).parents[2]
RELEASES = {"12": "bookworm", "13": "trixie"}
PROJECT = "/root/tierbench"
SLOWNESS = 6  # times as long as on a common machine: processors may be emulated
MEMORY = 8 << 30  # bytes, as the README asks for
SIZE = 20 << 30  # bytes of its disk

COMMANDS = {
    "check": "tools/check",
    "demo": "tools/demo demo tests/debian/demo",
    "full-demo": "tools/demo demo examples/file-transfer-demo",
}
TESTS = {
    "cluster": "tests/cluster",
    "evidence": "tests/e2e/test_evidence.py",
    "faults": "tests/e2e/test_faults.py",
}
STEPS = (*COMMANDS, *TESTS)
DEFAULT = ("check", "demo", "cluster", "evidence", "faults")
IMAGES = ("pause", "operator", "client", "nginx", "network")  # all would take a quarter of an hour to load

_TAKE_OVER = f"""set -e
mount -o ro /dev/vdb /mnt
mkdir -p /root/.cache/tierbench
cp -a /mnt/project/. {PROJECT}/
cp -a /mnt/cache/. /root/.cache/tierbench/
umount /mnt
cd {PROJECT}
touch .venv/demo .venv/installed
"""

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


def _run(release: str, steps: Sequence[str], folder: Path) -> int:
    machine = _machine(release, folder)
    began = time.monotonic()
    machine.boot()
    print(f"Debian {release} is up after {time.monotonic() - began:.0f} s", flush=True)
    failed = 0
    try:
        if machine.ssh.call(_TAKE_OVER) != 0:
            raise ClusterError("what is handed in cannot be taken over: see above")
        commands = _commands(steps)
        for name, command in commands.items():
            began = time.monotonic()
            code = machine.ssh.call(f"cd {PROJECT} && {command}")
            failed += code != 0
            print(f"{name}: {'failed' if code else 'passed'} after {time.monotonic() - began:.0f} s", flush=True)
    finally:
        machine.cut()
    print(f"{len(commands) - failed} passed, {failed} failed")
    return 1 if failed else 0


def _commands(steps: Sequence[str]) -> dict[str, str]:
    """What is called, by its name: all tests at once, after the rest, as each session of pytest sets a cluster up."""
    commands = {step: COMMANDS[step] for step in steps if step in COMMANDS}
    tests = {step: TESTS[step] for step in steps if step in TESTS}
    session = f"SLOWNESS={SLOWNESS} .venv/bin/pytest --durations=15 {' '.join(tests.values())}"
    return commands | ({", ".join(tests): session} if tests else {})


def _machine(release: str, folder: Path) -> VirtualMachine:
    handed = folder / "handed.ext4"
    _hand_in(handed, folder / "handed")
    return VirtualMachine(
        f"debian-{release}",
        folder / "machine",
        _disk(release),
        UserNetwork(free_port()),
        memory=MEMORY,
        size=SIZE,
        drives=(Drive(handed, writable=False),),
    )


def _disk(release: str) -> Disk:
    files = {f"{PROJECT}/{name}": (ROOT / name).read_text() for name in _SETUP}
    files[f"{PROJECT}/operator/src/tierbench/__init__.py"] = ""
    setup = f"chmod +x {PROJECT}/tools/*; make -C {PROJECT} setup"
    return Debian(release, architectures.host().name, packages=("make",), files=files, setup=setup).disk()


def _hand_in(image: Path, folder: Path) -> None:
    """A disk with the project as it stands here, its images, and Kubernetes as it is built."""
    built, project = binaries.build(binaries.asked()), folder / "project"
    shutil.copytree(built, folder / "cache" / built.name, symlinks=True)
    files = output("git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    for name in [*files, *(f"build/images/{image}.{kind}" for image in IMAGES for kind in ("tar", "sha256"))]:
        if (ROOT / name).exists():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, project / name, follow_symlinks=False)
    run("truncate", f"--size={SIZE}", str(image))
    run("mkfs.ext4", "-q", "-F", "-d", str(folder), str(image))


if __name__ == "__main__":
    sys.exit(main())
