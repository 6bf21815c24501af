"""The process ends when one of its tasks ends, and tasks survive failed requests."""

import asyncio

import pytest

from tests.unit.apiserver.client import InProcessKube
from tests.unit.apiserver.server import SERVED, ApiServer, Request
from tests.unit.controller.operator import context_of
from tests.unit.domain.objects import node, node_class
from tierbench.api.node_class import NODE_CLASSES
from tierbench.api.placement_advice import ADVICES
from tierbench.controller import main, node_classes
from tierbench.controller.advisor import Advisor
from tierbench.controller.handlers import handled
from tierbench.controller.main import until
from tierbench.controller.node_classes import run_node_classes
from tierbench.kube.client import ApiError


async def hang() -> None:
    await asyncio.Event().wait()


async def end() -> None:
    """Returns, which no task of the operator should do."""


async def fail() -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize(("task", "error"), [(end, RuntimeError), (fail, ZeroDivisionError)])
async def test_process_ends_when_a_task_ends(task: object, error: type[Exception]) -> None:
    with pytest.raises(ExceptionGroup) as raised:
        await asyncio.wait_for(until(hang(), hang(), task()), 60)  # type: ignore[operator]
    assert raised.group_contains(error)


async def test_tasks_end_when_the_operator_ends() -> None:
    started, ended = asyncio.Event(), []

    async def work() -> None:
        started.set()
        try:
            await hang()
        finally:
            ended.append(work)

    await asyncio.wait_for(until(started.wait(), work(), hang()), 60)
    assert ended == [work]


async def test_leader_waits_until_all_kinds_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """kopf watches no type that is not served when it starts."""
    monkeypatch.setattr(main, "_RETRY_SECONDS", 0)
    api = ApiServer()
    context = context_of(api)
    served = iter([(), tuple(each for each in SERVED if each not in {ADVICES, NODE_CLASSES}), SERVED])

    async def serve_more(_: Request) -> None:
        api.types = next(served)

    api.reactor = serve_more
    await asyncio.wait_for(main._wait_until_served(context.kube, handled(context, Advisor(context))), 60)
    assert next(served, None) is None


async def test_rejected_status_of_a_class_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_classes, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(node_classes, "_RETRY_SECONDS", 0)
    api = ApiServer()
    context = context_of(api)
    context.cluster.classes = {"cloud": node_class("cloud")}
    context.cluster.nodes = {"c1": node("c1", "cloud")}
    api.refuse["PATCH", "/nodeclasses/cloud/status"] = ApiError(500, "InternalError", "no")
    context.cluster.changed.set()
    writing = asyncio.create_task(
        run_node_classes(InProcessKube(api), context.cluster, context.metrics, context.definitions)
    )
    await api.until(lambda: len(api.writes) >= 5)
    writing.cancel()
