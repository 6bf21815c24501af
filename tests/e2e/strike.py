"""Causes faults within a trial on fast and slow machines. The clients are stopped while a test causes the fault."""

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
POLL_SECONDS, UNCHANGED_SECONDS, LIST_SECONDS = 0.02, 0.3, 1


class NotStruck(AssertionError):  # noqa: N818 -- an outcome of a test, as "passed" is
    """No fault fell into a trial. The harness failed, not the code under test."""


class Trial(NamedTuple):
    """A counted trial."""

    case: int
    number: int


def strike(
    running: Running,
    cluster: Cluster,
    fault: Callable[[], object],
    *,
    then: Callable[[], object] = lambda: None,
    trial: int = 1,
    slow: str = "",
    phases: tuple[str, ...] = ("Complete",),
    seconds: float = 300,
    load_bytes: int = UNDER_LOAD_BYTES,
) -> None:
    """Causes the fault during a trial, and waits until the run has one of the phases.

    The benchmark has just been applied, and has no preflight. The fault falls into this trial or a later one. Every
    client is stopped before the fault, when its network has moved `load_bytes`. Until the clients continue, the node
    `slow` has a slow link. `then` is called after they continue.
    """
    for attempt in range(ATTEMPTS):
        if attempt:
            _apply_with_twice_the_load(running)
        with ExitStack() as stack:
            if slow:
                stack.enter_context(cluster.link(slow, SLOW))
            caught = _catch(running, cluster, trial, load_bytes, stack, seconds)
            if not caught:
                continue
            time_of_fault = datetime.now(UTC)
            fault()
        then()
        running.wait_for_phase(*phases, seconds=seconds)
        if all(_was_open(running, each, time_of_fault) for each in caught):
            return
    raise NotStruck(
        f"{running.name}: in {ATTEMPTS} runs no trial from {trial} on was open when its clients were stopped"
    )


@contextmanager
def held(running: Running, cluster: Cluster) -> Iterator[None]:
    """Stops every running client in the context, whether a trial is open or not."""
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
    """Returns the trials that clients have started but not ended, according to the logs on their nodes."""
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
        """Returns the pids of its processes on this machine."""
        found = self.cluster.cgroups.pod(self.node, self.uid)
        return [process.pid for process in found if process.alive and process.name != "pause"]

    @property
    def trial(self) -> Trial | None:
        """Returns its open trial, unless it is a warm-up trial. Trials start and end with a line of output."""
        lines = [line for file in sorted(self.logs.glob("client/*.log")) for line in file.read_bytes().splitlines()]
        last = next((line for line in reversed(lines) if b'"record":"Trial' in line), b"")
        if b'"TrialStarted"' not in last or not last.endswith(b"}"):
            return None
        begun = json.loads(last[last.index(b"{") :])
        return None if begun["warmup"] else Trial(begun.get("case", 0), begun["trial"])

    @property
    def size(self) -> int:
        """Returns the size of the output that has arrived on its node's disk."""
        return sum(file.stat().st_size for file in self.logs.glob("client/*.log"))

    @property
    def moved_bytes(self) -> int:
        """Returns the bytes that its pod has sent and received, or 0 once it has ended."""
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


def _catch(
    running: Running, cluster: Cluster, number: int, load_bytes: int, stack: ExitStack, seconds: float
) -> set[Trial]:
    """Stops all clients within open trials of this number or later, until the stack ends, and returns the trials.

    Returns an empty set when the run is over.
    """
    end = time.monotonic() + seconds * TIMEOUT_FACTOR
    while _wait_for_load(running, cluster, number, load_bytes, end):
        with ExitStack() as hold:
            hold.enter_context(held(running, cluster))
            _wait_for_logs(running, cluster)
            caught = [each.trial for each in _clients(running, cluster)]
            if caught and all(trial and trial.number >= number for trial in caught):
                stack.enter_context(hold.pop_all())
                return {trial for trial in caught if trial}
    return set()


def _wait_for_load(running: Running, cluster: Cluster, number: int, load_bytes: int, end: float) -> bool:
    """Waits until every client has moved load in a trial of this number or later. Returns False if the run is over."""
    before: dict[tuple[_Client, Trial], int] = {}
    while True:
        clients, listed = _clients(running, cluster), time.monotonic()
        if running.status_in("Complete", "Failed"):
            return False
        assert listed < end, (
            f"trial {number} of {running.name} did not start. Open trials: {open_trials(running, cluster)}"
        )
        while time.monotonic() < listed + LIST_SECONDS:
            begun = [(each, trial) for each in clients if (trial := each.trial) and trial.number >= number]
            moved = [(each := pair[0].moved_bytes) - before.setdefault(pair, each) for pair in begun]
            if len(moved) == len(clients) > 0 and min(moved) > load_bytes:
                return True
            time.sleep(POLL_SECONDS)


def _wait_for_logs(running: Running, cluster: Cluster) -> None:
    """Waits until the output of the clients has arrived on their nodes' disks."""
    clients = _clients(running, cluster)
    sizes, since = [each.size for each in clients], time.monotonic()
    while time.monotonic() < since + UNCHANGED_SECONDS:
        time.sleep(POLL_SECONDS)
        if sizes != (found := [each.size for each in clients]):
            sizes, since = found, time.monotonic()


def kill_pod(running: Running, cluster: Cluster, role: str) -> None:
    """Deletes a pod of this role without grace period, and waits until its processes have ended."""
    pod = running.wait_for_pod(role)
    processes = cluster.cgroups.pod(pod["spec"]["nodeName"], pod["metadata"]["uid"])
    running.kubectl("delete", "pod", pod["metadata"]["name"], "--grace-period=0", "--force")
    wait_for(f"the processes of the {role} have ended", lambda: not any(process.alive for process in processes))


def _was_open(running: Running, trial: Trial, time_of_fault: datetime) -> bool:
    """Returns whether the load was running by the client's clock, or the trial was measured again later.

    A stopped client cannot end its trial, so the trial was open as long as the client was stopped.
    """
    for result in running.results:
        for found in result.get("status", {}).get("trials", ()) if int(result["spec"]["case"]) == trial.case else ():
            if found["trial"] == trial.number and not found.get("warmup"):
                start = datetime.fromisoformat(found["startTime"])
                end = start + timedelta(microseconds=found["durationNanoseconds"] / 1000)
                return start >= time_of_fault or end > time_of_fault
    return True


def _apply_with_twice_the_load(running: Running) -> None:
    """Applies the same benchmark again with twice the load."""
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
