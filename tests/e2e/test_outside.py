"""A machine outside the cluster joins an external class. It loses its connection, and measures the same as a pod."""

import json
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest

from images.architectures import host
from tests.cluster import Cluster
from tests.cluster.namespaces import Namespaces
from tests.cluster.processes import run
from tests.e2e.benchmarks import (
    API_VERSION,
    Running,
    assert_every_trial_once,
    assert_nothing_left,
    broker,
    file_transfer,
)
from tests.e2e.kubectl import Kubectl, tierbench, wait_for
from tests.e2e.operator_release import Release

ROOT = Path(__file__).parents[2]
PORT = 30443
CUT_SECONDS = 10
TRIALS = 5
LAPTOP = {"apiVersion": API_VERSION, "kind": "NodeClass", "metadata": {"name": "laptop"}, "spec": {"external": True}}


@dataclass
class Machine:
    """A network namespace that is connected to the cluster's switch, and the member that runs in it."""

    cluster: Cluster
    folder: Path
    name: str = "outside"
    member: subprocess.Popen[bytes] | None = None

    def plug(self) -> None:
        """Creates the namespace with an address in the cluster's network."""
        switch, address = self._switch, f"198.18.{self.cluster.addresses.number}.200/24"
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        run("ip", "link", "set", self.name, "netns", str(switch.pid))
        self.connect(True)
        switch.network("ip", "link", "set", self.name, "master", "switch")
        for words in (("address", "add", address, "dev", "eth0"), ("link", "set", "eth0", "up")):
            run("ip", "--netns", self.name, *words)

    @property
    def _switch(self) -> Namespaces:
        return cast(Namespaces, self.cluster.control_plane.machine)

    def connect(self, up: bool) -> None:
        """Sets the network interface up or down."""
        self._switch.network("ip", "link", "set", self.name, "up" if up else "down")

    def start(self, command: str) -> None:
        """Runs the command that `kubectl tierbench join` printed, as a user other than root."""
        program, *words = shlex.split(command)
        assert program == "tierbench-client"
        client, state = self.folder / "tierbench-client", self.folder / "state"
        if not client.exists():
            shutil.copy(ROOT / "build" / "programs" / f"tierbench-client-linux-{host().name}", client)
        state.mkdir(exist_ok=True)
        os.chown(state, 65534, 65534)
        within = ("ip", "netns", "exec", self.name, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        with (self.folder / "member.log").open("ab") as log:
            self.member = subprocess.Popen([*within, str(client), *words, f"--state={state}"], stderr=log)

    def kill(self) -> None:
        """Kills the member with a signal that it cannot handle."""
        if self.member is not None:
            self.member.kill()
            self.member.wait()

    @property
    def open_trial(self) -> int:
        """Returns the number of the open trial, according to the member's lines, or 0. Warm-up trials count, too."""
        lines = self.folder / "state" / "lines"
        records = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
        return int(records[-1]["trial"]) if records and records[-1]["record"] == "TrialStarted" else 0

    def freeze_in_trial(self, least: int = 1) -> None:
        """Stops the member in the middle of a trial with this number or a later one."""
        assert self.member is not None
        member = self.member

        def frozen() -> bool:
            member.send_signal(signal.SIGSTOP)
            if self.open_trial >= least:
                return True
            member.send_signal(signal.SIGCONT)
            return False

        wait_for("a trial of the member", frozen, 120)

    def unplug(self) -> None:
        self.kill()
        log = self.folder / "member.log"
        print(log.read_text() if log.exists() else "no member was started")
        subprocess.run(["ip", "netns", "delete", self.name], check=False)


@pytest.fixture
def machine(cluster: Cluster) -> Iterator[Machine]:
    """A machine outside the cluster."""
    subprocess.run([ROOT / "images" / "programs", f"linux/{host().name}"], cwd=ROOT, check=True)
    with TemporaryDirectory(prefix="tierbench-outside-") as folder:
        Path(folder).chmod(0o755)
        found = Machine(cluster, Path(folder), name=f"out-{cluster.name}"[:15])
        found.plug()
        try:
            yield found
        finally:
            found.unplug()


@contextmanager
def open_collector(release: Release, address: str) -> Iterator[None]:
    """Lets machines outside the cluster reach the collector in the context."""
    port = (f"collector.address={address}:{PORT}", "collector.serviceType=NodePort", f"collector.nodePort={PORT}")
    release.install("collector.enabled=true", *port)
    try:
        yield
    finally:
        release.install()


@pytest.mark.release
@pytest.mark.timing
def test_a_machine_outside_the_cluster_measures_the_same_as_a_pod(
    kubectl: Kubectl, release: Release, cluster: Cluster, machine: Machine
) -> None:
    with open_collector(release, cluster.addresses.node(2)):
        kubectl.apply(LAPTOP)
        try:
            measure(kubectl, machine)
            measure_a_broker(kubectl)
        finally:
            kubectl("delete", "nodeclass", "laptop")


def measure(kubectl: Kubectl, machine: Machine) -> None:
    running = Running(kubectl)
    spec: dict[str, Any] = {
        "clients": {"nodeClassNames": ["laptop", "user"]},
        "access": "NodePort",
        "repetitions": TRIALS,
    }
    kubectl.apply(file_transfer(**spec, fileSizes=["256Mi"], warmupTrials=1))
    wait_for("it waits for a member", lambda: running.condition("Scheduled").get("reason") == "NoMember")
    assert "`kubectl tierbench join laptop`" in running.condition("Scheduled")["message"]
    wait_for("the class knows the collector", lambda: "collector" in kubectl.get("nodeclass", "laptop")["status"])
    command = tierbench(kubectl, "join", "laptop")
    machine.start(command)

    machine.freeze_in_trial()
    machine.connect(False)
    cut_time = datetime.now(UTC)
    assert machine.member is not None
    machine.member.send_signal(signal.SIGCONT)
    wait_for("the cut is over", lambda: datetime.now(UTC) > cut_time + timedelta(seconds=CUT_SECONDS))
    machine.connect(True)

    machine.freeze_in_trial(2)
    machine.kill()
    machine.start(command)  # the token was used, and is not needed again

    running.wait_for_phase("Complete", seconds=300)
    assert_every_trial_once(running, TRIALS)
    results = {result["spec"]["client"]["nodeClass"]: result for result in running.results}
    trials = results["laptop"]["status"]["trials"]
    assert any(is_during(cut_time, trial) for trial in trials), (cut_time, trials)
    assert {trial.get("attempt", 1) for trial in trials} == {1, 2}
    assert all(trial["server"] for trial in trials if not is_during(cut_time, trial)), "the agent was not reached"
    assert_nothing_left(running)
    members = kubectl.get("nodeclass", "laptop")["status"]["members"]
    assert [(one["name"], one["os"], one["ready"]) for one in members] == [("laptop-1", "linux", True)]
    nodes = {node["metadata"]["name"] for node in kubectl.list("nodes")}
    assert not any("laptop" in name for name in nodes)
    medians = {name: median(result, cut_time) for name, result in results.items()}
    ratio = medians["laptop"] / medians["user"]
    print(f"a trial takes {medians} ns: {100 * (ratio - 1):+.1f}% outside")
    assert abs(ratio - 1) < 0.1, medians


def measure_a_broker(kubectl: Kubectl) -> None:
    """Asserts that the member, which was idle, exchanges messages over TLS."""
    running = Running(kubectl, "brokers", "brokerbenchmark")
    spec: dict[str, Any] = {"clients": {"nodeClassNames": ["laptop"]}, "access": "NodePort", "tls": ["TLSv1.3"]}
    kubectl.apply(broker(**spec, repetitions=3, encryption=["AES128GCM"]))
    running.wait_for_phase("Complete")
    assert_every_trial_once(running)
    assert_nothing_left(running)


def is_during(moment: datetime, trial: dict[str, Any]) -> bool:
    """Returns whether a moment is within a trial by the client's clock."""
    begun = datetime.fromisoformat(trial["startTime"])
    return begun <= moment <= begun + timedelta(microseconds=trial["durationNanoseconds"] / 1000)


def median(result: dict[str, Any], cut_time: datetime) -> int:
    """Returns the median duration of the counted trials, except the one during the cut."""
    trials = [one for one in result["status"]["trials"] if not one.get("warmup") and not is_during(cut_time, one)]
    return int(sorted(one["durationNanoseconds"] for one in trials)[len(trials) // 2])
