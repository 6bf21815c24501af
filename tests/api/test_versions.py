"""The operator, on CustomResourceDefinitions of other versions than its own."""

import asyncio
import copy
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests import versions
from tests.api.conftest import CRDS, is_established
from tests.api.forgetful import forgetful
from tests.api.objects import changed, collection, crd_path, item, smallest
from tests.api.operator import eventually, operator
from tests.api.server import ApiServer, Json, RefusedError, api_server
from tests.cluster.processes import wait
from tierbench.api.file_transfer import FileTransferBenchmark as Files
from tierbench.api.kinds import KINDS
from tierbench.api.model import API_VERSION, Resource
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.result import BenchmarkResult
from tierbench.controller import definitions
from tierbench.controller.refusals import TRIES
from tierbench.domain.definitions import compare
from tierbench.generate.crd import custom_resource_definition, object_schema
from tierbench.kube.client import FIELD_MANAGER

pytestmark = pytest.mark.apiserver

EVENTS = "/api/v1/namespaces/default/events"
RESULT = "ft-files-r1-c001"
MERGE = {"Content-Type": "application/merge-patch+json"}


def ours() -> list[Json]:
    return [custom_resource_definition(model) for model in KINDS]


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


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[ApiServer]:
    """An API server that knows no kind yet."""
    with api_server(tmp_path) as running:
        running.request("POST", "/api/v1/namespaces", {"metadata": {"name": "leases"}})
        yield running


def define(server: ApiServer, crds: Iterable[Json]) -> None:
    """Serves these, and has a benchmark and an advice that no node can be had for."""
    for crd in crds:
        server.request("POST", CRDS, crd)
    wait(lambda: all(is_established(server.request("GET", crd_path(model))) for model in KINDS), "CRDs", 10)
    bodies = (
        (NodeClass, smallest(NodeClass, "cloud")),
        (Files, changed(smallest(Files, "files"), "spec.timeouts", {"schedulingSeconds": 5})),
        (PlacementAdvice, smallest(PlacementAdvice, "advice")),
    )
    for model, body in bodies:
        server.request("POST", collection(model), body)


def replace_definitions(server: ApiServer, crds: Iterable[Json]) -> None:
    for crd in crds:
        path = f"{CRDS}/{crd['metadata']['name']}"
        version = server.request("GET", path)["metadata"]["resourceVersion"]
        server.request("PUT", path, changed(crd, "metadata.resourceVersion", version))


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


def store(server: ApiServer, name: str, status: Json) -> None:
    """Writes the status of a benchmark as an operator does."""
    head = {"apiVersion": API_VERSION, "kind": Files.KIND.kind, "metadata": {"name": name}}
    path = f"{item(Files, name)}/status?fieldManager={FIELD_MANAGER}&force=true"
    server.request("PATCH", path, {**head, "status": status}, {"Content-Type": "application/apply-patch+yaml"})


class Seen:
    """What the operator has done, asked without holding it up."""

    def __init__(self, server: ApiServer, port: int) -> None:
        self.server = server
        self.port = port

    async def ask(self, method: str, path: str) -> Json:
        return await asyncio.to_thread(self.server.request, method, path)

    async def status(self, model: type[Resource], name: str) -> Json:
        found: Json = (await self.ask("GET", item(model, name))).get("status", {})
        return found

    async def condition(self, name: str = "files") -> tuple[str, str] | None:
        conditions = (await self.status(Files, name)).get("conditions", ())
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
        await asyncio.to_thread(self.server.request, "PATCH", item(Files, "files"), change, MERGE)

    async def answered(self, name: str) -> bool:
        return bool((await self.status(PlacementAdvice, name)).get("conditions"))

    async def class_is_known(self, name: str) -> bool:
        return bool(await self.status(NodeClass, name))

    async def is_gone(self, name: str) -> bool:
        try:
            await self.ask("GET", item(Files, name))
        except RefusedError as error:
            return error.code == 404
        return False

    async def told(self, reason: str) -> int:
        """How many events say so."""
        return sum(event["reason"] == reason for event in (await self.ask("GET", EVENTS))["items"])

    async def is_told(self, reason: str) -> bool:
        return await self.told(reason) > 0

    async def metrics(self) -> str:
        def read() -> str:
            with urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
                text: str = answer.read().decode()
                return text

        return await asyncio.to_thread(read)

    async def fits(self) -> bool:
        return 'tierbench_definitions_differ{reason="DefinitionsOlder"} 0.0' in await self.metrics()

    async def refused(self) -> int:
        """Writes that were not taken."""
        found = re.findall(
            r'tierbench_api_requests_total{code="(?:400|422|500)",method="\w+"} (\d+)', await self.metrics()
        )
        return sum(map(int, found))


@asynccontextmanager
async def operating(server: ApiServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Seen]:
    monkeypatch.setattr(definitions, "_AGAIN_SECONDS", 1.0)
    async with forgetful(server) as (_, url), operator(url, folder, monkeypatch) as port:
        yield Seen(server, port)


def test_what_v0_1_0_knew_is_still_known_but_for_this() -> None:
    """What was stored by it, or is sent by its clients, is not lost in silence."""
    earlier = {crd["spec"]["names"]["kind"]: served(crd)["schema"]["openAPIV3Schema"] for crd in versions.definitions()}
    own = {model.KIND.kind: object_schema(model) for model in KINDS}
    assert compare(own, earlier).further == (
        "NetworkBenchmark spec.clients.simultaneous",
        "PlacementAdvice status.ranking[].nodeClass",
        "PlacementAdvice status.ranking[].verdict: Tied",
        "PlacementAdvice status.crossovers[].estimate",
        "PlacementAdvice status.crossovers[].estimateLow",
        "PlacementAdvice status.crossovers[].estimateHigh",
    )


def test_the_next_version_needs_no_webhook_where_schemas_are_equal(bare: ApiServer) -> None:
    """The way of ADR 0059: served beside, then stored, then alone; a sealed result passes unchanged."""
    define(bare, ours())
    definition, stored = crd_path(BenchmarkResult), item(BenchmarkResult, "measured")
    status = {"phase": "Measured", "counts": {"completed": 10}, "storedBytes": 7}
    body = bare.request("POST", collection(BenchmarkResult), smallest(BenchmarkResult, "measured"))
    bare.request("PUT", f"{stored}/status", {**body, "status": status})
    crd = bare.request("GET", definition)
    crd["spec"]["versions"].insert(0, {**served(crd), "name": "v1beta1"})
    crd["spec"]["versions"][1] |= {"storage": False, "deprecated": True}
    bare.request("PUT", definition, crd)
    later = stored.replace("v1alpha1", "v1beta1")
    wait(lambda: is_there(bare, later), "v1beta1", 10)
    found = bare.request("GET", later)
    bare.request("PUT", later, found)
    assert (found["apiVersion"], found["status"]) == ("tierbench.io/v1beta1", status)
    crd = bare.request("GET", definition)
    assert crd["status"]["storedVersions"] == ["v1alpha1", "v1beta1"]
    bare.request("PUT", f"{definition}/status", {**crd, "status": {**crd["status"], "storedVersions": ["v1beta1"]}})
    crd = bare.request("GET", definition)
    del crd["spec"]["versions"][1]
    bare.request("PUT", definition, crd)
    wait(lambda: not is_there(bare, stored), "no v1alpha1", 10)
    assert bare.request("GET", later)["status"] == status


async def test_older_definitions_are_worked_with_and_newer_ones_taken_up(
    bare: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each result was refused for ever, as it said how many bytes it takes."""
    define(bare, versions.definitions())
    async with operating(bare, tmp_path, monkeypatch) as seen:
        await eventually(lambda: seen.has_phase("Failed"))
        assert await seen.condition() == ("True", "DefinitionsOlder")
        assert 'tierbench_definitions_differ{reason="DefinitionsOlder"} 1.0' in await seen.metrics()
        result = await seen.status(BenchmarkResult, RESULT)
        assert (result["phase"], result["reason"], "storedBytes" in result) == ("Failed", "NoSuchNode", False)
        await eventually(lambda: seen.is_told("AnswerRefused"))
        assert await seen.refused() == TRIES
        assert await seen.told("AnswerRefused") == 1
        await asyncio.to_thread(replace_definitions, bare, ours())
        await eventually(lambda: seen.answered("advice"))
        await eventually(seen.fits)
        await seen.rerun()
        await eventually(lambda: seen.has_ended(2))
        assert await seen.condition() == ("False", "DefinitionsAlike")
        assert (await seen.status(BenchmarkResult, RESULT.replace("r1", "r2")))["storedBytes"] > 0
        assert await seen.status(BenchmarkResult, RESULT) == result


async def test_definitions_that_become_older_meanwhile_are_noticed(
    bare: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `helm rollback` of a release that leaves the operator's image alone."""
    define(bare, ours())
    async with operating(bare, tmp_path, monkeypatch) as seen:
        await eventually(lambda: seen.has_phase("Failed"))
        assert (await seen.condition(), await seen.refused()) == (None, 0)
        whole = await seen.status(BenchmarkResult, RESULT)
        assert whole["storedBytes"] > 0
        await asyncio.to_thread(replace_definitions, bare, versions.definitions())
        await seen.rerun()
        await eventually(lambda: seen.has_ended(2))
        assert await seen.condition() == ("True", "DefinitionsOlder")
        second = await seen.status(BenchmarkResult, RESULT.replace("r1", "r2"))
        assert (second["reason"], "storedBytes" in second) == ("NoSuchNode", False)
        await asyncio.to_thread(replace_definitions, bare, ours())
        assert await seen.status(BenchmarkResult, RESULT) == whole


async def test_what_a_newer_version_has_stored_is_kept(
    bare: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(bare, newer())
    run = {"number": 3, "startTime": "2026-01-01T00:00:00Z", "further": "kept"}
    paused, under_way = ({"phase": phase, "further": "kept", "run": run} for phase in ("Paused", "Pending"))
    bare.request("POST", collection(Files), smallest(Files, "paused"))
    store(bare, "paused", paused)
    store(bare, "files", under_way)
    before = bare.request("GET", item(Files, "paused"))
    async with operating(bare, tmp_path, monkeypatch) as seen:
        await eventually(lambda: seen.has_phase("Failed"))
        status = await seen.status(Files, "files")
        assert (status["further"], status["run"]["further"], status["run"]["number"]) == ("kept", "kept", 3)
        assert await seen.condition() == ("True", "DefinitionsNewer")
        assert 'tierbench_definitions_differ{reason="DefinitionsNewer"} 1.0' in await seen.metrics()
        await eventually(lambda: seen.is_told("Unreadable"))
        assert await seen.told("Unreadable") == 1
        after = await seen.ask("GET", item(Files, "paused"))
        assert (after["status"], after["metadata"]["generation"]) == (paused, before["metadata"]["generation"])
        await seen.rerun()
        await eventually(lambda: seen.has_ended(4))
        status = await seen.status(Files, "files")
        assert (status["further"], "further" in status["run"]) == ("kept", False)
        assert await seen.refused() == 0
        await seen.ask("DELETE", item(Files, "paused"))
        await eventually(lambda: seen.is_gone("paused"))


async def test_a_run_whose_results_are_never_taken_ends_and_says_why(
    bare: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(bare, stricter())
    async with operating(bare, tmp_path, monkeypatch) as seen:
        await eventually(lambda: seen.has_phase("Failed"))
        status = await seen.status(Files, "files")
        failed = next(each for each in status["conditions"] if each["type"] == "Failed")
        assert (failed["status"], failed["reason"]) == ("True", "ResultRefused")
        assert "spec.further: Required value" in failed["message"]
        assert "upgrade both" in failed["message"]
        assert await seen.refused() == TRIES + 1


async def test_a_status_that_is_never_taken_is_left_alone_and_taken_up_again(
    bare: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed_phase = ours()
    for crd in changed_phase:
        properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        if "phase" in properties and "run" in properties:
            properties["phase"]["enum"] = ["Going", "Gone"]
    define(bare, changed_phase)
    async with operating(bare, tmp_path, monkeypatch) as seen:
        await eventually(lambda: seen.is_told("StatusRefused"))
        refused = await seen.refused()
        assert refused == TRIES
        bare.request("POST", collection(NodeClass), smallest(NodeClass, "user"))  # every loop looks again
        await eventually(lambda: seen.class_is_known("user"))
        assert (await seen.refused(), await seen.told("StatusRefused")) == (refused, 1)
        await asyncio.to_thread(replace_definitions, bare, ours())
        await eventually(lambda: seen.has_phase("Failed"))
