"""Benchmarks as the API server returns them, at the stages of a run."""

import threading
from collections.abc import Callable
from typing import Any

from tests.unit.apiserver.server import ApiServer
from tierbench.api.result import RESULTS, BenchmarkResult
from tierbench.workloads.workload import LABEL_BENCHMARK, LABEL_KIND

Raw = dict[str, Any]


def benchmark(phase: str, ended: int = 0, total: int = 2, **status: Any) -> Raw:
    run = {"number": 1, "startTime": "2026-05-04T09:00:00Z"}
    known = {} if phase == "Pending" else {"observedGeneration": 1}
    return {
        "apiVersion": "tierbench.io/v1alpha1",
        "kind": "FileTransferBenchmark",
        "metadata": {"name": "file-transfer", "namespace": "default", "uid": "u1", "generation": 1},
        "spec": {
            "servers": {"nodeClassNames": ["cloud", "jetson"]},
            "clients": {"nodeClassNames": ["user"]},
            "fileSizes": ["1M"],
        },
        "status": {**known, "phase": phase, "run": run, "cases": {"total": total, "finished": ended}, **status},
    }


def current(trials: int) -> Raw:
    return {
        "name": "1M, cloud to user",
        "result": "ft-file-transfer-r1-c001",
        "finishedTrials": trials,
        "totalTrials": 2,
    }


def condition(kind: str, status: str, reason: str, message: str) -> Raw:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-05-04T09:00:00Z",
        "observedGeneration": 1,
    }


def run_in_background(act: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def put_result(store: ApiServer, result: BenchmarkResult) -> None:
    raw, benchmark = result.to_json(), result.spec.benchmark
    labels = {LABEL_KIND: benchmark.kind, LABEL_BENCHMARK: benchmark.name}
    store.put(RESULTS, {**raw, "metadata": {**raw["metadata"], "labels": labels}})
