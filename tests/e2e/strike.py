"""Strikes that land within a trial, however slow the machine: the clients stand still while a test does harm."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from tests.cluster import Cluster
from tests.cluster.processes import Process
from tests.e2e.benchmarks import Running
from tests.e2e.kubectl import wait_for
from tests.timeouts import TIMEOUT_FACTOR

ATTEMPTS = 3
SLOW = "2mbit"
UNDER_LOAD_BYTES = 50_000
LOOK_SECONDS, STILL_SECONDS, LIST_SECONDS = 0.02, 0.3, 1


class NotStruck(AssertionError):  # noqa: N818 -- an outcome of a test, as "passed" is
    """No strike fell into a trial: the harness failed, not what it tests."""


class Trial(NamedTuple):
    """A trial that counts."""

    case: int
    number: int


def strike(
    running: Running,
    cluster: Cluster,
    harm: Callable[[], object],
    *,
    then: Callable[[], object] = lambda: None,
    trial: int = 1,
    slow: str = "",
    phases: tuple[str, ...] = ("Complete",),
    seconds: float = 300,
) -> None:
    """Do harm in mid-trial, `then` something else once clients go on, and wait until the run has one of the phases.

    The benchmark has just been applied, and has no preflight. The harm falls into this trial, or into the next one that
    is caught. Meanwhile every client stands still, and has moved some load. Until the harm is done, the node `slow` has
    a slow link.
    """
    for attempt in range(ATTEMPTS):
        if attempt:
            _apply_with_twice_the_load(running)
        with ExitStack() as stack:
            if slow:
                stack.enter_context(cluster.link(slow, SLOW))
            caught = _catch(running, cluster, trial, stack, seconds)
            if not caught:
                continue
            moment = datetime.now(UTC)
            harm()
        then()
        running.wait_for_phase(*phases, seconds=seconds)
        if all(_was_open(running, each, moment) for each in caught):
            return
    raise NotStruck(f"{running.name}: in {ATTEMPTS} runs no trial from {trial} on was open when its clients stood")


@contextmanager
def held(running: Running, cluster: Cluster) -> Iterator[None]:
    """Every client that runs stands still while the context lasts, within a trial or not."""
    stopped: set[int] = set()
    try:
        while found := {pid for client in _clients(running, cluster) for pid in client.pids} - stopped:
            for pid in found:
                Process(pid).send(signal.SIGSTOP)
            stopped |= found
        yield
    finally:
        for pid in stopped:
            Process(pid).send(signal.SIGCONT)


def open_trials(running: Running, cluster: Cluster) -> set[Trial]:
    """The trials that clients have begun and not ended, by the logs on their nodes."""
    return {trial for each in _clients(running, cluster) if (trial := each.trial)}


@dataclass(frozen=True)
class _Client:
    """A client pod on its node."""

    cluster: Cluster
    node: str
    uid: str
    logs: Path

    @property
    def pids(self) -> list[int]:
        """Its processes, by their pids on this machine."""
        found = self.cluster.cgroups.pod(self.node, self.uid)
        return [process.pid for process in found if process.alive and process.name != "pause"]

    @property
    def trial(self) -> Trial | None:
        """The one in which it is, warm-up apart: it prints a line when a trial begins, and one when it ends."""
        lines = [line for file in sorted(self.logs.glob("client/*.log")) for line in file.read_bytes().splitlines()]
        last = next((line for line in reversed(lines) if b'"record":"Trial' in line), b"")
        if b'"TrialStarted"' not in last or not last.endswith(b"}"):
            return None
        begun = json.loads(last[last.index(b"{") :])
        return None if begun["warmup"] else Trial(begun.get("case", 0), begun["trial"])

    @property
    def size(self) -> int:
        """How much it has printed, as far as it has come to its node's disk."""
        return sum(file.stat().st_size for file in self.logs.glob("client/*.log"))

    @property
    def moved(self) -> int:
        """Bytes that its pod has sent and received; none once it has ended."""
        with suppress(IndexError, OSError):
            lines = Path(f"/proc/{self.pids[0]}/net/dev").read_text().splitlines()
            (eth0,) = (line.partition(":")[2].split() for line in lines if line.strip().startswith("eth0:"))
            return int(eth0[0]) + int(eth0[8])
        return 0


def _clients(running: Running, cluster: Cluster) -> list[_Client]:
    found = []
    for pod in running.kubectl.list("pods", f"tierbench.io/benchmark={running.name},tierbench.io/role=client"):
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]:
            node = cluster.node(pod["spec"]["nodeName"])
            logs = node.folder / "root" / "var" / "log" / "pods" / f"{running.kubectl.namespace}_{name}_{uid}"
            found.append(_Client(cluster, node.profile.name, uid, logs))
    return found


def _catch(running: Running, cluster: Cluster, number: int, stack: ExitStack, seconds: float) -> set[Trial]:
    """Holds all clients, as long as the stack lasts, in open trials from this number on. None once the run is over."""
    end = time.monotonic() + seconds * TIMEOUT_FACTOR
    while _wait_for_load(running, cluster, number, end):
        with ExitStack() as hold:
            hold.enter_context(held(running, cluster))
            _wait_for_logs(running, cluster)
            caught = [each.trial for each in _clients(running, cluster)]
            if caught and all(trial and trial.number >= number for trial in caught):
                stack.enter_context(hold.pop_all())
                return {trial for trial in caught if trial}
    return set()


def _wait_for_load(running: Running, cluster: Cluster, number: int, end: float) -> bool:
    """Waits until every client has moved some load in a trial from this number on. False once the run is over."""
    before: dict[tuple[_Client, Trial], int] = {}
    while True:
        clients, listed = _clients(running, cluster), time.monotonic()
        if running.status_in("Complete", "Failed"):
            return False
        assert listed < end, f"trial {number} of {running.name} did not begin; open: {open_trials(running, cluster)}"
        while time.monotonic() < listed + LIST_SECONDS:
            begun = [(each, trial) for each in clients if (trial := each.trial) and trial.number >= number]
            moved = [(each := pair[0].moved) - before.setdefault(pair, each) for pair in begun]
            if len(moved) == len(clients) > 0 and min(moved) > UNDER_LOAD_BYTES:
                return True
            time.sleep(LOOK_SECONDS)


def _wait_for_logs(running: Running, cluster: Cluster) -> None:
    """Waits until what the clients have printed has come to their nodes' disks."""
    clients = _clients(running, cluster)
    sizes, since = [each.size for each in clients], time.monotonic()
    while time.monotonic() < since + STILL_SECONDS:
        time.sleep(LOOK_SECONDS)
        if sizes != (found := [each.size for each in clients]):
            sizes, since = found, time.monotonic()


def kill_pod(running: Running, cluster: Cluster, role: str) -> None:
    """Delete a pod of this role at once, and wait until its processes have ended."""
    pod = running.wait_for_pod(role)
    processes = cluster.cgroups.pod(pod["spec"]["nodeName"], pod["metadata"]["uid"])
    running.kubectl("delete", "pod", pod["metadata"]["name"], "--grace-period=0", "--force")
    wait_for(f"the {role} ends", lambda: not any(process.alive for process in processes))


def _was_open(running: Running, trial: Trial, moment: datetime) -> bool:
    """Whether the trial's load was, by the client's own clock, or the trial was measured again later.

    A client that stands cannot end a trial: one that was open then was open as long as the client stood.
    """
    for result in running.results:
        for found in result.get("status", {}).get("trials", ()) if int(result["spec"]["case"]) == trial.case else ():
            if found["trial"] == trial.number and not found.get("warmup"):
                start = datetime.fromisoformat(found["startTime"])
                end = start + timedelta(microseconds=found["durationNanoseconds"] / 1000)
                return start >= moment or end > moment
    return True


def _apply_with_twice_the_load(running: Running) -> None:
    """The same benchmark again, as it was applied before."""
    before = running.object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    body: dict[str, Any] = json.loads(before)
    spec = body["spec"]
    if "load" in spec:
        spec["load"] = {name: 2 * value for name, value in spec["load"].items()}
    if "durationSeconds" in spec:
        spec["durationSeconds"] *= 2
    if "fileSizes" in spec:
        spec["fileSizes"] = [f"{2 * int(size[:-2])}{size[-2:]}" for size in spec["fileSizes"]]
    running.kubectl("delete", running.kind, running.name, "--wait")
    running.kubectl.apply(body)
