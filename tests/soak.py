"""Repeats the tests that depend on timing, under load: `make test-soak RUNS=15 LOAD=4 ONLY=tests/paho`.

It repeats the tests of the gate; with TIER=release in the environment it repeats those of the release tier.
Writes build/soak.jsonl, a line per test and run, and prints an upper bound on the failure rate of each test. Exits with
1 if any of them failed.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from scipy.stats import beta

from tests import go
from tests.junit import FAILED, PASSED, Outcome, outcomes
from tests.load import load

ROOT = Path(__file__).parents[1]
HISTORY = ROOT / "build" / "soak.jsonl"
SUITES = ("tests/operator", "tests/paho", "tests/contract", "tests/api", "tests/chart", "tests/e2e")
GO = "images/client"
MARKED = f"timing and not measures and {'' if os.environ.get('TIER') == 'release' else 'not '}release"
CONFIDENCE = 0.95


def main() -> int:
    """Runs all suites in turn, in another order each time."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.soak", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="ONLY", help=f"of {', '.join((*SUITES, GO))}, or test files")
    parser.add_argument("--runs", type=int, default=15, help="how often each test runs (15)")
    parser.add_argument("--load", type=int, default=4, help="busy loops at the same time (4)")
    arguments = parser.parse_args()
    suites = arguments.only or [*SUITES, GO]
    found: dict[str, list[str]] = defaultdict(list)
    HISTORY.parent.mkdir(exist_ok=True)
    with load(arguments.load), HISTORY.open("a") as history:
        for number in range(1, arguments.runs + 1):
            for suite in random.sample(suites, len(suites)):
                for one in _run(suite):
                    found[one.name].append(one.outcome)
                    record = {"run": number, "load": arguments.load, "test": one.name, "outcome": one.outcome}
                    history.write(json.dumps({**record, "seconds": one.seconds, "message": one.message}) + "\n")
                    history.flush()
                    if one.outcome == FAILED:
                        print(f"run {number}: FAILED {one.name}: {one.message.partition(chr(10))[0]}", flush=True)
            print(f"run {number} of {arguments.runs} has ended", flush=True)
    return _report(found)


def _run(suite: str) -> Iterator[Outcome]:
    """Runs a suite's tests that depend on timing once."""
    if suite.startswith(GO):
        for package, name in random.sample(known := go.tests("TestStrike"), len(known)):
            began, done = time.monotonic(), go.run(package, name)
            outcome = FAILED if done.returncode else PASSED
            yield Outcome(
                f"{package}:{name}", outcome, time.monotonic() - began, done.stdout if done.returncode else ""
            )
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "junit.xml")
        selected = [sys.executable, "-m", "pytest", suite, "-m", MARKED, "--quiet"]
        log = ROOT / "build" / f"soak-{suite.replace('/', '-')}.log"
        with log.open("a") as output:
            ended = subprocess.run(
                [*selected, f"--junitxml={file}"], cwd=ROOT, stdout=output, stderr=output, check=False
            )
        if file.exists():
            yield from outcomes(file)
        else:
            yield Outcome(f"{suite} to its end", FAILED, 0, f"pytest ended with {ended.returncode}: see {log}")


def bound(failures: int, runs: int) -> float:
    """Returns an upper bound on the failure rate, with a confidence of 95%, by Clopper and Pearson.

    Clopper, C. J. and Pearson, E. S. (1934): The use of confidence or fiducial limits. Biometrika 26, 404-413.
    """
    return 1.0 if failures == runs else float(beta.ppf(CONFIDENCE, failures + 1, runs - failures))


def _report(found: Mapping[str, Sequence[str]]) -> int:
    print(f"\n{'failures':>8} {'runs':>5} {'at most':>8}  test")
    failed = total = 0
    for name, results in sorted(found.items()):
        failures, runs = results.count(FAILED), len([one for one in results if one in (FAILED, PASSED)])
        failed, total = failed + failures, total + runs
        if runs:
            print(f"{failures:8} {runs:5} {bound(failures, runs):8.1%}  {name}")
    print(f"\n{total - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
