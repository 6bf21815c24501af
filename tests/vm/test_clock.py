"""Certificates and times are right although a node's clock is an hour late and a member's clock is in 1970."""

import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from images.architectures import host
from tests.cluster import Cluster, images
from tests.cluster.hardware import Hardware
from tests.cluster.test_life import host_objects
from tests.e2e.benchmarks import (
    API_VERSION,
    Running,
    assert_every_trial_once,
    assert_nothing_left,
    broker,
    file_transfer,
    node_class,
)
from tests.e2e.kubectl import Kubectl, tierbench, wait_for
from tests.e2e.operator_release import Release
from tests.e2e.test_outside import open_collector
from tests.operator.test_doctor import doctor
from tests.vm.conftest import FOLDER

ROOT = FOLDER.parents[1]
NODE = "late-1"
LATE: dict[str, Any] = {"nodeClassNames": ["late"]}
BOARD = {"apiVersion": API_VERSION, "kind": "NodeClass", "metadata": {"name": "board"}, "spec": {"external": True}}
ROLES = pytest.mark.parametrize("role", ["servers", "clients"])
HOUR = timedelta(hours=1)
IN_1970 = datetime(1970, 1, 2, tzinfo=UTC)  # on the first day, some machines would have booted before 1970
SLACK = timedelta(minutes=1)
PACED = {"type": "OpenLoop", "messagesPerSecond": 25}
TRIALS = 3
SECONDS = 600  # until a benchmark has ended


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster("vm-clock")
    try:
        cluster.up(FOLDER / "clock.toml")
        cluster.load([images.build(name) for name in ("client", "mosquitto", "nginx")])
        images.load(cluster.node("cloud-1"), [images.build("kafka")])
        images.load(cluster.node("user-1"), [images.build("operator")])
        yield cluster
    finally:
        cluster.down()
    assert host_objects(cluster) == []


@pytest.fixture(autouse=True)
def late_class(release: Release) -> None:
    """Creates the class of the late node, and waits until the operator notices its clock."""
    release.kubectl.apply(node_class("late", hw="late"))
    wait_for("its clock is noticed", lambda: skewed(release.kubectl.get("nodeclass", "late")), 120)


def skewed(item: dict[str, Any]) -> str:
    """Returns the message of the condition ClockSkewed, or an empty text if no clock is off."""
    conditions = item.get("status", {}).get("conditions", ())
    return next((one["message"] for one in conditions if one["type"] == "ClockSkewed" and one["status"] == "True"), "")


@ROLES
def test_file_transfers_run_despite_a_late_clock(kubectl: Kubectl, role: str) -> None:
    body = file_transfer(fileSizes=["16Mi"], tls=["TLSv1.3"], verifyDigest=True, **_places(role))
    for trial in measure(kubectl, body):
        transfer = trial["transfer"]
        assert transfer["digestVerified"] is True
        assert 0 < transfer["connectNanoseconds"] < trial["durationNanoseconds"]
        assert 0 < transfer["tlsNanoseconds"] < trial["durationNanoseconds"]
        assert 0 < transfer["firstByteNanoseconds"] < trial["durationNanoseconds"]


@ROLES
def test_brokers_run_despite_a_late_clock(kubectl: Kubectl, role: str) -> None:
    body = broker(tls=["TLSv1.3"], pacing=PACED, repetitions=TRIALS, **_places(role))
    assert_round_trips(measure(kubectl, body))


def test_class_reports_how_late_a_clock_is(kubectl: Kubectl) -> None:
    """The first report that the operator sees may be some minutes old. The next one is not."""
    expected = f"The clock of node {NODE} is about 60 min behind that of the API server."
    wait_for("the next report", lambda: expected in skewed(kubectl.get("nodeclass", "late")), 360)


def test_doctor_reports_how_late_a_clock_is(kubectl: Kubectl) -> None:
    _, found, _ = doctor(kubectl, "late", "cloud")
    clock = found["late"]["checks"]["clock"]
    assert clock["state"] == "Limited"
    seconds = re.search(rf"The clock of node {NODE} is at least ([0-9,]+) s behind", clock["whatToDo"])
    assert seconds
    assert HOUR / 2 < timedelta(seconds=int(seconds[1].replace(",", ""))) < HOUR + SLACK
    assert found["cloud"]["checks"]["clock"]["state"] == "Ok"


def test_member_in_1970_measures(kubectl: Kubectl, release: Release, cluster: Cluster) -> None:
    """A node cannot be in 1970, because the API server's certificate is not yet valid for its kubelet."""
    asked: dict[str, Any] = {"clients": {"nodeClassNames": ["board"]}, "access": "NodePort", "tls": ["TLSv1.3"]}
    with open_collector(release, cluster.addresses.node(0)), in_1970(cluster) as machine:
        kubectl.apply(BOARD)
        try:
            wait_for("the collector", lambda: "collector" in kubectl.get("nodeclass", "board")["status"])
            join(machine, tierbench(kubectl, "join", "board"))
            measure(kubectl, file_transfer(fileSizes=["16Mi"], verifyDigest=True, **asked))
            asked |= {"brokers": [{"name": "kafka", "kafka": {}}], "repetitions": TRIALS, "pacing": PACED}
            assert_round_trips(measure(kubectl, broker(**asked)))
            machine.signal("member", signal.SIGTERM)
        finally:
            kubectl("delete", "nodeclass", "board")


@contextmanager
def in_1970(cluster: Cluster) -> Iterator[Hardware]:
    """Stops the late node's kubelet, and sets its machine's clock to 1970 until the block ends."""
    machine = cluster.node(NODE).machine
    cluster.stop(f"{NODE}/kubelet")
    machine.run("date", f"--set=@{IN_1970.timestamp():.0f}")
    try:
        yield machine
    finally:
        machine.run("date", f"--set=@{(datetime.now(UTC) - HOUR).timestamp():.0f}")
        cluster.start(f"{NODE}/kubelet")


def join(machine: Hardware, command: str) -> None:
    """Runs the command that `kubectl tierbench join` has printed."""
    subprocess.run([ROOT / "images" / "programs", f"linux/{host().name}"], cwd=ROOT, check=True)
    program, *words = shlex.split(command)
    file = f"/root/{program}"
    with (ROOT / "build" / "programs" / f"{program}-linux-{host().name}").open("rb") as binary:
        subprocess.run(machine.inside("sh", "-c", f"cat >{file}; chmod +x {file}"), stdin=binary, check=True)
    machine.start("member", file, *words, "--state=/root/state")


def measure(kubectl: Kubectl, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs a benchmark, checks all times, and returns the trials. Trials on the late node start by its clock."""
    ahead = -HOUR if body["spec"]["clients"] == LATE else timedelta()
    begun = datetime.now(UTC)
    kubectl.apply(body)
    running = Running(kubectl, body["metadata"]["name"], body["kind"].lower())
    running.wait_for_phase("Complete", seconds=SECONDS)
    assert_every_trial_once(running, TRIALS)
    assert_nothing_left(running)
    ended, item, (result,) = datetime.now(UTC), running.object, running.results
    uses_node = LATE in (body["spec"]["servers"], body["spec"]["clients"])
    assert (f"The clock of node {NODE} is about" in skewed(item)) == uses_node
    run = item["status"]["run"]
    assert not run.get("outages")
    times = [run["startTime"], run["completionTime"], result["status"]["completionTime"]]
    times += [one["metadata"]["creationTimestamp"] for one in (item, result)]
    times += [one["lastTransitionTime"] for one in item["status"]["conditions"]]
    trials: list[dict[str, Any]] = result["status"]["trials"]
    for time in map(datetime.fromisoformat, times):
        assert begun - SLACK < time < ended + SLACK, times
    for trial in trials:
        assert begun - SLACK < datetime.fromisoformat(trial["startTime"]) - ahead < ended + SLACK
        assert timedelta() < timedelta(microseconds=trial["durationNanoseconds"] / 1000) < ended - begun
        assert trial["server"], "the agent was not reached"
    return trials


def assert_round_trips(trials: list[dict[str, Any]]) -> None:
    for trial in trials:
        exchange = trial["exchange"]
        assert exchange["sent"] == exchange["received"] > 0
        assert min(exchange["connectNanoseconds"], exchange["tlsNanoseconds"]) > 0
        assert 0 < trial["roundTrip"]["p50"] <= trial["roundTrip"]["p99"] < trial["durationNanoseconds"]


def _places(role: str) -> dict[str, Any]:
    """Returns the placement: servers or clients on the late node, the others on an ordinary node."""
    return {"servers": {"nodeClassNames": ["cloud"]}, "clients": {"nodeClassNames": ["user"]}} | {role: LATE}
