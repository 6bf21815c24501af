"""Measures whole processes in alternation, and summarizes them."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from tierbench.api.trial_plan import PlanFields
from tierbench.workloads.manifests import plan_document

ROOT = Path(__file__).parents[2]
OUT = ROOT / "build" / "bench"
RUNS = 7
_FIRST, *_OTHERS = sorted(os.sched_getaffinity(0))
CLIENT_PROCESSORS = max(len(_OTHERS), 1)
"""The number of processors that `as_client` leaves to a client."""

Command = Sequence[str | Path]


@dataclass(frozen=True)
class Usage:
    """The seconds that one process took, and its output."""

    wall: float
    cpu: float
    printed: str


@dataclass(frozen=True)
class Comparison:
    """A comparison with a peer: both medians, the median ratio of the pairs, and the limits of this ratio."""

    name: str
    unit: str
    ours: float
    peer: float
    peer_name: str
    ratio: float
    low: float | None = None
    high: float | None = None

    @property
    def kept(self) -> bool:
        """Returns whether the ratio is within its limits."""
        return (self.low is None or self.ratio >= self.low) and (self.high is None or self.ratio <= self.high)


def measuring(client: Path, plan: PlanFields) -> Command:
    """Returns the command that measures a plan."""
    return [client, "measure", f"--plan={plan_document(plan)}", "--output=json"]


def as_server(command: Command) -> Command:
    """Returns a command that runs on the first processor. Clients do not use it, as if the server had its own node.

    Otherwise, under a heavy load, clients would differ in how often the kernel moves the server to another processor.
    """
    return ["taskset", "--cpu-list", str(_FIRST), *command]


def as_client(command: Command) -> Command:
    """Returns a command that runs on all processors except the first."""
    return ["taskset", "--cpu-list", ",".join(map(str, _OTHERS or [_FIRST])), *command]


def run(command: Command) -> Usage:
    """Runs a process to its end, and returns the times that the kernel accounts."""
    started = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with exit code {process.returncode}")
    return Usage(time.monotonic() - started, usage.ru_utime + usage.ru_stime, printed)


def in_turn(ours: Command, peer: Command, runs: int = RUNS) -> list[tuple[Usage, Usage]]:
    """Runs pairs in alternation, and returns them without the first one."""
    return [(run(ours), run(peer)) for _ in range(runs + 1)][1:]


def compare(
    name: str, unit: str, peer_name: str, pairs: list[tuple[Usage, Usage]], value: Callable[[Usage], float]
) -> Comparison:
    """Compares one quantity over all pairs."""
    ours, peer = ([value(pair[side]) for pair in pairs] for side in (0, 1))
    ratio = median(mine / theirs for mine, theirs in zip(ours, peer, strict=True))
    return Comparison(name, unit, median(ours), median(peer), peer_name, ratio)


def compare_tails(
    name: str, unit: str, peer_name: str, pairs: list[tuple[Usage, Usage]], value: Callable[[Usage], float]
) -> Comparison:
    """Compares a tail. One run has few samples of it, so the ratio is that of the medians over all runs."""
    found = compare(name, unit, peer_name, pairs, value)
    return replace(found, ratio=found.ours / found.peer)


def limit(name: str, unit: str, ours: float, bound: float) -> Comparison:
    """Compares a quantity with its limit."""
    return Comparison(name, unit, ours, bound, "limit", ours / bound, high=1.0)


def report(comparisons: list[Comparison]) -> None:
    """Prints a table, and writes build/bench/results.json.

    Raises:
        SystemExit: a ratio is not within its limits.
    """
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "results.json").write_text(json.dumps([asdict(item) for item in comparisons], indent=2) + "\n")
    print(f"{'':44} {'ours':>10} {'peer':>10} {'ratio':>7}")
    for item in comparisons:
        what = f"{item.name} [{item.unit}]"
        print(f"{what:44} {item.ours:10.3f} {item.peer:10.3f} {item.ratio:7.2f}  {item.peer_name}{_asked(item)}")
    beyond = [item.name for item in comparisons if not item.kept]
    if beyond:
        raise SystemExit(f"bench: beyond their limits: {', '.join(beyond)}")


def _asked(item: Comparison) -> str:
    least = "" if item.low is None else f", at least {item.low:.2f}"
    return least if item.high is None else f"{least}, at most {item.high:.2f}"
