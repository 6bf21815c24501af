"""Kafka beside Mosquitto on a real cluster, and what is said of it when it is killed."""

import os
import signal
from pathlib import Path
from typing import Any

from tests.cluster import Cluster
from tests.e2e.benchmarks import Running, assert_every_trial_once, assert_nothing_left, broker
from tests.e2e.kubectl import Kubectl
from tests.e2e.operator_release import pids

KAFKA: dict[str, Any] = {"name": "kafka", "kafka": {}}
MOSQUITTO: dict[str, Any] = {"name": "mosquitto", "mosquitto": {}}
LONG: dict[str, Any] = {
    "brokers": [KAFKA],
    "delivery": ["AtLeastOnce"],
    "pacing": {"messagesPerSecond": 100},
    "load": {"durationSeconds": 12},
    "repetitions": 1,
}


def measure(kubectl: Kubectl, **spec: Any) -> Running:
    kubectl.apply(broker(**spec))
    return Running(kubectl, "brokers", "brokerbenchmark")


def loaded_broker(running: Running, cluster: Cluster) -> int:
    """The process of a Kafka that is in mid-trial."""
    pod = running.wait_for_pod("server")["metadata"]["name"]
    running.wait_for_trial()
    found = pids(cluster, running.kubectl.namespace, pod, "java")
    return next(pid for pid in found if Path(f"/proc/{pid}/comm").read_text().strip() == "java")


def test_both_brokers_in_one_table(kubectl: Kubectl) -> None:
    """Every delivery of both, encrypted and not, with the settings that were made for the node."""
    running = measure(
        kubectl,
        brokers=[MOSQUITTO, KAFKA],
        delivery=["AtMostOnce", "ExactlyOnce"],
        tls=["TLSv1.3"],
        kafka={"codecs": ["Lz4"], "partitions": [2]},
    )
    running.wait_for_phase("Complete", seconds=180)
    assert_every_trial_once(running, trials=2)
    results = running.results
    assert [item["spec"]["levels"]["broker"] for item in results] == ["mosquitto"] * 2 + ["kafka"] * 2
    for item in results:
        messages = item["status"]["counts"]["messages"]
        assert (messages["received"], messages.get("lost", 0)) == (100, 0)
    kafka = results[-1]
    assert kafka["spec"]["levels"]["codec"] == "Lz4"
    assert kafka["spec"]["service"]["settings"]["heap"].endswith("i")
    assert {"batchMessages", "brokerCpuPartsPerMillion"} <= set(kafka["status"]["statistics"])
    assert_nothing_left(running)


def test_killed_kafka_loses_nothing_that_it_acknowledged(kubectl: Kubectl, cluster: Cluster) -> None:
    running = measure(kubectl, **LONG)
    os.kill(loaded_broker(running, cluster), signal.SIGKILL)
    running.wait_for_phase("Complete", seconds=120)
    messages = running.results[0]["status"]["counts"]["messages"]
    assert messages["reconnects"] >= 2
    assert messages["sent"] == messages["received"] + messages["lost"]
    assert messages["acknowledgedLost"] == 0
    assert_nothing_left(running)


def test_kafka_without_memory_is_named(kubectl: Kubectl, cluster: Cluster) -> None:
    """Its heap is touched bit by bit, and the kernel kills it for what the node does not have."""
    running = measure(kubectl, **{**LONG, "pacing": {"asFastAsPossible": {}}, "load": {"durationSeconds": 60}})
    _hold_memory(loaded_broker(running, cluster))
    running.wait_for_phase("Failed", seconds=120)
    status = running.results[0]["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "OutOfMemory")
    assert "container kafka" in status["message"]
    assert_nothing_left(running)


def _hold_memory(pid: int) -> None:
    """No more than the process has now, by whichever control groups there are."""
    groups = [line.split(":", 2)[1:] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    path = next(path for controllers, path in groups if controllers in ("memory", ""))
    folders = (Path(f"/sys/fs/cgroup/memory{path}"), Path(f"/sys/fs/cgroup{path}"))
    folder = next(folder for folder in folders if folder.is_dir())
    names = {"memory.limit_in_bytes": "memory.usage_in_bytes", "memory.max": "memory.current"}
    limit, usage = next(item for item in names.items() if (folder / item[0]).exists())
    used = int((folder / usage).read_text())
    (folder / limit).write_text(str(used + 2**20))
