"""The operator on the built-in cluster: how soon it acts, and what it needs while many benchmarks wait."""

import json
import os
import re
import secrets
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tests.bench.measure import Comparison, limit
from tests.cluster import Cluster
from tests.e2e.benchmarks import HARDWARE, Running, file_transfer, node_class
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import Release

SIZES = [f"{number}Ki" for number in range(101, 113)]
QUEUED = 100


@dataclass
class Watch:
    """Pods of a namespace as they change, each change with the time at which it was seen."""

    process: subprocess.Popen[str]
    seen: list[tuple[float, str, dict[str, Any]]] = field(default_factory=list)

    def read(self) -> None:
        """Reads until the watch ends: concatenated JSON objects."""
        assert self.process.stdout is not None
        decoder, text = json.JSONDecoder(), ""
        for line in self.process.stdout:
            text += line
            if line.startswith("}"):
                event, _ = decoder.raw_decode(text)
                self.seen.append((time.monotonic(), event["type"], event["object"]))
                text = ""

    def first(self, role: str, case: int | None = None, phase: str | None = None) -> float:
        """When a pod of this role (and case, and phase) was first seen."""
        for at, _, pod in self.seen:
            labels = pod["metadata"]["labels"]
            if labels.get("tierbench.io/role") != role or (phase is not None and pod["status"].get("phase") != phase):
                continue
            if case is None or labels.get("tierbench.io/case") == str(case):
                return at
        raise LookupError(f"no {role} pod of case {case} was seen")


@contextmanager
def watching(kubectl: Kubectl) -> Iterator[Watch]:
    """Watches the pods of a namespace."""
    command = ["kubectl", "-n", kubectl.namespace, "get", "pods", "--watch", "--output-watch-events", "-o", "json"]
    with subprocess.Popen(command, env=kubectl.environment, stdout=subprocess.PIPE, text=True) as process:
        watch = Watch(process)
        reader = threading.Thread(target=watch.read)
        reader.start()
        yield watch
        process.terminate()
        reader.join()


def comparisons() -> list[Comparison]:
    """Against the limits that the project has set itself."""
    cluster = Cluster(os.environ.get("CLUSTER_NAME", "tierbench"))
    environment = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": f"{cluster.binaries}:{os.environ['PATH']}",
    }
    release = Release("tierbench", Kubectl(environment, "tierbench"))
    release.install()
    kubectl = Kubectl(environment, f"bench-{secrets.token_hex(3)}")
    kubectl.apply(*(node_class(name, hw=hardware) for name, hardware in HARDWARE.items()))
    kubectl("create", "namespace", kubectl.namespace)
    try:
        return [*_latencies(kubectl), _queue(kubectl, release)]
    finally:
        kubectl("delete", "filetransferbenchmarks", "--all", "--wait", timeout=300)
        kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


def _latencies(kubectl: Kubectl) -> list[Comparison]:
    with watching(kubectl) as watch:
        applied = time.monotonic()
        kubectl.apply(file_transfer(fileSizes=SIZES, repetitions=1))
        Running(kubectl).wait_for_phase("Complete", seconds=180)
    gaps = [watch.first("client", case + 1) - watch.first("client", case, "Succeeded") for case in range(1, len(SIZES))]
    return [
        limit("apply to first pod", "s", watch.first("server") - applied, 1),
        limit("case end to next client pod, median", "s", median(gaps), 0.5),
    ]


def _queue(kubectl: Kubectl, release: Release) -> Comparison:
    kubectl.apply(file_transfer("first", fileSizes=["512Mi"], repetitions=30))
    kubectl.apply(*(file_transfer(f"queued-{number:03d}") for number in range(QUEUED)))

    def all_queued() -> bool:
        return re.search(rf"^tierbench_queue_length {QUEUED}(\.0)?$", release.metrics(), re.MULTILINE) is not None

    wait_for(f"{QUEUED} benchmarks are queued", all_queued, 120)
    found = re.search(r"^process_resident_memory_bytes (\S+)$", release.metrics(), re.MULTILINE)
    assert found is not None
    return limit(f"RSS with {QUEUED} benchmarks queued", "MiB", float(found.group(1)) / 2**20, 150)
