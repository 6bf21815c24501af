"""The operator makes room on a real API server, and both writers of a benchmark's status leave each other's parts."""

import asyncio
from pathlib import Path

import pytest

from tests.api.lossy_proxy import lossy_proxy
from tests.api.objects import smallest
from tests.api.operator import operator
from tests.api.server import ApiServer, Json
from tests.api.waiting import eventually
from tierbench.api.model import API_VERSION
from tierbench.api.policy import Quotas
from tierbench.api.result import BenchmarkResult
from tierbench.controller import retention
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark

pytestmark = [pytest.mark.apiserver, pytest.mark.timing]

OURS = f"/apis/{API_VERSION}/namespaces/stored"
BENCHMARK = f"{OURS}/filetransferbenchmarks/files"
RESULTS = f"{OURS}/benchmarkresults"
EVENTS = "/api/v1/namespaces/stored/events"
APPLY = {"Content-Type": "application/apply-patch+yaml"}
QUOTAS = Quotas(stored_bytes="40k").model_copy(update={"eviction_notice_seconds": 1})
RUNS = (1, 2, 3)
TIME = "2026-01-01T00:00:0{}Z"


def apply_status(server: ApiServer, path: str, body: Json, status: Json) -> Json:
    head = {key: body[key] for key in ("apiVersion", "kind")} | {"metadata": {"name": body["metadata"]["name"]}}
    query = "fieldManager=tierbench&force=true&fieldValidation=Strict"
    return server.request("PATCH", f"{path}/status?{query}", {**head, "status": status}, APPLY)


def add_result(server: ApiServer, run: int, stored: int) -> None:
    body = smallest(BenchmarkResult, f"r{run}-{stored}")
    body["spec"]["run"] = run
    server.request("POST", RESULTS, body)
    apply_status(server, f"{RESULTS}/r{run}-{stored}", body, {"phase": "Failed", "storedBytes": stored})


def add_ended_benchmark(server: ApiServer, runs: int) -> None:
    body = smallest(FileTransferBenchmark, "files")
    server.request("POST", f"{OURS}/filetransferbenchmarks", body)
    run = {"number": runs, "startTime": TIME.format(1), "completionTime": TIME.format(2)}
    said = {"type": "Complete", "status": "True", "reason": "So", "message": "So.", "observedGeneration": 1}
    complete = {**said, "lastTransitionTime": TIME.format(2)}
    status = {"phase": "Complete", "observedGeneration": 1, "run": run, "conditions": [complete]}
    apply_status(server, BENCHMARK, body, status)


async def test_the_oldest_run_is_announced_and_goes_while_another_run_is_under_way(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_PERIOD_SECONDS", 0.1)
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "stored"}})
    add_ended_benchmark(server, len(RUNS))
    for run in RUNS:
        add_result(server, run, 10_000)

    async def ask(method: str, path: str, body: Json | None = None, headers: Json | None = None) -> Json:
        return await asyncio.to_thread(server.request, method, path, body, headers)

    async def status() -> Json:
        found: Json = (await ask("GET", BENCHMARK))["status"]
        return found

    async def announced() -> bool:
        return 1 in [item["run"] for item in (await status()).get("evictions", ())]

    async def fourth_run_begun() -> bool:
        number: int = (await status())["run"]["number"]
        return number == len(RUNS) + 1

    async def gone() -> bool:
        return not await announced()

    async with lossy_proxy(server) as (_, url), operator(url, tmp_path, monkeypatch, "stored", QUOTAS):
        await eventually(announced)
        assert {item["type"]: item["status"] for item in (await status())["conditions"]} == {
            "Complete": "True",
            "EvictionPending": "True",
        }
        rerun = {"spec": {"runPolicy": {"rerun": "again"}}}
        await ask("PATCH", BENCHMARK, rerun, {"Content-Type": "application/merge-patch+json"})
        await eventually(fourth_run_begun)
        assert await announced()
        await asyncio.to_thread(add_result, server, 2, 9_999)
        await eventually(gone)
        assert await fourth_run_begun()
        names = {item["metadata"]["name"] for item in (await ask("GET", RESULTS))["items"]}
        events = sorted((await ask("GET", EVENTS))["items"], key=lambda item: int(item["metadata"]["resourceVersion"]))
        await ask("DELETE", BENCHMARK)
    assert {name for name in names if name.startswith(("r1", "r3"))} == {"r3-10000"}
    reasons = [item["reason"] for item in events if item["reason"] in {"EvictionPending", "Evicted"}]
    assert reasons[0] == "EvictionPending"
    assert reasons.count("Evicted") == 1
