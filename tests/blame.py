"""Says whether a test or the last commit is to blame: `make test-blame TEST=tests/api/test_rules.py`.

Runs the test several times in this checkout and at the parent commit, idle and under load, in turn. A test of the Go
client is named as PACKAGE:TEST, such as ./internal/cli:TestStrikeKafka.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import go
from tests.load import load
from tests.soak import bound

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Prints failures by commit and load. Returns 1 if the test failed here."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.blame", description=__doc__)
    parser.add_argument("test", metavar="TEST", help="as pytest names it, or PACKAGE:TEST of the Go client")
    parser.add_argument("--runs", type=int, default=10, help="runs at each commit and load (10)")
    parser.add_argument("--load", type=int, default=4, help="busy loops of the loaded runs (4)")
    arguments = parser.parse_args()
    failures: dict[tuple[str, int], int] = {}
    with _parent() as parent:
        for loops in (0, arguments.load):
            with load(loops):
                for number in range(arguments.runs):
                    for commit, checkout in (("this checkout", ROOT), ("parent commit", parent)):
                        failed = _fails(arguments.test, checkout)
                        failures[commit, loops] = failures.get((commit, loops), 0) + failed
                        print(
                            f"run {number + 1}, load {loops}, {commit}: {'failed' if failed else 'passed'}", flush=True
                        )
    print(f"\n{'commit':14} {'load':>4} {'failures':>8} {'runs':>5} {'rate at most':>12}")
    for (commit, loops), count in failures.items():
        print(f"{commit:14} {loops:4} {count:8} {arguments.runs:5} {bound(count, arguments.runs):12.1%}")
    return 1 if any(count for (commit, _), count in failures.items() if commit == "this checkout") else 0


@contextmanager
def _parent() -> Iterator[Path]:
    """Yields a checkout of the parent commit, with its images built and this checkout's environment."""
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder, "parent")
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", checkout, "HEAD~1"], cwd=ROOT, check=True)
        try:
            (checkout / ".venv").symlink_to(ROOT / ".venv")
            subprocess.run([sys.executable, "-m", "images.build"], cwd=checkout, check=True)
            yield checkout
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", checkout], cwd=ROOT, check=True)


def _fails(test: str, checkout: Path) -> bool:
    if test.startswith("./"):
        package, _, name = test.partition(":")
        command, folder = go.command(package, name), checkout / go.MODULE.relative_to(ROOT)
    else:
        environment = [f"PYTHONPATH={checkout / 'operator' / 'src'}"]
        command, folder = ["env", *environment, sys.executable, "-m", "pytest", "--quiet", test], checkout
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    known = {0: False, 1: True}
    if done.returncode not in known:
        sys.exit(f"{test} did not run in {folder}:\n{done.stdout}{done.stderr}")
    return known[done.returncode]


if __name__ == "__main__":
    sys.exit(main())
