"""The operator runs with CustomResourceDefinitions of other versions."""

import asyncio
import copy
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.api.definitions import MERGE, empty, ours, put_definitions
from tests.api.lossy_proxy import lossy_proxy
from tests.api.objects import changed, collection, item, smallest
from tests.api.operator import answer, operator
from tests.api.server import CRDS, ApiServer, Json, RefusedError
from tests.api.waiting import SECONDS, eventually, wait_for
from tierbench.api.model import API_VERSION, Resource
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.result import BenchmarkResult
from tierbench.controller import advisor, definitions, reconciler
from tierbench.controller.context import TRIES
from tierbench.domain import placement
from tierbench.generate.schemas import custom_resource_definition
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark as Files
from tierbench.kube.client import FIELD_MANAGER
from tierbench.kube.meta import Clock

pytestmark = [pytest.mark.apiserver, pytest.mark.timing]

RESULT = "ft-files-r1-c001"
LATER = "later.example.com"


def older() -> list[Json]:
    """Returns definitions that lack fields of statuses that this version writes."""
    found = copy.deepcopy(ours())
    for crd in found:
        status = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        for name in ("best", "storedBytes"):
            status.pop(name, None)
    return found


def newer() -> list[Json]:
    """Returns definitions with a phase and fields of a status that this version does not know."""
    found = copy.deepcopy(ours())
    for crd in found:
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        schema["status"]["properties"]["further"] = {"type": "string"}
        if crd["spec"]["names"]["kind"] == Files.KIND.kind:
            schema["status"]["properties"]["phase"]["enum"].append("Paused")
            schema["status"]["properties"]["run"]["properties"]["further"] = {"type": "string"}
    return found


def stricter() -> list[Json]:
    """Returns definitions in which each result requires a field that this version does not know."""
    found = newer()
    for crd in found:
        spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        if crd["spec"]["names"]["kind"] == BenchmarkResult.KIND.kind:
            spec["properties"]["further"] = {"type": "string"}
            spec["required"].append("further")
    return found


def served(crd: Json) -> Json:
    """Returns the single version of a definition."""
    (version,) = crd["spec"]["versions"]
    found: Json = version
    return found


def is_there(server: ApiServer, path: str) -> bool:
    try:
        server.request("GET", path)
    except RefusedError:
        return False
    return True


class Installation:
    """A namespace with a benchmark and an advice for which there are no nodes, and an operator that watches it."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self.server = server
        self.namespace = namespace
        self.port = 0
        bodies = (
            (NodeClass, smallest(NodeClass, "cloud")),
            (Files, changed(smallest(Files, "files"), "spec.timeouts", {"schedulingSeconds": 5})),
            (PlacementAdvice, smallest(PlacementAdvice, "advice")),
        )
        for model, body in bodies:
            server.request("POST", collection(model, namespace), body)

    @asynccontextmanager
    async def with_operator(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, retry_seconds: float = 0.1
    ) -> AsyncIterator["Installation"]:
        """Runs an operator whose clock is 60 times as fast, and which retries after `retry_seconds`."""
        began = datetime.now(UTC)
        monkeypatch.setattr(Clock, "now", lambda _: began + 60 * (datetime.now(UTC) - began))
        monkeypatch.setattr(placement, "_RETRY_SECONDS", 0.1)
        monkeypatch.setattr(definitions, "_PERIOD_SECONDS", 0.5)
        monkeypatch.setattr(advisor, "_ERROR_SECONDS", retry_seconds)
        monkeypatch.setattr(reconciler, "_ERROR_SECONDS", (retry_seconds,))
        async with (
            lossy_proxy(self.server) as (_, url),
            operator(url, folder, monkeypatch, self.namespace) as self.port,
        ):
            yield self

    def path(self, model: type[Resource], name: str) -> str:
        return item(model, name, self.namespace)

    def store(self, name: str, status: Json) -> None:
        """Writes the status of a benchmark as an operator does."""
        head = {"apiVersion": API_VERSION, "kind": Files.KIND.kind, "metadata": {"name": name}}
        path = f"{self.path(Files, name)}/status?fieldManager={FIELD_MANAGER}&force=true"
        self.server.request("PATCH", path, {**head, "status": status}, {"Content-Type": "application/apply-patch+yaml"})

    async def request(self, method: str, path: str, *more: Json) -> Json:
        """Sends a request without blocking the operator's event loop."""
        return await asyncio.to_thread(self.server.request, method, path, *more)

    async def replace(self, crds: Iterable[Json]) -> None:
        await asyncio.to_thread(put_definitions, self.server, crds)

    async def status(self, model: type[Resource], name: str) -> Json:
        found: Json = (await self.request("GET", self.path(model, name))).get("status", {})
        return found

    async def condition(self) -> tuple[str, str] | None:
        conditions = (await self.status(Files, "files")).get("conditions", ())
        return next(((c["status"], c["reason"]) for c in conditions if c["type"] == "DefinitionsDiffer"), None)

    async def has_phase(self, phase: str) -> bool:
        return (await self.status(Files, "files")).get("phase") == phase

    async def has_ended(self, run: int) -> bool:
        """Returns whether that run of the benchmark has ended."""
        found = (await self.status(Files, "files")).get("run", {})
        return found.get("number") == run and "completionTime" in found

    async def rerun(self) -> None:
        """Requests another run of the benchmark."""
        change = {"spec": {"runPolicy": {"rerun": "again"}}}
        await self.request("PATCH", self.path(Files, "files"), change, MERGE)

    async def is_answered(self) -> bool:
        return bool((await self.status(PlacementAdvice, "advice")).get("conditions"))

    async def class_is_known(self, name: str) -> bool:
        return bool(await self.status(NodeClass, name))

    async def is_gone(self, name: str) -> bool:
        return not await asyncio.to_thread(is_there, self.server, self.path(Files, name))

    async def event_count(self, reason: str) -> int:
        """Returns the number of events with this reason."""
        events = (await self.request("GET", f"/api/v1/namespaces/{self.namespace}/events"))["items"]
        return sum(event["reason"] == reason for event in events)

    async def has_event(self, reason: str) -> bool:
        return await self.event_count(reason) > 0

    async def reports_difference(self, reason: str) -> bool:
        """Returns whether /metrics reports that definitions differ."""
        sample = f'tierbench_definitions_differ{{reason="{reason}"}} 1.0'
        return sample in await answer(self.port, "metrics")

    async def waits_for_definitions(self) -> bool:
        return await self.condition() == ("True", "DefinitionsOlder")

    async def refused(self) -> int:
        """Returns the number of writes that the API server rejected."""
        found = re.findall(
            r'tierbench_api_requests_total{code="(?:400|422|500)",method="\w+"} (\d+)',
            await answer(self.port, "metrics"),
        )
        return sum(map(int, found))


@pytest.fixture
def installation(server: ApiServer, namespace: str) -> Iterator[Installation]:
    """A namespace in which definitions may be replaced."""
    yield Installation(server, namespace)
    empty(server)
    put_definitions(server, ours())


@pytest.fixture
def later(server: ApiServer) -> Iterator[str]:
    """Yields the path of a definition that equals ours of results, in a group of its own."""
    crd = custom_resource_definition(BenchmarkResult)
    crd["spec"]["group"] = LATER
    crd["metadata"]["name"] = f"{BenchmarkResult.KIND.plural}.{LATER}"
    path = f"{CRDS}/{crd['metadata']['name']}"
    server.request("POST", CRDS, crd)
    yield path
    server.request("DELETE", path)
    wait_for(lambda: not is_there(server, path), "the removal of the definition")


def test_a_version_with_an_equal_schema_needs_no_webhook(server: ApiServer, later: str) -> None:
    """Follows ADR 0059: serve the new version too, store it, then serve it alone. A sealed result does not change."""
    before, after = (
        f"/apis/{LATER}/{version}/namespaces/default/benchmarkresults" for version in ("v1alpha1", "v1beta1")
    )
    wait_for(lambda: is_there(server, before), "v1alpha1")
    status = {"phase": "Complete", "counts": {"completed": 10}, "storedBytes": 7}
    body = server.request("POST", before, smallest(BenchmarkResult, "measured") | {"apiVersion": f"{LATER}/v1alpha1"})
    server.request("PUT", f"{before}/measured/status", {**body, "status": status})
    old = served(server.request("GET", later)) | {"storage": False, "deprecated": True}
    new = old | {"name": "v1beta1", "storage": True, "deprecated": False}
    server.request("PATCH", later, {"spec": {"versions": [new, old]}}, MERGE)
    wait_for(lambda: is_there(server, f"{after}/measured"), "v1beta1")
    found = server.request("GET", f"{after}/measured")
    server.request("PUT", f"{after}/measured", found)
    assert (found["apiVersion"], found["status"]) == (f"{LATER}/v1beta1", status)
    assert server.request("GET", later)["status"]["storedVersions"] == ["v1alpha1", "v1beta1"]
    server.request("PATCH", f"{later}/status", {"status": {"storedVersions": ["v1beta1"]}}, MERGE)
    server.request("PATCH", later, {"spec": {"versions": [new]}}, MERGE)
    wait_for(lambda: not is_there(server, f"{before}/measured"), "no v1alpha1")
    assert server.request("GET", f"{after}/measured")["status"] == status


async def test_runs_wait_for_older_definitions(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await installation.replace(older())
    async with installation.with_operator(tmp_path, monkeypatch) as running:
        await eventually(running.waits_for_definitions)
        assert await running.reports_difference("DefinitionsOlder")
        assert (await running.status(Files, "files")).keys() == {"conditions", "observedGeneration"}
        message = (await running.status(Files, "files"))["conditions"][0]["message"]
        assert "kubectl apply --server-side --force-conflicts -f crds" in message
        assert not await running.is_answered()
        assert await running.refused() == 0
        await running.replace(ours())
        await eventually(running.is_answered)
        await eventually(lambda: running.has_phase("Failed"))
        assert await running.condition() == ("False", "DefinitionsAlike")
        assert not await running.reports_difference("DefinitionsOlder")
        result = await running.status(BenchmarkResult, RESULT)
        assert (result["reason"], result["storedBytes"] > 0) == ("NoSuchNode", True)
        assert await running.refused() == 0


async def test_a_run_waits_when_definitions_become_older(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rollback with Helm replaces definitions while the operator runs. A rejected write reveals it."""
    # The operator checks the definitions before it retries.
    async with installation.with_operator(tmp_path, monkeypatch, retry_seconds=SECONDS) as running:
        await eventually(lambda: running.has_phase("Failed"))
        assert (await running.condition(), await running.refused()) == (None, 0)
        whole = await running.status(BenchmarkResult, RESULT)
        assert whole["storedBytes"] > 0
        await running.replace(older())
        await running.rerun()
        await eventually(running.waits_for_definitions)
        refused = await running.refused()
        assert 0 < refused <= TRIES
        await running.replace(ours())
        await eventually(lambda: running.has_ended(2))
        assert await running.condition() == ("False", "DefinitionsAlike")
        second = await running.status(BenchmarkResult, RESULT.replace("r1", "r2"))
        assert (second["reason"], second["storedBytes"] > 0) == ("NoSuchNode", True)
        assert await running.status(BenchmarkResult, RESULT) == whole


async def test_fields_of_a_newer_version_are_kept(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await installation.replace(newer())
    run = {"number": 3, "startTime": "2026-01-01T00:00:00Z", "further": "kept"}
    common = {"observedGeneration": 0, "further": "kept", "run": run}
    paused, unfinished = ({"phase": phase, **common} for phase in ("Paused", "Pending"))
    await installation.request("POST", collection(Files, installation.namespace), smallest(Files, "paused"))
    installation.store("paused", paused)
    installation.store("files", unfinished)
    before = await installation.request("GET", installation.path(Files, "paused"))
    async with installation.with_operator(tmp_path, monkeypatch) as running:
        await eventually(lambda: running.has_phase("Failed"))
        status = await running.status(Files, "files")
        assert (status["further"], status["run"]["further"], status["run"]["number"]) == ("kept", "kept", 3)
        assert await running.condition() is None, "newer definitions have every field that is written"
        await eventually(lambda: running.has_event("Unreadable"))
        assert await running.event_count("Unreadable") == 1
        after = await running.request("GET", running.path(Files, "paused"))
        assert (after["status"], after["metadata"]["generation"]) == (paused, before["metadata"]["generation"])
        await running.rerun()
        await eventually(lambda: running.has_ended(4))
        status = await running.status(Files, "files")
        assert (status["further"], "further" in status["run"]) == ("kept", False)
        assert await running.refused() == 0
        await running.request("DELETE", running.path(Files, "paused"))
        await eventually(lambda: running.is_gone("paused"))


async def test_a_run_fails_with_a_reason_when_its_results_are_rejected(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await installation.replace(stricter())
    async with installation.with_operator(tmp_path, monkeypatch) as running:
        await eventually(lambda: running.has_phase("Failed"))
        status = await running.status(Files, "files")
        failed = next(each for each in status["conditions"] if each["type"] == "Failed")
        assert (failed["status"], failed["reason"]) == ("True", "ResultRefused")
        assert "spec.further: Required value" in failed["message"]
        assert "upgrade both" in failed["message"]
        assert await running.refused() == TRIES + 1


async def test_a_rejected_status_is_not_retried_until_the_definitions_change(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stricter_status = ours()
    for crd in stricter_status:
        properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        if "progress" in properties and "run" in properties:
            properties["progress"]["pattern"] = "^never$"
    await installation.replace(stricter_status)
    async with installation.with_operator(tmp_path, monkeypatch) as running:
        await eventually(lambda: running.has_event("StatusRefused"))
        refused = await running.refused()
        assert refused == TRIES
        await running.request(
            "POST", collection(NodeClass), smallest(NodeClass, "user")
        )  # every controller reconciles again
        await eventually(lambda: running.class_is_known("user"))
        assert (await running.refused(), await running.event_count("StatusRefused")) == (refused, 1)
        await running.replace(ours())
        await running.rerun()
        await eventually(lambda: running.has_phase("Failed"))
