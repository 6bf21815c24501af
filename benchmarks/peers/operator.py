"""Measures the operator on the built-in cluster: its delay, and its memory while many benchmarks wait."""

import os
import re
import secrets
import time

from benchmarks.peers.by_hand import run_by_hand
from benchmarks.peers.measure import ROOT, Comparison, limit
from benchmarks.peers.watch import Pod, succeeded, watching
from tests.cluster import Cluster
from tests.e2e.benchmarks import HARDWARE, HOST_PATH, Running, file_transfer, node_class
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import Release
from tierbench.kinds.file_transfer.spec import FileTransferSpec

SIZES = [f"{number}Ki" for number in range(101, 113)]
QUEUED = 100


def comparisons() -> list[Comparison]:
    """Compares the operator with the project's limits."""
    cluster = Cluster(os.environ.get("CLUSTER_NAME", "tierbench"))
    cluster.up()
    cluster.load(sorted((ROOT / "build" / "images").glob("*.tar")))
    environment = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": f"{cluster.binaries}:{os.environ['PATH']}",
    }
    release = Release("tierbench", Kubectl(environment, "tierbench"))
    release.install()
    kubectl = Kubectl(environment, f"bench-{secrets.token_hex(3)}")
    kubectl.apply(*(node_class(name, hw=hardware) for name, hardware in HARDWARE.items()))
    kubectl.create_namespace()
    try:
        return [*_latencies(kubectl), _queue(kubectl, release)]
    finally:
        kubectl("delete", "filetransferbenchmarks", "--all", "--wait", timeout=300)
        kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


def _latencies(kubectl: Kubectl) -> list[Comparison]:
    """Compares a benchmark by the operator with the same one by hand."""
    manifest = file_transfer(fileSizes=SIZES, repetitions=1, storage=HOST_PATH)
    with watching(kubectl) as watch:
        applied = time.monotonic()
        kubectl.apply(manifest)
        Running(kubectl).wait_for_phase("Complete", seconds=180)
        end = watch.first(lambda pod: _is_client_of(len(SIZES), pod) and succeeded(pod))
        first = watch.first(lambda pod: True)
    nodes = {
        name: kubectl.list("nodes", f"hw={hardware}")[0]["metadata"]["name"] for name, hardware in HARDWARE.items()
    }
    by_hand = run_by_hand(kubectl, FileTransferSpec.model_validate(manifest["spec"]), nodes)
    whole = end - applied
    return [
        limit("apply to first pod", "s", first - applied, 1),
        Comparison("benchmark of 12 cases", "s", whole, by_hand, "the same by hand", whole / by_hand),
    ]


def _is_client_of(case: int, pod: Pod) -> bool:
    return bool(pod["metadata"]["labels"].get("tierbench.io/case") == str(case))


def _queue(kubectl: Kubectl, release: Release) -> Comparison:
    kubectl.apply(file_transfer("first", fileSizes=["512Mi"], repetitions=30, storage=HOST_PATH))
    kubectl.apply(*(file_transfer(f"queued-{number:03d}", storage=HOST_PATH) for number in range(QUEUED)))

    def all_queued() -> bool:
        return re.search(rf"^tierbench_queue_length {QUEUED}(\.0)?$", release.metrics(), re.MULTILINE) is not None

    wait_for(f"{QUEUED} benchmarks are queued", all_queued, 120)
    found = re.search(r"^process_resident_memory_bytes (\S+)$", release.metrics(), re.MULTILINE)
    assert found is not None
    return limit(f"RSS with {QUEUED} benchmarks queued", "MiB", float(found.group(1)) / 2**20, 150)
