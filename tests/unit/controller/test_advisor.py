"""The controller of advices answers after changes, records events once, and survives an API server that is away."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kubernetes.aio.client import ApiClient

from tests.unit.controller.test_settings import ENVIRONMENT
from tests.unit.report.published import measured
from tierbench.controller import advisor as module
from tierbench.controller import context
from tierbench.controller.advisor import Advisor
from tierbench.controller.context import TRIES, Context
from tierbench.controller.settings import Settings
from tierbench.domain.results import ResultStore
from tierbench.domain.status import advice_status
from tierbench.kube.client import Kube
from tierbench.kube.errors import ApiError, ConflictError, NotFoundError
from tierbench.metrics.results import result_samples

FAST, SLOW = (1.0, 1.01, 0.99, 1.0), (2.0, 2.02, 1.98, 2.0)


class Store(ResultStore[Any]):
    """Tells when it is read."""

    def __init__(self) -> None:
        super().__init__(result_samples)
        self.read = asyncio.Event()
        self.reads = 0

    def compressed(self, namespace: str, benchmarks: Sequence[str] = ()) -> list[bytes]:
        self.read.set()
        self.reads += 1
        return super().compressed(namespace, benchmarks)


class Server(Kube):
    """What an API server would hold of one namespace, and what is known of its results."""

    def __init__(self) -> None:
        super().__init__(ApiClient())
        self.store = Store()
        self.statuses: list[dict[str, Any]] = []
        self.events: list[str] = []
        self.version = ""
        self.refusals: list[ApiError] = []
        self.never_taken: ApiError | None = None
        self.tries = 0
        self.written = asyncio.Event()
        self.refused = asyncio.Event()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> dict[str, Any]:
        if self.refusals:
            self.refused.set()
            raise self.refusals.pop()
        assert body is not None
        if method == "PATCH":
            self.tries += 1
            if self.never_taken is not None:
                raise self.never_taken
            assert path.endswith("/namespaces/default/placementadvices/photos/status"), content_type
            if self.version not in {"", body["metadata"]["resourceVersion"]}:
                self.refused.set()
                raise ConflictError(409, "Conflict", "the object has been modified")
            self.statuses.append(body["status"])
            self.written.set()
        else:
            self.events.append(f"{body['involvedObject']['name']}: {body['reason']}")
        return {"metadata": {"resourceVersion": "2"}}

    def add(
        self, node_class: str, times: tuple[float, ...], case: int, run: int = 1, name: str = "files"
    ) -> dict[str, Any]:
        result = measured(node_class, "1M", [(time, 0) for time in times], case, run, name=name)
        raw = result.to_json() | {"kind": "BenchmarkResult"}
        self.store.update_result(raw, deleted=False)
        return raw

    async def next_status(self) -> dict[str, Any]:
        await asyncio.wait_for(self.written.wait(), 60)
        self.written.clear()
        return self.statuses[-1]


def asked(generation: int = 1, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "photos", "namespace": "default", "uid": "u", "generation": generation}
    return {"metadata": {**metadata, "resourceVersion": str(generation)}, "spec": {"clientClass": "user", **spec}}


def ran(number: int, ended: bool) -> dict[str, Any]:
    run = {"number": number, "startTime": "2026-11-21T00:00:00Z"}
    if ended:
        run["completionTime"] = "2026-11-21T01:00:00Z"
    metadata = {"name": "files", "namespace": "default"}
    return {"kind": "FileTransferBenchmark", "metadata": metadata, "status": {"run": run}}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_PAUSE_SECONDS", "_PAUSE_SHARE", "_ERROR_SECONDS"):
        monkeypatch.setattr(module, name, 0)


@asynccontextmanager
async def advising(server: Server) -> AsyncIterator[Advisor]:
    advisor = Advisor(Context(server, Settings.from_environment(ENVIRONMENT), results=server.store))
    task = asyncio.create_task(advisor.run())
    try:
        yield advisor
    finally:
        task.cancel()


async def begun(advisor: Advisor) -> None:
    """Until everything that is due has been begun."""
    while advisor._due:  # noqa: ASYNC110 (nothing else tells)
        await asyncio.sleep(0)


async def test_an_advice_is_answered_when_seen_and_follows_results() -> None:
    server = Server()
    server.add("cloud", FAST, 1)
    async with advising(server) as advisor:
        advisor.observe(asked(), deleted=False)
        alone = await server.next_status()
        assert (alone["best"], alone["observedGeneration"]) == ("", 1)
        server.add("jetson", SLOW, 2)
        advisor.add_all("elsewhere")
        advisor.add_all("default")
        both = await server.next_status()
    assert (both["best"], both["runnerUp"]) == ("cloud", "jetson")
    assert server.events == ["photos: BestChanged"]
    assert len(server.statuses) == 2


async def test_an_answer_that_another_operator_has_given_since_is_not_overwritten() -> None:
    """By a leader that was deposed while it thought: nobody would give the newer answer again."""
    server = Server()
    server.add("cloud", (1.0, 1.1, 1.05), 1)
    async with advising(server) as advisor:
        server.version = "2"
        advisor.observe(asked(), deleted=False)
        await asyncio.wait_for(server.refused.wait(), 60)
        assert server.statuses == []
        newer = asked()
        newer["metadata"]["resourceVersion"] = "2"
        advisor.observe(newer, deleted=False)
        await server.next_status()


async def test_what_has_not_changed_is_not_written() -> None:
    server = Server()
    server.add("cloud", FAST, 1)
    server.add("jetson", SLOW, 2)
    async with advising(server) as advisor:
        advisor.observe(asked(), deleted=False)
        status = await server.next_status()
        server.store.read.clear()
        advisor.add_all()
        await asyncio.wait_for(server.store.read.wait(), 60)
        advisor.observe({**asked(generation=2), "status": status}, deleted=False)
        assert (await server.next_status())["observedGeneration"] == 2
    assert [status["observedGeneration"] for status in server.statuses] == [1, 2]
    assert server.events == ["photos: BestChanged"]


async def test_transition_times_stay_while_the_answer_does() -> None:
    server = Server()
    server.add("cloud", FAST, 1)
    known = {"type": "Answered", "status": "False", "reason": "So", "message": "So."}
    since = {"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}
    async with advising(server) as advisor:
        advisor.observe({**asked(generation=2), "status": {"conditions": [known | since]}}, deleted=False)
        status = await server.next_status()
    answered, order = status["conditions"]
    assert (answered["lastTransitionTime"], answered["observedGeneration"]) == ("2026-01-01T00:00:00Z", 2)
    assert order["lastTransitionTime"] != "2026-01-01T00:00:00Z"


async def test_only_the_benchmarks_that_are_named_count() -> None:
    server = Server()
    server.add("cloud", SLOW, 1, name="files")
    server.add("jetson", FAST, 1, name="others")
    async with advising(server) as advisor:
        advisor.observe(asked(benchmarks={"names": ["files", "more"]}), deleted=False)
        status = await server.next_status()
    assert {item["name"] for item in status["ranking"]} == {"cloud"}


@pytest.mark.parametrize(("ended", "best"), [(False, "cloud"), (True, "jetson")])
async def test_a_run_under_way_yields_to_the_one_before(ended: bool, best: str) -> None:
    server = Server()
    server.store.update_benchmark(ran(2, ended), deleted=False)
    for case, (node_class, times) in enumerate((("cloud", FAST), ("jetson", SLOW)), start=1):
        server.add(node_class, times, case)
        server.add(node_class, SLOW if times is FAST else FAST, case, run=2)
    async with advising(server) as advisor:
        advisor.observe(asked(), deleted=False)
        status = await server.next_status()
    answered = next(item for item in status["conditions"] if item["type"] == "Answered")
    if ended:
        assert answered["reason"] == "ContradictingRuns"
    else:
        assert status["best"] == best


async def test_an_api_server_that_is_away_is_waited_for() -> None:
    server = Server()
    server.add("cloud", FAST, 1)
    server.refusals = [ApiError(500, "InternalError", "etcd is away")] * 3
    async with advising(server) as advisor:
        advisor.observe(asked(), deleted=False)
        assert (await server.next_status())["ranking"]
    assert not server.refusals


async def test_an_advice_that_is_gone_or_damaged_stops_nothing() -> None:
    server = Server()
    server.refusals = [NotFoundError(404, "NotFound", "gone")]
    damaged = {"metadata": {"name": "broken", "namespace": "default"}, "spec": {}}
    async with advising(server) as advisor:
        advisor.observe(asked(), deleted=False)
        advisor.observe(damaged, deleted=False)
        await asyncio.wait_for(server.refused.wait(), 60)
        advisor.observe(asked(generation=2), deleted=False)
        assert (await server.next_status())["observedGeneration"] == 2
        advisor.observe(asked(), deleted=True)
        advisor.add_all()
    assert len(server.statuses) == 1


async def test_an_answer_that_fails_costs_its_advice_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    server.add("cloud", FAST, 1)
    answers = advice_status

    def failing(advice: Any, *rest: Any) -> Any:
        if advice.metadata.name == "broken":
            raise ZeroDivisionError
        return answers(advice, *rest)

    monkeypatch.setattr(module, "advice_status", failing)
    broken = asked()
    broken["metadata"] = {**broken["metadata"], "name": "broken"}
    async with advising(server) as advisor:
        advisor.observe(broken, deleted=False)
        advisor.observe(asked(), deleted=False)
        assert (await server.next_status())["ranking"]


def test_only_news_make_advices_due() -> None:
    store, raw = ResultStore(result_samples), Server().add("cloud", FAST, 1)
    assert store.update_result(raw, deleted=False)
    assert not store.update_result(raw, deleted=False)
    again = raw | {"metadata": raw["metadata"] | {"uid": "other"}}
    assert store.update_result(again, deleted=False)
    assert store.update_result(again, deleted=True)
    assert not store.update_result(again | {"status": {}}, deleted=False)
    assert not store.update_benchmark(ran(1, ended=False), deleted=False)
    assert store.update_benchmark(ran(1, ended=True), deleted=False)
    assert not store.update_benchmark(ran(2, ended=False), deleted=False)


async def test_an_answer_that_is_never_taken_is_tried_a_few_times_and_told_of_once() -> None:
    """Older definitions refused it every five seconds, for ever."""
    server = Server()
    server.never_taken = ApiError(422, "Invalid", "status.ranking[0].nodeClass: Required value")
    async with advising(server) as advisor:
        advisor.observe(asked(), deleted=False)
        async with asyncio.timeout(60):
            while "photos: AnswerRefused" not in server.events:  # noqa: ASYNC110 (nothing else tells)
                await asyncio.sleep(0)
        advisor.add_all()
        await begun(advisor)
        assert (server.store.reads, server.tries) == (TRIES, TRIES), "it was thought over again"
        server.never_taken = None
        advisor._definitions.digest = "another"
        advisor.add_all()
        await server.next_status()
    assert server.events.count("photos: AnswerRefused") == 1


async def test_an_answer_that_was_not_taken_is_given_once_the_rest_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the event says: a policy of somebody's may have refused it, and nothing tells when that goes."""
    for one in (module, context):
        monkeypatch.setattr(one, "SUSPENDED_SECONDS", 0.1)
    server = Server()
    server.never_taken = ApiError(422, "Invalid", "no")
    async with advising(server) as advisor:
        advisor.observe(asked(), deleted=False)
        async with asyncio.timeout(60):
            while "photos: AnswerRefused" not in server.events:  # noqa: ASYNC110 (nothing else tells)
                await asyncio.sleep(0)
        server.never_taken = None
        await server.next_status()


async def test_an_answer_of_another_version_is_given_anew() -> None:
    """An advice that v0.1.0 had answered could not be understood, and was never answered again."""
    server = Server()
    server.add("cloud", FAST, 1)
    server.add("jetson", SLOW, 2)
    earlier = {"observedGeneration": 1, "ranking": [{"nodeClass": "jetson", "verdict": "Tied"}]}
    async with advising(server) as advisor:
        advisor.observe({**asked(), "status": earlier}, deleted=False)
        assert (await server.next_status())["best"] == "cloud"
