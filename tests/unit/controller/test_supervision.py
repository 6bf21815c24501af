"""No task of the operator ends or hangs unnoticed."""

import asyncio

import pytest

from tests.unit.controller.api import Api
from tests.unit.controller.test_settings import ENVIRONMENT
from tests.unit.domain.world import node, node_class
from tierbench.controller import main, node_classes
from tierbench.controller.advisor import Advisor
from tierbench.controller.context import Context
from tierbench.controller.main import until
from tierbench.controller.node_classes import run_node_classes
from tierbench.controller.settings import Settings
from tierbench.controller.watches import handled
from tierbench.kinds.registry import BENCHMARKS
from tierbench.kube.errors import ApiError, NotFoundError


async def hang() -> None:
    await asyncio.Event().wait()


async def end() -> None:
    """As a task does that should have gone on."""


async def fail() -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize(("task", "error"), [(end, RuntimeError), (fail, ZeroDivisionError)])
async def test_a_task_that_dies_ends_the_process(task: object, error: type[Exception]) -> None:
    with pytest.raises(ExceptionGroup) as raised:
        await asyncio.wait_for(until(hang(), hang(), task()), 60)  # type: ignore[operator]
    assert raised.group_contains(error)


async def test_the_end_of_the_operator_ends_its_tasks() -> None:
    begun, ended = asyncio.Event(), []

    async def work() -> None:
        begun.set()
        try:
            await hang()
        finally:
            ended.append(work)

    await asyncio.wait_for(until(begun.wait(), work(), hang()), 60)
    assert ended == [work]


async def test_a_leader_waits_until_all_kinds_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """kopf watches no type that is not served when it begins."""
    monkeypatch.setattr(main, "_RETRY_SECONDS", 0)
    api = Api()
    context = Context(api, Settings.from_environment(ENVIRONMENT))
    kinds = [*(model.KIND.plural for model in BENCHMARKS.values()), "nodeclasses", "placementadvices"]
    answers: list[object] = [NotFoundError(404, "NotFound", "no"), kinds[:2], [*kinds, "others"]]

    async def answer(*_: object, **__: object) -> object:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return {"resources": [{"name": name} for name in found]}  # type: ignore[attr-defined]

    monkeypatch.setattr(api, "request", answer)
    await asyncio.wait_for(main._wait_until_served(api, handled(context, Advisor(context))), 60)
    assert not answers


async def test_a_class_whose_status_is_refused_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_classes, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(node_classes, "_RETRY_SECONDS", 0)
    api = Api()
    context = Context(api, Settings.from_environment(ENVIRONMENT))
    context.cluster.classes = {"cloud": node_class("cloud")}
    context.cluster.nodes = {"c1": node("c1", "cloud")}
    api.refuse["PATCH", "/nodeclasses/cloud/status"] = ApiError(500, "InternalError", "no")
    tried = []
    request = api.request

    async def count(*arguments: str, **more: object) -> object:
        tried.append(arguments)
        return await request(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(api, "request", count)
    context.cluster.changed.set()
    keeping = asyncio.create_task(run_node_classes(context.kube, context.cluster, context.metrics, context.definitions))
    async with asyncio.timeout(60):
        while len(tried) < 5:  # noqa: ASYNC110 (a task that is to be looked at, not to tell)
            await asyncio.sleep(0)
    keeping.cancel()
