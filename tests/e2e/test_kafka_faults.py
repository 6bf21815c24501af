"""Kafka is killed, runs out of memory, or refuses a client. The reason is reported, and messages are counted."""

import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.cluster.processes import Process
from tests.e2e.benchmarks import Running, assert_nothing_left, broker
from tests.e2e.external_kafka import external_kafka
from tests.e2e.kubectl import Kubectl
from tests.e2e.operator_release import pids
from tests.e2e.strike import strike

LONG: dict[str, Any] = {
    "brokers": [{"name": "kafka", "kafka": {}}],
    "delivery": ["AtLeastOnce"],
    "pacing": {"type": "OpenLoop", "messagesPerSecond": 100},
    "load": {"messagesPerPublisher": 400},
    "repetitions": 1,
}


def measure(kubectl: Kubectl, name: str = "brokers", **spec: Any) -> Running:
    kubectl.apply(broker(name, **spec))
    return Running(kubectl, name, "brokerbenchmark")


def java(running: Running, cluster: Cluster) -> Process:
    """Returns the process of Kafka."""
    pod = running.wait_for_pod("server")["metadata"]["name"]
    found = map(Process, pids(cluster, running.kubectl.namespace, pod, "java"))
    return next(process for process in found if process.name == "java")


@pytest.mark.timing
def test_killed_kafka_loses_no_acknowledged_message(kubectl: Kubectl, cluster: Cluster) -> None:
    """A busy machine may take long to start Kafka again."""
    running = measure(kubectl, **LONG, timeouts={"deliveryMilliseconds": 120_000})
    strike(running, cluster, lambda: java(running, cluster).send(signal.SIGKILL), phases=("Complete", "Failed"))
    status = running.results[0]["status"]
    assert status["phase"] == "Complete", (status.get("message"), status["trials"])
    messages = status["counts"]["messages"]
    assert messages["reconnects"] >= 2
    assert messages["sent"] == messages["received"] + messages["lost"]
    assert messages["acknowledgedLost"] == 0
    assert_nothing_left(running)


@pytest.mark.release
@pytest.mark.timing
def test_kafka_that_runs_out_of_memory_is_reported(kubectl: Kubectl, cluster: Cluster) -> None:
    """The kernel kills Kafka during a trial. Kafka gets no memory at all, because a little would only make it slow."""
    forever = {**LONG, "pacing": {"type": "AsFastAsPossible"}, "load": {"durationSeconds": 600}}
    running = measure(kubectl, **forever)
    strike(running, cluster, lambda: _take_memory(java(running, cluster).pid), phases=("Failed",))
    status = running.results[0]["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "OutOfMemory"), status["message"]
    assert "container kafka" in status["message"]
    assert_nothing_left(running)


def _take_memory(pid: int) -> None:
    """Takes memory from the process, page cache first, in steps of 1 MiB, until the kernel kills the process.

    With control groups of version 1 the process gets no more memory at the end. The kernel kills it at its next page.
    """
    groups = [line.split(":", 2)[1:] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    path = next(path for controllers, path in groups if controllers in ("memory", ""))
    folders = (Path(f"/sys/fs/cgroup/memory{path}"), Path(f"/sys/fs/cgroup{path}"))
    folder = next(folder for folder in folders if folder.is_dir())
    names = {"memory.limit_in_bytes": "memory.usage_in_bytes", "memory.max": "memory.current"}
    limit, usage = next(item for item in names.items() if (folder / item[0]).exists())
    with suppress(OSError):
        while True:
            (folder / limit).write_text(str(int((folder / usage).read_text()) - 2**20))


@pytest.mark.release
def test_external_kafka_rejects_users_that_it_does_not_trust(kubectl: Kubectl) -> None:
    """One user has all permissions, one has none, and one has a wrong password."""
    address = external_kafka(kubectl, users=("trusted", "stranger"), trusted="trusted")
    accounts = {"trusted": "trusted", "stranger": "stranger", "forger": "trusted"}
    for name, user in accounts.items():
        data = {"username": user, "password": "wrong" if name == "forger" else user}
        kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})
    runs = {name: _measure_external(kubectl, name, address) for name in accounts}
    reasons = {name: running.results[0]["status"].get("reason", "") for name, running in runs.items()}
    assert reasons == {"trusted": "", "stranger": "NotAuthorized", "forger": "CredentialsRefused"}
    assert runs["trusted"].results[0]["status"]["counts"]["messages"]["received"] == 100


def _measure_external(kubectl: Kubectl, name: str, address: str) -> Running:
    external = {"address": address, "protocol": "Kafka", "secretRef": {"name": name}}
    timeouts = {"firstMessageSeconds": 120}
    running = measure(kubectl, name, brokers=[{"name": "site", "external": external}], servers=None, timeouts=timeouts)
    running.wait_for_phase("Complete", "Failed", seconds=120)
    assert_nothing_left(running)
    return running
