"""At limits.storedBytes a run waits on a real API server until a user deletes results, as its condition says."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.api.lossy_proxy import lossy_proxy
from tests.api.objects import changed, collection, item, smallest
from tests.api.operator import operator
from tests.api.server import ApiServer, Json
from tests.api.waiting import eventually
from tierbench.api.node_class import NodeClass
from tierbench.api.policy import Quotas
from tierbench.api.result import BenchmarkResult
from tierbench.domain import placement
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark as Files
from tierbench.kube.client import FIELD_MANAGER

pytestmark = pytest.mark.apiserver

APPLY = {"Content-Type": "application/apply-patch+yaml"}
NODES = "/api/v1/nodes"
TIME = "2026-01-01T00:00:0{}Z"
RUNS = (1, 2)


def add_nodes(server: ApiServer) -> None:
    """Adds one ready node each of the classes stored-server and stored-client."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": TIME.format(0)}
    for name in ("stored-server", "stored-client"):
        node = {"metadata": {"name": name, "labels": {"hw": name}}}
        server.request("POST", NODES, node)
        server.request("PUT", f"{NODES}/{name}/status", {**node, "status": {"conditions": [ready]}})
        selector = {"nodeSelector": {"matchLabels": {"hw": name}}}
        server.request("POST", collection(NodeClass), {**smallest(NodeClass, name), "spec": selector})


def apply_status(server: ApiServer, path: str, body: Json, status: Json) -> None:
    head = {key: body[key] for key in ("apiVersion", "kind")} | {"metadata": {"name": body["metadata"]["name"]}}
    query = f"fieldManager={FIELD_MANAGER}&force=true&fieldValidation=Strict"
    server.request("PATCH", f"{path}/status?{query}", {**head, "status": status}, APPLY)


def add_ended_runs(server: ApiServer, namespace: str) -> None:
    """Adds a benchmark that has ended two runs, each with a result of more than 10 kB, and that asks for a third."""
    body = changed(smallest(Files, "files"), "spec.runPolicy", {"rerun": "again"})
    body["spec"] |= {"servers": {"nodeClassNames": ["stored-server"]}, "clients": {"nodeClassNames": ["stored-client"]}}
    server.request("POST", collection(Files, namespace), body)
    run = {"number": len(RUNS), "startTime": TIME.format(1), "completionTime": TIME.format(2)}
    path = item(Files, "files", namespace)
    apply_status(server, path, body, {"phase": "Complete", "run": run})
    for number in RUNS:
        result = changed(smallest(BenchmarkResult, f"r{number}"), "spec.run", number)
        labels = {"kind": "FileTransferBenchmark", "benchmark": "files", "run": str(number)}
        result["metadata"]["labels"] = {f"tierbench.io/{key}": value for key, value in labels.items()}
        server.request("POST", collection(BenchmarkResult, namespace), result)
        path = item(BenchmarkResult, f"r{number}", namespace)
        apply_status(server, path, result, {"phase": "Failed", "storedBytes": 10_000})


async def test_a_run_waits_for_room_and_begins_when_results_are_deleted(
    server: ApiServer, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only the deletion can wake the benchmark.
    monkeypatch.setattr(placement._queue, "__kwdefaults__", {"seconds": 3600.0})
    add_nodes(server)
    add_ended_runs(server, namespace)

    async def ask(method: str, path: str) -> Json:
        return await asyncio.to_thread(server.request, method, path)

    async def status() -> Json:
        found: Json = (await ask("GET", item(Files, "files", namespace)))["status"]
        return found

    async def has_phase(phase: str) -> bool:
        return bool((await status())["phase"] == phase)

    async def names() -> set[str]:
        return {
            result["metadata"]["name"] for result in (await ask("GET", collection(BenchmarkResult, namespace)))["items"]
        }

    quotas = Quotas(stored_bytes="20k")
    async with lossy_proxy(server) as (_, url), operator(url, tmp_path, monkeypatch, namespace, quotas):
        await eventually(lambda: has_phase("Queued"))
        queued = next(each for each in (await status())["conditions"] if each["type"] == "Queued")
        assert (queued["status"], queued["reason"]) == ("True", "StorageFull")
        command = re.search(r"`kubectl delete benchmarkresults --namespace (\S+) --selector (\S+)`", queued["message"])
        assert command is not None, queued["message"]
        assert command[1] == namespace
        assert await names() == {"r1", "r2"}, "the operator has deleted results"
        await ask("DELETE", f"{collection(BenchmarkResult, namespace)}?labelSelector={command[2]}")
        await eventually(lambda: has_phase("Running"))
        assert await names() == {"r2"}
        assert (await status())["run"]["number"] == len(RUNS) + 1
        await ask("DELETE", item(Files, "files", namespace))
