"""Compares time and memory of /metrics over many results, in its own process, with the project's limits."""

import asyncio
import urllib.request
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.peers.advice import RESULTS, results
from benchmarks.peers.measure import RUNS, Comparison, limit
from tests.ports import free_ports
from tierbench.domain.results import ResultStore
from tierbench.metrics.operator import OperatorMetrics
from tierbench.metrics.server import application, serve

SECONDS, MEGABYTES = 1, 250


def comparisons() -> list[Comparison]:
    """Measures a scrape of all results, and the memory of the process."""
    (port,) = free_ports(1)
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_serve, args=(port, there), daemon=True)
    process.start()
    assert here.recv() == "ready"
    times, size = [], 0
    for _ in range(RUNS):
        started = perf_counter()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            size = len(answer.read())
        times.append(perf_counter() - started)
    resident = _resident_megabytes(process.pid)
    process.terminate()
    process.join()
    assert size > RESULTS * 1000
    return [
        limit(f"/metrics of {RESULTS} results", "s", median(times), SECONDS),
        limit(f"/metrics of {RESULTS} results, memory", "MiB", resident, MEGABYTES),
    ]


def _resident_megabytes(pid: int | None) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (kibibytes,) = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
    return int(kibibytes) / 1024


def _serve(port: int, ready: Connection) -> None:
    """Runs the operator's HTTP server with a store of results."""
    store = ResultStore()
    run = {"number": 1, "startTime": "2026-11-20T22:00:00Z", "completionTime": "2026-11-20T23:00:00Z"}
    benchmark = {"kind": "FileTransferBenchmark", "metadata": {"name": "files", "namespace": "default"}}
    store.update_benchmark(benchmark | {"status": {"run": run}}, deleted=False)
    for result in results():
        store.update_result(result.to_json(), deleted=False)
    store.mark_filled()

    async def forever() -> None:
        metrics = OperatorMetrics()
        metrics.set_leader(True)
        async with serve(port, application(store, metrics)):
            ready.send("ready")
            await asyncio.Event().wait()

    asyncio.run(forever())
