"""The controller of advices answers each change, records events once, and survives failed requests."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.apiserver.client import InProcessKube
from tests.unit.apiserver.server import ApiServer, Raw, Request
from tests.unit.controller.operator import settings_of
from tests.unit.report.published import measured
from tierbench.api.placement_advice import ADVICES
from tierbench.controller import advisor as module
from tierbench.controller import context
from tierbench.controller.advisor import Advisor
from tierbench.controller.context import TRIES, Context, ObjectCaches
from tierbench.domain.results import ResultStore
from tierbench.domain.status import advice_status
from tierbench.kube.client import ApiError, NotFoundError

FAST, SLOW = (1.0, 1.01, 0.99, 1.0), (2.0, 2.02, 1.98, 2.0)
STATUS = ("PATCH", "/photos/status")
INVALID = ApiError(422, "Invalid", "status.ranking[0].nodeClass: Required value")


class CountedResults(ResultStore):
    """Counts how often it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def texts(self, namespace: str, benchmarks: Sequence[str] = ()) -> list[bytes]:
        self.reads += 1
        return super().texts(namespace, benchmarks)


class Cluster:
    """The API server, and the results that the operator has listed."""

    def __init__(self) -> None:
        self.api = ApiServer()
        self.results = CountedResults()

    def add(self, node_class: str, times: tuple[float, ...], case: int, run: int = 1, name: str = "files") -> Raw:
        """Adds the result of a case."""
        result = measured(node_class, "1M", [(time, 0) for time in times], case, run, name=name)
        raw: Raw = result.to_json() | {"kind": "BenchmarkResult"}
        self.results.update_result(raw, deleted=False)
        return raw

    def ask(self, advisor: Advisor, name: str = "photos", status: Raw | None = None, **spec: Any) -> Raw:
        """Creates or changes an advice, and lets the controller see it."""
        before = self.api.get(ADVICES, name)
        generation = 1 if before is None else before["metadata"]["generation"] + 1
        asked = {"metadata": {"name": name, "generation": generation}, "spec": {"clientClassName": "user", **spec}}
        found = self.api.put(ADVICES, asked if status is None else {**asked, "status": status})
        advisor.observe(found, deleted=False)
        return found

    @property
    def statuses(self) -> list[Raw]:
        """The statuses of the advice that requests have tried to write."""
        return [request.body["status"] for request in self.api.writes if request.path.endswith(STATUS[1])]

    async def answer(self, generation: int = 1) -> Raw:
        """Returns the stored answer to a generation of the advice."""
        await self.api.until(lambda: self._status().get("observedGeneration", 0) >= generation)
        return self._status()

    def _status(self) -> Raw:
        raw = self.api.get(ADVICES, "photos") or {}
        found: Raw = raw.get("status", {})
        return found

    @property
    def reasons(self) -> list[str]:
        """The reasons of all events."""
        return [reason for reason, _ in self.api.events]


def with_run(number: int, ended: bool) -> Raw:
    """Returns a benchmark with a run."""
    run = {"number": number, "startTime": "2026-11-21T00:00:00Z"}
    if ended:
        run["completionTime"] = "2026-11-21T01:00:00Z"
    metadata = {"name": "files", "namespace": "default"}
    return {"kind": "FileTransferBenchmark", "metadata": metadata, "status": {"run": run}}


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_AGAIN_SECONDS", "_PAUSE_SHARE", "_ERROR_SECONDS"):
        monkeypatch.setattr(module, name, 0)


@asynccontextmanager
async def advising(cluster: Cluster, **environment: str) -> AsyncIterator[Advisor]:
    advisor = Advisor(
        Context(InProcessKube(cluster.api), settings_of(**environment), objects=ObjectCaches(cluster.results))
    )
    task = asyncio.create_task(advisor.run())
    try:
        yield advisor
    finally:
        task.cancel()


async def test_advice_is_answered_when_it_is_created_and_after_new_results() -> None:
    cluster = Cluster()
    cluster.add("cloud", FAST, 1)
    async with advising(cluster) as advisor:
        cluster.ask(advisor)
        alone = await cluster.answer()
        assert (alone["best"], alone["observedGeneration"]) == ("", 1)
        cluster.add("jetson", SLOW, 2)
        advisor.add_all("elsewhere")
        advisor.add_all("default")
        await cluster.api.until(lambda: cluster.reasons)
    assert (cluster.statuses[-1]["best"], cluster.statuses[-1]["runnerUp"]) == ("cloud", "jetson")
    assert cluster.reasons == ["BestChanged"]
    assert len(cluster.statuses) == 2


async def test_answer_that_another_leader_has_given_is_not_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that is replaced while it computes must not overwrite the newer answer."""
    monkeypatch.setattr(module, "_ERROR_SECONDS", 3600)  # it answers again when it sees the newer one
    cluster = Cluster()
    cluster.add("cloud", (1.0, 1.1, 1.05), 1)
    newer: list[Raw] = []

    async def answer_first(request: Request) -> None:
        if request.method == "PATCH" and not newer:
            newer.append(cluster.api.change(ADVICES, "photos", status={"best": "by the next leader"}))

    cluster.api.reactor = answer_first
    async with advising(cluster) as advisor:
        cluster.ask(advisor)
        await cluster.api.until(lambda: cluster.statuses)
        await asyncio.sleep(0)
        assert cluster.api.get(ADVICES, "photos") == newer[0]
        advisor.observe(newer[0], deleted=False)
        await cluster.answer()


async def test_unchanged_answer_is_not_written() -> None:
    cluster = Cluster()
    cluster.add("cloud", FAST, 1)
    cluster.add("jetson", SLOW, 2)
    async with advising(cluster) as advisor:
        cluster.ask(advisor)
        status = await cluster.answer()
        reads = cluster.results.reads
        advisor.add_all()
        await cluster.api.until(lambda: cluster.results.reads > reads)
        cluster.ask(advisor, status=status)
        await cluster.answer(2)
    assert [status["observedGeneration"] for status in cluster.statuses] == [1, 2]
    assert cluster.reasons == ["BestChanged"]


async def test_transition_time_changes_only_with_the_status_of_a_condition() -> None:
    cluster = Cluster()
    cluster.add("cloud", FAST, 1)
    known = {"type": "BestFound", "status": "False", "reason": "So", "message": "So."}
    since = {"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 0}
    async with advising(cluster) as advisor:
        cluster.ask(advisor, status={"conditions": [known | since]})
        answered, order = (await cluster.answer())["conditions"]
    assert (answered["lastTransitionTime"], answered["observedGeneration"]) == ("2026-01-01T00:00:00Z", 1)
    assert order["lastTransitionTime"] != "2026-01-01T00:00:00Z"


async def test_advice_uses_only_the_benchmarks_that_it_names() -> None:
    cluster = Cluster()
    cluster.add("cloud", SLOW, 1, name="files")
    cluster.add("jetson", FAST, 1, name="others")
    async with advising(cluster) as advisor:
        cluster.ask(advisor, benchmarks={"names": ["files", "more"]})
        status = await cluster.answer()
    assert {item["name"] for item in status["ranking"]} == {"cloud"}


@pytest.mark.parametrize(("ended", "best"), [(False, "cloud"), (True, "jetson")])
async def test_running_run_is_ignored_while_an_earlier_run_has_results(ended: bool, best: str) -> None:
    cluster = Cluster()
    cluster.results.update_benchmark(with_run(2, ended), deleted=False)
    for case, (node_class, times) in enumerate((("cloud", FAST), ("jetson", SLOW)), start=1):
        cluster.add(node_class, times, case)
        cluster.add(node_class, SLOW if times is FAST else FAST, case, run=2)
    async with advising(cluster) as advisor:
        cluster.ask(advisor)
        status = await cluster.answer()
    answered = next(item for item in status["conditions"] if item["type"] == "BestFound")
    if ended:
        assert answered["reason"] == "ContradictingRuns"
    else:
        assert status["best"] == best


async def test_failed_write_is_retried() -> None:
    cluster = Cluster()
    cluster.add("cloud", FAST, 1)
    errors = [ApiError(500, "InternalError", "etcd does not answer")] * 3

    async def fail(_: Request) -> None:
        if errors:
            raise errors.pop()

    cluster.api.reactor = fail
    async with advising(cluster) as advisor:
        cluster.ask(advisor)
        assert (await cluster.answer())["ranking"]
    assert not errors


async def test_deleted_or_invalid_advice_does_not_prevent_other_answers() -> None:
    cluster = Cluster()
    cluster.api.refuse[STATUS] = NotFoundError(404, "NotFound", "gone")
    invalid = cluster.api.put(ADVICES, {"metadata": {"name": "broken"}, "spec": {}})
    async with advising(cluster) as advisor:
        advisor.observe(invalid, deleted=False)
        cluster.ask(advisor)
        await cluster.api.until(lambda: cluster.statuses)
        cluster.api.refuse.clear()
        found = cluster.ask(advisor)
        assert (await cluster.answer(2))["observedGeneration"] == 2
        advisor.observe(found, deleted=True)
        advisor.add_all()
    assert len(cluster.statuses) == 2


async def test_failed_computation_affects_no_other_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    cluster.add("cloud", FAST, 1)
    answers = advice_status

    def fail(advice: Any, *rest: Any) -> Any:
        if advice.metadata.name == "broken":
            raise ZeroDivisionError
        return answers(advice, *rest)

    monkeypatch.setattr(module, "advice_status", fail)
    async with advising(cluster) as advisor:
        cluster.ask(advisor, "broken")
        cluster.ask(advisor)
        assert (await cluster.answer())["ranking"]


def order(cluster: Cluster) -> list[str]:
    """Returns the paths of the advices that were answered, in this order."""
    return [request.path.removesuffix("/status") for request in cluster.api.writes if request.path.endswith("/status")]


async def test_namespaces_take_turns() -> None:
    """A namespace with many advices sorts first by its name, and must not keep the others waiting."""
    cluster = Cluster()
    names = [("aaa", f"a{number}") for number in range(5)] + [("zzz", "z")]
    async with advising(cluster) as advisor:
        for namespace, name in names:
            raw = {"metadata": {"namespace": namespace, "name": name}, "spec": {"clientClassName": "user"}}
            advisor.observe(cluster.api.put(ADVICES, raw), deleted=False)
        await cluster.api.until(lambda: len(order(cluster)) == 6)
    assert ADVICES.path("zzz", "z") in order(cluster)[:2]


async def test_unchanged_advice_is_answered_again_after_a_pause_and_a_changed_one_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_AGAIN_SECONDS", 3600)
    cluster = Cluster()
    cluster.add("cloud", FAST, 1)
    async with advising(cluster) as advisor:
        cluster.ask(advisor)
        await cluster.answer()
        cluster.add("jetson", SLOW, 2)
        for _ in range(10):
            advisor.add_all("default")
            await asyncio.sleep(0)
        assert cluster.results.reads == 1
        cluster.ask(advisor, margin=5)
        await cluster.answer(2)
    assert cluster.results.reads == 2


async def test_newest_advices_beyond_the_limit_are_answered_when_others_are_deleted() -> None:
    cluster = Cluster()
    cluster.add("cloud", FAST, 1)
    cluster.add("jetson", SLOW, 2)

    def best(name: str) -> Any:
        return (cluster.api.get(ADVICES, name) or {}).get("status", {}).get("best")

    async with advising(cluster, TIERBENCH_LIMITS='{"advices": 1}') as advisor:
        first = cluster.ask(advisor, "first")
        cluster.api.ahead += timedelta(seconds=5)
        cluster.ask(advisor)
        status = await cluster.answer()
        answered = next(item for item in status["conditions"] if item["type"] == "BestFound")
        assert (answered["status"], answered["reason"]) == ("False", "TooManyAdvices")
        assert "limits.advices" in answered["message"]
        assert best("first") == "cloud"
        cluster.api.delete(ADVICES, "first")
        advisor.observe(first, deleted=True)
        await cluster.api.until(lambda: best("photos") == "cloud")


def test_only_changed_results_and_ended_runs_require_new_answers() -> None:
    store, raw = ResultStore(), Cluster().add("cloud", FAST, 1)
    assert store.update_result(raw, deleted=False)
    assert not store.update_result(raw, deleted=False)
    again = raw | {"metadata": raw["metadata"] | {"uid": "other"}}
    assert store.update_result(again, deleted=False)
    assert store.update_result(again, deleted=True)
    assert not store.update_result(again | {"status": {}}, deleted=False)
    assert not store.update_benchmark(with_run(1, ended=False), deleted=False)
    assert store.update_benchmark(with_run(1, ended=True), deleted=False)
    assert not store.update_benchmark(with_run(2, ended=False), deleted=False)


async def test_rejected_answer_is_retried_a_few_times_and_reported_once() -> None:
    """With older definitions, the operator would otherwise retry it every five seconds without end."""
    cluster = Cluster()
    cluster.api.refuse[STATUS] = INVALID
    async with advising(cluster) as advisor:
        cluster.ask(advisor)
        await cluster.api.until(lambda: cluster.reasons)
        advisor.add_all()
        await cluster.api.until(lambda: not advisor._due)
        assert (cluster.results.reads, len(cluster.statuses)) == (TRIES, TRIES), "it was computed again"
        cluster.api.refuse.clear()
        advisor._definitions.digest = "another"
        advisor.add_all()
        await cluster.answer()
    assert cluster.reasons == ["AnswerRefused"]


async def test_rejected_answer_is_written_after_the_suspension(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy may have rejected it, and no event says when the policy is removed."""
    for one in (module, context):
        monkeypatch.setattr(one, "SUSPENDED_SECONDS", 0.1)
    cluster = Cluster()
    cluster.api.refuse[STATUS] = INVALID
    async with advising(cluster) as advisor:
        cluster.ask(advisor)
        await cluster.api.until(lambda: cluster.reasons)
        cluster.api.refuse.clear()
        await cluster.answer()


async def test_answer_of_another_version_is_replaced() -> None:
    cluster = Cluster()
    cluster.add("cloud", FAST, 1)
    cluster.add("jetson", SLOW, 2)
    earlier = {"observedGeneration": 1, "ranking": [{"nodeClass": "jetson", "verdict": "Tied"}]}
    async with advising(cluster) as advisor:
        cluster.ask(advisor, status=earlier)
        await cluster.api.until(lambda: cluster.statuses)
        assert (await cluster.answer())["best"] == "cloud"
