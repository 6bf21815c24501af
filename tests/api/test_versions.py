"""The operator, on CustomResourceDefinitions of other versions than its own."""

import asyncio
import copy
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests import versions
from tests.api.definitions import MERGE, empty, ours, put_definitions
from tests.api.forgetful import forgetful
from tests.api.objects import changed, collection, item, smallest
from tests.api.operator import answer, operator
from tests.api.server import CRDS, ApiServer, Json, RefusedError
from tests.api.waiting import SECONDS, eventually, wait_for
from tests.cluster import binaries
from tierbench.api.model import API_VERSION, Resource
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.result import BenchmarkResult
from tierbench.api.schema import object_schema, resource_types
from tierbench.controller import advisor, definitions, reconciler
from tierbench.controller.context import TRIES
from tierbench.controller.definitions import missing_fields
from tierbench.domain import placement
from tierbench.generate.schemas import custom_resource_definition
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark as Files
from tierbench.kube.client import FIELD_MANAGER
from tierbench.kube.clock import Clock

pytestmark = [pytest.mark.apiserver, pytest.mark.timing]

# The definitions of v0.1.0 match lists of sizes with regular expressions: see ADR 0066.
where_v0_1_0_installs = pytest.mark.skipif(
    binaries.asked() in ("1.31", "1.32", "1.33"), reason="v0.1.0 needs Kubernetes 1.34"
)
RESULT = "ft-files-r1-c001"
LATER = "later.example.com"


def newer() -> list[Json]:
    """A phase, a field of a status, and one that every result must have: nothing of it is known here."""
    found = copy.deepcopy(ours())
    for crd in found:
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        schema["status"]["properties"]["further"] = {"type": "string"}
        if crd["spec"]["names"]["kind"] == Files.KIND.kind:
            schema["status"]["properties"]["phase"]["enum"].append("Paused")
            schema["status"]["properties"]["run"]["properties"]["further"] = {"type": "string"}
    return found


def stricter() -> list[Json]:
    """Each result must have a field that this version does not know."""
    found = newer()
    for crd in found:
        spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        if crd["spec"]["names"]["kind"] == BenchmarkResult.KIND.kind:
            spec["properties"]["further"] = {"type": "string"}
            spec["required"].append("further")
    return found


def served(crd: Json) -> Json:
    """What the one version of a definition is."""
    (version,) = crd["spec"]["versions"]
    found: Json = version
    return found


def is_there(server: ApiServer, path: str) -> bool:
    try:
        server.request("GET", path)
    except RefusedError:
        return False
    return True


class Place:
    """A namespace with a benchmark and an advice that no node can be had for, and what an operator does there."""

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
    async def operated(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, again: float = 0.1
    ) -> AsyncIterator["Place"]:
        """With an operator for which a minute is a second. What fails is tried `again` after so many seconds."""
        began = datetime.now(UTC)
        monkeypatch.setattr(Clock, "now", lambda _: began + 60 * (datetime.now(UTC) - began))
        monkeypatch.setattr(placement, "_RETRY_SECONDS", 0.1)
        monkeypatch.setattr(definitions, "_PERIOD_SECONDS", 0.5)
        monkeypatch.setattr(advisor, "_ERROR_SECONDS", again)
        monkeypatch.setattr(reconciler, "_ERROR_SECONDS", (again,))
        async with (
            forgetful(self.server) as (_, url),
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

    async def ask(self, method: str, path: str, *more: Json) -> Json:
        """Without holding the operator up."""
        return await asyncio.to_thread(self.server.request, method, path, *more)

    async def replace(self, crds: Iterable[Json]) -> None:
        await asyncio.to_thread(put_definitions, self.server, crds)

    async def status(self, model: type[Resource], name: str) -> Json:
        found: Json = (await self.ask("GET", self.path(model, name))).get("status", {})
        return found

    async def condition(self) -> tuple[str, str] | None:
        conditions = (await self.status(Files, "files")).get("conditions", ())
        return next(((c["status"], c["reason"]) for c in conditions if c["type"] == "DefinitionsDiffer"), None)

    async def has_phase(self, phase: str) -> bool:
        return (await self.status(Files, "files")).get("phase") == phase

    async def has_ended(self, run: int) -> bool:
        """That run of the benchmark."""
        found = (await self.status(Files, "files")).get("run", {})
        return found.get("number") == run and "completionTime" in found

    async def rerun(self) -> None:
        """Asks for another run of the benchmark."""
        change = {"spec": {"runPolicy": {"rerun": "again"}}}
        await self.ask("PATCH", self.path(Files, "files"), change, MERGE)

    async def is_answered(self) -> bool:
        return bool((await self.status(PlacementAdvice, "advice")).get("conditions"))

    async def class_is_known(self, name: str) -> bool:
        return bool(await self.status(NodeClass, name))

    async def is_gone(self, name: str) -> bool:
        return not await asyncio.to_thread(is_there, self.server, self.path(Files, name))

    async def told(self, reason: str) -> int:
        """How many events say so."""
        events = (await self.ask("GET", f"/api/v1/namespaces/{self.namespace}/events"))["items"]
        return sum(event["reason"] == reason for event in events)

    async def is_told(self, reason: str) -> bool:
        return await self.told(reason) > 0

    async def differ(self, reason: str) -> bool:
        """What /metrics says of definitions."""
        said = f'tierbench_definitions_differ{{reason="{reason}"}} 1.0'
        return said in await answer(self.port, "metrics")

    async def is_held(self) -> bool:
        return await self.condition() == ("True", "DefinitionsOlder")

    async def refused(self) -> int:
        """Writes that were not taken."""
        found = re.findall(
            r'tierbench_api_requests_total{code="(?:400|422|500)",method="\w+"} (\d+)',
            await answer(self.port, "metrics"),
        )
        return sum(map(int, found))


@pytest.fixture
def place(server: ApiServer, namespace: str) -> Iterator[Place]:
    """Where definitions may be replaced."""
    yield Place(server, namespace)
    empty(server)
    put_definitions(server, ours())


def test_what_v0_1_0_knew_is_still_known_but_for_this() -> None:
    """What was stored by it, or is sent by its clients, is not lost in silence."""
    earlier = {crd["spec"]["names"]["kind"]: served(crd)["schema"]["openAPIV3Schema"] for crd in versions.definitions()}
    own = {model.KIND.kind: object_schema(model) for model in resource_types()}
    assert tuple(missing_fields(earlier, own)) == (
        "NetworkBenchmark spec.clients.simultaneous",
        "PlacementAdvice status.ranking[].nodeClass",
        "PlacementAdvice status.ranking[].verdict: Tied",
        "PlacementAdvice status.crossovers[].estimate",
        "PlacementAdvice status.crossovers[].estimateLow",
        "PlacementAdvice status.crossovers[].estimateHigh",
    )


@pytest.fixture
def later(server: ApiServer) -> Iterator[str]:
    """The path of a definition of results that is like ours, in a group of its own."""
    crd = custom_resource_definition(BenchmarkResult)
    crd["spec"]["group"] = LATER
    crd["metadata"]["name"] = f"{BenchmarkResult.KIND.plural}.{LATER}"
    path = f"{CRDS}/{crd['metadata']['name']}"
    server.request("POST", CRDS, crd)
    yield path
    server.request("DELETE", path)
    wait_for(lambda: not is_there(server, path), "the end of the definition")


def test_the_next_version_needs_no_webhook_where_schemas_are_equal(server: ApiServer, later: str) -> None:
    """The way of ADR 0059: served beside, then stored, then alone; a sealed result passes unchanged."""
    before, after = (
        f"/apis/{LATER}/{version}/namespaces/default/benchmarkresults" for version in ("v1alpha1", "v1beta1")
    )
    wait_for(lambda: is_there(server, before), "v1alpha1")
    status = {"phase": "Measured", "counts": {"completed": 10}, "storedBytes": 7}
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


@where_v0_1_0_installs
async def test_runs_wait_for_older_definitions(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await place.replace(versions.definitions())
    async with place.operated(tmp_path, monkeypatch) as seen:
        await eventually(seen.is_held)
        assert await seen.differ("DefinitionsOlder")
        assert (await seen.status(Files, "files")).keys() == {"conditions"}
        message = (await seen.status(Files, "files"))["conditions"][0]["message"]
        assert "kubectl apply --server-side --force-conflicts -f crds" in message
        assert not await seen.is_answered()
        assert await seen.refused() == 0
        await seen.replace(ours())
        await eventually(seen.is_answered)
        await eventually(lambda: seen.has_phase("Failed"))
        assert await seen.condition() == ("False", "DefinitionsAlike")
        assert not await seen.differ("DefinitionsOlder")
        result = await seen.status(BenchmarkResult, RESULT)
        assert (result["reason"], result["storedBytes"] > 0) == ("NoSuchNode", True)
        assert await seen.refused() == 0


@where_v0_1_0_installs
async def test_a_run_waits_when_definitions_become_older(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `helm rollback` of a release whose operator stays. A rejected write shows it."""
    async with place.operated(tmp_path, monkeypatch, again=SECONDS) as seen:  # the check comes before the next try
        await eventually(lambda: seen.has_phase("Failed"))
        assert (await seen.condition(), await seen.refused()) == (None, 0)
        whole = await seen.status(BenchmarkResult, RESULT)
        assert whole["storedBytes"] > 0
        await seen.replace(versions.definitions())
        await seen.rerun()
        await eventually(seen.is_held)
        refused = await seen.refused()
        assert 0 < refused <= TRIES
        await seen.replace(ours())
        await eventually(lambda: seen.has_ended(2))
        assert await seen.condition() == ("False", "DefinitionsAlike")
        second = await seen.status(BenchmarkResult, RESULT.replace("r1", "r2"))
        assert (second["reason"], second["storedBytes"] > 0) == ("NoSuchNode", True)
        assert await seen.status(BenchmarkResult, RESULT) == whole


async def test_what_a_newer_version_has_stored_is_kept(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.replace(newer())
    run = {"number": 3, "startTime": "2026-01-01T00:00:00Z", "further": "kept"}
    paused, under_way = ({"phase": phase, "further": "kept", "run": run} for phase in ("Paused", "Pending"))
    await place.ask("POST", collection(Files, place.namespace), smallest(Files, "paused"))
    place.store("paused", paused)
    place.store("files", under_way)
    before = await place.ask("GET", place.path(Files, "paused"))
    async with place.operated(tmp_path, monkeypatch) as seen:
        await eventually(lambda: seen.has_phase("Failed"))
        status = await seen.status(Files, "files")
        assert (status["further"], status["run"]["further"], status["run"]["number"]) == ("kept", "kept", 3)
        assert await seen.condition() is None, "newer definitions have all that is written"
        await eventually(lambda: seen.is_told("Unreadable"))
        assert await seen.told("Unreadable") == 1
        after = await seen.ask("GET", seen.path(Files, "paused"))
        assert (after["status"], after["metadata"]["generation"]) == (paused, before["metadata"]["generation"])
        await seen.rerun()
        await eventually(lambda: seen.has_ended(4))
        status = await seen.status(Files, "files")
        assert (status["further"], "further" in status["run"]) == ("kept", False)
        assert await seen.refused() == 0
        await seen.ask("DELETE", seen.path(Files, "paused"))
        await eventually(lambda: seen.is_gone("paused"))


async def test_a_run_whose_results_are_never_taken_ends_and_says_why(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.replace(stricter())
    async with place.operated(tmp_path, monkeypatch) as seen:
        await eventually(lambda: seen.has_phase("Failed"))
        status = await seen.status(Files, "files")
        failed = next(each for each in status["conditions"] if each["type"] == "Failed")
        assert (failed["status"], failed["reason"]) == ("True", "ResultRefused")
        assert "spec.further: Required value" in failed["message"]
        assert "upgrade both" in failed["message"]
        assert await seen.refused() == TRIES + 1


async def test_a_status_that_is_never_taken_is_left_alone_and_taken_up_again(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stricter_status = ours()
    for crd in stricter_status:
        properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        if "progress" in properties and "run" in properties:
            properties["progress"]["pattern"] = "^never$"
    await place.replace(stricter_status)
    async with place.operated(tmp_path, monkeypatch) as seen:
        await eventually(lambda: seen.is_told("StatusRefused"))
        refused = await seen.refused()
        assert refused == TRIES
        await seen.ask("POST", collection(NodeClass), smallest(NodeClass, "user"))  # every loop looks again
        await eventually(lambda: seen.class_is_known("user"))
        assert (await seen.refused(), await seen.told("StatusRefused")) == (refused, 1)
        await seen.replace(ours())
        await seen.rerun()
        await eventually(lambda: seen.has_phase("Failed"))
