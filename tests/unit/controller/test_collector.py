"""The collector limits who may push lines and how many, and each trial is stored once before its client ends."""

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import suppress
from socket import socket
from typing import Any

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given
from hypothesis import strategies as st

from tests.ports import free_ports
from tests.unit.apiserver.server import ApiServer
from tests.unit.controller.operator import context_of
from tests.unit.controller.reconciling import CLIENT, OWNER, RESOURCE, Demo, WaitError
from tests.unit.domain.objects import seal, trial_line
from tests.unit.examples import examples
from tierbench.api.contract import MAXIMUM_OUTPUT_BYTES
from tierbench.controller import collector as collector_module
from tierbench.controller import reconciler
from tierbench.controller.collector import CollectorKey, Inbox, collector, run_collector
from tierbench.controller.reconciler import BenchmarkReconciler
from tierbench.kube.client import ApiError, ConflictError
from tierbench.kube.meta import JOBS, PODS, type_of

POD, SCOPE = ("default", "pod"), ("uid-1", 1)
NAME = f"{CLIENT}-x"
STARTED = '{"contract":1,"record":"TrialStarted","trial":1,"warmup":false,"time":"2026-01-01T00:00:00Z"}\n'
LINES = "".join(STARTED + trial_line(number, case=1) for number in range(1, 6)).encode()
SECRETS = type_of("v1", "Secret")
UNREACHABLE = ApiError(500, "InternalError", "dial tcp 10.0.0.9:10250: connect: connection refused")


def ignore() -> None:
    """Does nothing with received lines."""


@pytest.fixture
async def inbox() -> Inbox:
    """The inbox of an operator that expects one pod."""
    api = ApiServer()
    api.put(SECRETS, {"metadata": {"name": "collector", "namespace": "tierbench"}})
    inbox = Inbox()
    inbox.key = await CollectorKey.load(context_of(api).kube, "tierbench", "collector")
    inbox.expect(POD, SCOPE, ignore, wanted=True)
    return inbox


@pytest.fixture
async def client(inbox: Inbox) -> AsyncIterator[TestClient[Any, Any]]:
    """A client of the collector."""
    async with TestClient(TestServer(collector(inbox))) as client:
        yield client


def token(inbox: Inbox, scope: tuple[str, int] = SCOPE) -> dict[str, str]:
    assert inbox.key is not None
    return {"Authorization": f"Bearer {inbox.key.token(scope)}"}


async def test_key_is_created_once_and_reused() -> None:
    api = ApiServer()
    api.put(SECRETS, {"metadata": {"name": "collector", "namespace": "tierbench"}})
    kube = context_of(api).kube
    keys = [await CollectorKey.load(kube, "tierbench", "collector") for _ in range(2)]
    assert keys[0] == keys[1]
    assert keys[0].token(SCOPE) != keys[0].token(("uid-1", 2))
    assert b"BEGIN CERTIFICATE" in keys[0].certificate


def is_open(port: int) -> bool:
    with socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


async def test_collector_serves_once_it_has_its_key() -> None:
    """The API server may be unavailable when the operator starts to lead."""
    api, inbox, (port,) = ApiServer(), Inbox(), free_ports(1)
    api.put(SECRETS, {"metadata": {"name": "collector", "namespace": "tierbench"}})
    api.refuse["GET", "/secrets/collector"] = ApiError(503, "ServiceUnavailable", "later")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collector_module, "_RETRY_SECONDS", 0.01)
        serving = asyncio.create_task(run_collector(inbox, context_of(api).kube, ("tierbench", "collector"), port))
        await api.until(lambda: api.requests)
        api.refuse.clear()
        await api.until(lambda: is_open(port))
    inbox.expect(POD, SCOPE, ignore, wanted=True)
    async with ClientSession(headers=token(inbox)) as session:
        url = f"https://127.0.0.1:{port}/v1/lines/default/pod?offset=0"
        async with session.post(url, data=LINES, ssl=False) as answer:
            assert (await answer.json())["received"] == len(LINES)
    serving.cancel()


@pytest.mark.parametrize(
    ("path", "scope", "body", "status"),
    [
        ("/v1/lines/default/pod?offset=0", SCOPE, LINES, 200),
        ("/v1/lines/default/pod?offset=0", ("uid-1", 2), LINES, 401),
        ("/v1/lines/default/pod?offset=0", ("uid-2", 1), LINES, 401),
        ("/v1/lines/default/other?offset=0", SCOPE, LINES, 404),
        ("/v1/lines/other/pod?offset=0", SCOPE, LINES, 404),
        ("/v1/lines/default/pod", SCOPE, LINES, 400),
        ("/v1/lines/default/pod?offset=-1", SCOPE, LINES, 400),
        ("/v1/lines/default/pod?offset=99999999999999999999", SCOPE, LINES, 400),
        ("/v1/lines/default/pod?offset=0", SCOPE, b"x" * (65 << 10), 413),
        ("/v1/lines/default", SCOPE, LINES, 404),
    ],
)
async def test_only_pods_of_the_run_may_push(
    inbox: Inbox, client: TestClient[Any, Any], path: str, scope: tuple[str, int], body: bytes, status: int
) -> None:
    answer = await client.post(path, data=body, headers=token(inbox, scope))
    assert answer.status == status
    taken = inbox.expect(POD, SCOPE, ignore, wanted=True)
    assert taken.lines == (5 if status == 200 else 0)


async def test_collector_accepts_only_the_next_piece(inbox: Inbox, client: TestClient[Any, Any]) -> None:
    for offset, received in ((10, 0), (0, 300), (0, 300), (400, 300), (300, 600)):
        path = f"/v1/lines/default/pod?offset={offset}"
        answer = await client.post(path, data=LINES[offset : offset + 300], headers=token(inbox))
        assert (await answer.json())["received"] == received


def test_pushed_output_has_the_same_limit_as_a_log(inbox: Inbox) -> None:
    piece, received = b"x" * 65535 + b"\n", 0
    for _ in range(2 * MAXIMUM_OUTPUT_BYTES // len(piece)):
        received = inbox.receive(POD, received, piece)["received"]
    assert received <= MAXIMUM_OUTPUT_BYTES + len(piece)


def test_pushed_lines_are_not_accepted_if_the_operator_reads_the_log() -> None:
    inbox = Inbox()
    inbox.expect(POD, SCOPE, ignore, wanted=False)
    assert inbox.receive(POD, 0, LINES) == {"wanted": False, "received": 0, "recorded": 0}


class PushingClient:
    """A client that pushes its lines to an operator, which a test may kill."""

    def __init__(self, demo: Demo) -> None:
        self.demo = demo
        self.received = 0
        self.done = False

    def push(self, size: int) -> None:
        """Sends one request."""
        inbox = self.demo.context.inbox
        if inbox.expects(("default", NAME)):
            found = inbox.receive(("default", NAME), self.received, LINES[self.received : self.received + size])
            self.received = found["received"]
            self.done = not found["wanted"] or found["recorded"] >= 5

    async def reconcile(self) -> None:
        """Reconciles once, without a restart of the operator."""
        self.demo.relist()
        with suppress(ConflictError):
            await self.demo.reconciler.reconcile()

    async def restart(self) -> None:
        """Kills the operator, and starts a new one."""
        demo, current = self.demo, asyncio.current_task()
        for task in asyncio.all_tasks():
            if task is not current:
                task.cancel()
        cluster, key = demo.context.cluster, demo.context.inbox.key
        demo.context = context_of(demo.api)
        demo.context.cluster.nodes, demo.context.cluster.classes = cluster.nodes, cluster.classes
        demo.context.inbox.key = key
        demo.reconciler = BenchmarkReconciler(demo.context, RESOURCE, OWNER)


async def end_reconcile(*_: object) -> None:
    raise WaitError


async def pushing_client() -> PushingClient:
    """A running client of five trials whose log cannot be read."""
    demo = Demo(repetitions=5)
    demo.context.inbox.key = await key_of(demo.api)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reconciler, "wait_for_event", end_reconcile)
        await demo.until_client()
    job = demo.stored(JOBS, CLIENT)["metadata"]
    owner = {"kind": "Job", "name": CLIENT, "uid": job["uid"], "controller": True}
    metadata = {"name": NAME, "labels": job["labels"], "ownerReferences": [owner]}
    status = {"phase": "Running", "containerStatuses": [{"name": "client", "state": {"running": {}}}]}
    demo.api.put(PODS, {"metadata": metadata, "spec": {"nodeName": "u1"}, "status": status})
    demo.api.logs[NAME] = UNREACHABLE
    return PushingClient(demo)


async def key_of(api: ApiServer) -> CollectorKey:
    api.put(SECRETS, {"metadata": {"name": "collector", "namespace": "tierbench"}})
    return await CollectorKey.load(context_of(api).kube, "tierbench", "collector")


@examples(0.2)
@given(st.data())
async def test_an_operator_killed_at_any_time_stores_each_pushed_trial_once(data: st.DataObject) -> None:
    """The client ends when its trials are stored. Trials that only a killed operator received do not count."""
    client = await pushing_client()
    demo = client.demo
    for _ in range(60):
        match data.draw(st.sampled_from(["push", "push", "reconcile", "kill"])):
            case "push":
                client.push(data.draw(st.integers(1, 2000)))
            case "reconcile":
                await client.reconcile()
            case "kill":
                await client.restart()
        if client.done:
            break
    for _ in range(50):
        client.push(2000)
        if client.done:
            break
        await client.reconcile()
    assert client.done
    await client.restart()  # all trials are stored already
    trials = demo.record_status["trials"]
    assert [(trial["trial"], trial["collectedBy"]) for trial in trials] == [(number, "Push") for number in range(1, 6)]
    ended = {"terminated": {"exitCode": 0, "reason": "Completed", "message": seal(LINES.decode())}}
    status = {"phase": "Succeeded", "containerStatuses": [{"name": "client", "state": ended}]}
    demo.api.change(PODS, NAME, status=status)
    for _ in range(50):
        if demo.result_status.get("phase") == "Complete":
            break
        await client.reconcile()
    assert demo.result_status["phase"] == "Complete"
    assert demo.clients == [CLIENT]
    assert demo.record_status["trials"] == trials


async def test_clients_of_a_run_get_its_token_and_the_pin(demo: Demo) -> None:
    demo.context.inbox.key = key = await key_of(demo.api)
    await demo.until_client()
    secrets = [raw for raw in demo.api.matching(SECRETS.path("default")) if "collector-token" in raw.get("data", {})]
    assert {b64decode(raw["data"]["collector-token"]).decode() for raw in secrets} == {key.token((OWNER.uid, 1))}
    assert all(b64decode(raw["data"]["collector-pin"]).startswith(b"sha256//") for raw in secrets)
