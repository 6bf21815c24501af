"""Members of external classes need a token to join, measure one at a time, and do not get work of others."""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from tests.unit.apiserver.client import InProcessKube
from tests.unit.apiserver.server import ApiServer
from tierbench.api.node_class import NODE_CLASSES
from tierbench.controller import outside as outside_module
from tierbench.controller.collector import CollectorKey, Inbox, collector
from tierbench.controller.credentials import new_key
from tierbench.controller.node_classes import ClusterView
from tierbench.controller.outside import routes
from tierbench.kube.meta import format_time

Json = dict[str, Any]
SCOPE, POD, OTHER = ("uid-1", 1), "default/pod", "default/other"
PLAN = '{"contract":1}'
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FACTS = {"os": "linux", "architecture": "arm64", "version": "1"}
ENGINE = {"name": "tierbench-client", "version": "1", "architecture": "arm64"}


class Operator:
    """An operator with the classes laptop and phone, and what members and stand-ins send it."""

    def __init__(self, api: ApiServer, client: TestClient[Any, Any], key: CollectorKey) -> None:
        self.api, self.client, self.key = api, client, key
        self.inbox, self.cluster = Inbox(), ClusterView()

    async def post(self, path: str, token: str, body: object, status: int = 200) -> Json:
        headers = {"Authorization": f"Bearer {token}"}
        async with self.client.post(path, json=body, headers=headers) as answer:
            assert answer.status == status, await answer.text()
            return dict(await answer.json()) if status < 300 else {}

    async def join(self, name: str, key: str = "1", class_name: str = "laptop", status: int = 200) -> str:
        """Joins with the token of a member and its own key. Returns the credential."""
        body = {**FACTS, "key": hashlib.sha256(key.encode()).hexdigest()}
        path = f"/v1/join/{class_name}"
        if status == 200:
            await self.post(path, token_of(name), body, 202)
            await self.write()
        found = await self.post(path, token_of(name), body, status)
        assert found.get("name", name) == name
        return str(found.get("credential"))

    async def write(self) -> None:
        """Writes the statuses of the classes."""
        await self.cluster.write_class_statuses(InProcessKube(self.api))

    async def ask(self, name: str, credential: str, class_name: str = "laptop", status: int = 200) -> Json:
        return await self.post(f"/v1/members/{class_name}/{name}/ask", credential, FACTS, status)

    async def send(
        self, name: str, credential: str, pod: str = POD, status: int = 200, class_name: str = "laptop", **body: Any
    ) -> Json:
        sent = {**FACTS, "offset": 0, **body, "piece": b64encode(body.get("piece", b"")).decode()}
        return await self.post(f"/v1/members/{class_name}/{name}/lines/{pod}", credential, sent, status)

    async def poll_as_stand_in(self, pod: str = POD, status: int = 200, **body: Any) -> Json:
        return await self.post(f"/v1/work/{pod}", self.key.token(SCOPE), body, status)

    async def offer(self, pod: str = POD, class_name: str = "laptop", status: int = 200, **more: Any) -> Json:
        namespace, _, name = pod.partition("/")
        self.inbox.expect((namespace, name), SCOPE, lambda: None, wanted=False)
        signature = self.key.signature(SCOPE, class_name, PLAN)
        offer = {"className": class_name, "plan": PLAN, "signature": signature, "files": {}, "silentSeconds": 60}
        return await self.poll_as_stand_in(pod, status, offer={**offer, **more})


def token_of(name: str) -> str:
    return f"token-of-{name}"


def invitation(name: str, minutes: int = 60) -> Json:
    digest = hashlib.sha256(token_of(name).encode()).hexdigest()
    return {"name": name, "tokenHash": digest, "expirationTime": format_time(NOW + timedelta(minutes=minutes))}


def put_class(api: ApiServer, name: str, *invitations: Json) -> None:
    spec = {"external": True, "invitations": list(invitations)}
    api.put(NODE_CLASSES, {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec})


@pytest.fixture
async def operator() -> AsyncIterator[Operator]:
    api, key = ApiServer(), CollectorKey(new_key())
    put_class(api, "laptop", invitation("a"), invitation("b"), invitation("late", -1))
    put_class(api, "phone", invitation("p"))
    inbox, cluster = Inbox(), ClusterView()
    inbox.key = key
    for raw in api.matching(NODE_CLASSES.path(None)):
        cluster.observe_class(raw, deleted=False)
    app = collector(inbox, routes(inbox, cluster, lambda: NOW, lambda: True, "https://192.0.2.7:30443", key))
    async with TestClient(TestServer(app)) as client:
        found = Operator(api, client, key)
        found.inbox, found.cluster = inbox, cluster
        yield found


async def test_lines_of_a_member_reach_the_stand_in(operator: Operator) -> None:
    credential = await operator.join("a")
    assert await operator.ask("a", credential) == {}
    operator.inbox.expect(("default", "pod"), SCOPE, lambda: None, wanted=False)
    assert await operator.poll_as_stand_in() == {"known": False}
    assert (await operator.offer(files={"/x": "secret"}))["known"]
    assert await operator.ask("a", credential) == {"pod": POD, "plan": PLAN, "files": {"/x": "secret"}}
    assert await operator.send("a", credential, piece=b"12345") == {"state": "Taken", "received": 5}
    assert await operator.send("a", credential, piece=b"12345") == {"state": "Taken", "received": 5}
    found = await operator.poll_as_stand_in()
    assert (found["member"], b64decode(found["piece"]), found["end"]) == ("a", b"12345", None)
    end = {"engine": ENGINE, "failure": {"reason": "TimedOut", "message": "late", "case": 2}}
    assert (await operator.send("a", credential, offset=5, piece=b"67", end=end))["received"] == 7
    found = await operator.poll_as_stand_in(received=5)
    assert (b64decode(found["piece"]), found["end"]) == (b"67", end)
    await operator.poll_as_stand_in(received=7, over=True)
    assert (await operator.send("a", credential, offset=7))["state"] == "Done"
    assert await operator.ask("a", credential) == {}
    operator.inbox.forget(("default", "pod"))


async def test_answers_have_the_time_of_the_api_server(operator: Operator) -> None:
    """Members with wrong clocks use this time, and the clock of the operator's node may be wrong, too."""
    body = {**FACTS, "key": hashlib.sha256(b"1").hexdigest()}
    headers = {"Authorization": f"Bearer {token_of('a')}"}
    async with operator.client.post("/v1/join/laptop", json=body, headers=headers) as answer:
        assert answer.headers["Date"] == "Thu, 01 Jan 2026 00:00:00 GMT"


async def test_new_operator_continues_from_the_position_of_the_stand_in(operator: Operator) -> None:
    """The new operator has no state. The stand-in reports how much it has, and the member sends the rest."""
    credential = await operator.join("a")
    await operator.offer()
    await operator.ask("a", credential)
    await operator.send("a", credential, piece=b"12345")
    again = Inbox()
    again.key = operator.key
    app = collector(again, routes(again, operator.cluster, lambda: NOW, lambda: True, "https://x:1", operator.key))
    async with TestClient(TestServer(app)) as client:
        operator.client, operator.inbox = client, again
        assert await operator.send("a", credential, offset=5) == {"state": "Unknown", "received": 0}
        again.expect(("default", "pod"), SCOPE, lambda: None, wanted=False)
        signature = operator.key.signature(SCOPE, "laptop", PLAN)
        offer = {"className": "laptop", "plan": PLAN, "signature": signature, "files": {}, "silentSeconds": 60}
        await operator.poll_as_stand_in(received=3, member="a", offer=offer)
        assert (await operator.send("a", credential, offset=5, piece=b"67"))["received"] == 3
        assert (await operator.send("a", credential, offset=3, piece=b"4567"))["received"] == 7
        assert b64decode((await operator.poll_as_stand_in(received=3))["piece"]) == b"4567"


async def test_stand_in_without_a_member_gets_the_first_one_that_sends_lines(operator: Operator) -> None:
    """The operator that assigned the work may have ended before the stand-in asked again."""
    first, second = await operator.join("a"), await operator.join("b")
    await operator.offer()
    assert (await operator.send("a", first, piece=b"12345"))["received"] == 5
    assert (await operator.poll_as_stand_in())["member"] == "a"
    await operator.send("b", second, status=403)
    await operator.offer(OTHER)
    await operator.send("b", second, OTHER, 403)


async def test_one_member_measures_at_a_time(operator: Operator) -> None:
    first, second = await operator.join("a"), await operator.join("b")
    await operator.offer()
    assert (await operator.ask("a", first))["pod"] == POD
    await operator.offer(OTHER)
    assert await operator.ask("b", second) == {}
    assert operator.cluster.members["laptop"]["a"].busy
    operator.inbox.forget(("default", "pod"))  # the client was stopped, and the member does not know yet
    assert await operator.ask("b", second) == {}
    await operator.ask("a", first)
    assert (await operator.send("b", second, OTHER, 403)) == {}


async def test_work_is_given_again_if_the_answer_was_lost(operator: Operator) -> None:
    credential = await operator.join("a")
    await operator.offer()
    assert await operator.ask("a", credential) == await operator.ask("a", credential) != {}
    await operator.send("a", credential, piece=b"1")
    assert await operator.ask("a", credential) == {}  # the member has lost its lines
    assert (await operator.poll_as_stand_in(received=1))["end"]["failure"]["reason"] == "Interrupted"


async def test_silent_member_does_not_block_its_class(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = await operator.join("a"), await operator.join("b")
    await operator.offer()
    await operator.ask("a", first)
    now = monotonic()
    monkeypatch.setattr("tierbench.controller.outside.monotonic", lambda: now + 61)
    assert (await operator.poll_as_stand_in())["silentSeconds"] >= 60
    operator.inbox.forget(("default", "pod"))
    await operator.offer(OTHER)
    assert (await operator.ask("b", second))["pod"] == OTHER
    assert (await operator.send("a", first, piece=b"late"))["state"] == "Gone"
    assert await operator.ask("a", first) == {}


async def test_work_of_a_missing_pod_is_unknown_after_a_restart_and_gone_later(operator: Operator) -> None:
    """An operator that has just started does not know yet which pods exist."""
    credential = await operator.join("a")
    assert (await operator.send("a", credential))["state"] == "Unknown"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outside_module, "_RESTART_SECONDS", 0)
        assert (await operator.send("a", credential))["state"] == "Gone"


async def test_a_token_is_valid_once(operator: Operator) -> None:
    credential = await operator.join("a")
    again = {**FACTS, "key": hashlib.sha256(b"1").hexdigest()}
    assert (await operator.post("/v1/join/laptop", token_of("a"), again))["credential"] == credential
    await operator.join("a", key="2", status=401)


async def test_member_gets_its_credential_only_after_it_is_stored(operator: Operator) -> None:
    """Otherwise, a restarted operator would let another machine use the token."""
    body = {**FACTS, "key": "1" * 64}
    for _ in range(3):
        await operator.post("/v1/join/laptop", token_of("a"), body, 202)
    operator.cluster.members.clear()
    await operator.post("/v1/join/laptop", token_of("a"), {**FACTS, "key": "2" * 64}, 202)
    await operator.write()
    await operator.post("/v1/join/laptop", token_of("a"), {**FACTS, "key": "2" * 64}, 200)
    await operator.post("/v1/join/laptop", token_of("a"), body, 401)


@pytest.mark.parametrize(
    ("class_name", "name"), [("laptop", "late"), ("phone", "a"), ("laptop", "p"), ("other", "a"), ("laptop", "")]
)
async def test_expired_token_or_token_of_another_class_is_refused(
    operator: Operator, class_name: str, name: str
) -> None:
    await operator.join(name, class_name=class_name, status=401)
    assert not operator.cluster.members


async def test_a_member_that_is_removed_is_refused_at_once(operator: Operator) -> None:
    first, second = await operator.join("a"), await operator.join("b")
    put_class(operator.api, "laptop", invitation("b"))
    (raw,) = [one for one in operator.api.matching(NODE_CLASSES.path(None)) if one["metadata"]["name"] == "laptop"]
    operator.cluster.observe_class(raw, deleted=False)
    await operator.ask("a", first, status=401)
    await operator.ask("b", second)
    operator.cluster.observe_class(raw, deleted=True)
    await operator.ask("b", second, status=401)


async def test_credential_is_valid_for_one_member_of_one_class(operator: Operator) -> None:
    mine, other = await operator.join("a"), await operator.join("p", class_name="phone")
    await operator.offer()
    await operator.ask("b", mine, status=401)
    await operator.ask("a", mine, class_name="phone", status=401)
    await operator.ask("a", other, status=401)
    await operator.ask("a", token_of("a"), status=401)
    assert await operator.ask("p", other, class_name="phone") == {}
    await operator.ask("a", mine)
    await operator.send("p", other, class_name="phone", status=403, piece=b"mine")
    for path in (f"/v1/work/{POD}", f"/v1/lines/{POD}?offset=0"):
        await operator.post(path, mine, {}, 401)


async def test_offer_of_a_plan_that_the_operator_did_not_sign_is_refused(operator: Operator) -> None:
    """A tenant can read the token of a run, and so act as a stand-in."""
    await operator.offer(plan='{"contract":2}', status=403)
    await operator.offer(className="phone", status=403)
    operator.key = CollectorKey(new_key())
    await operator.offer(status=401)


async def test_requests_of_members_and_stand_ins_are_bounded(operator: Operator) -> None:
    credential = await operator.join("a")
    await operator.offer()
    await operator.ask("a", credential)
    for body, status in (
        ({"piece": b"x" * (33 << 10)}, 400),
        ({"piece": b"x" * (65 << 10)}, 413),
        ({"offset": -1}, 400),
        ({"offset": 9 << 20}, 413),
        ({"offset": 1 << 40}, 400),
        ({"os": "x" * 33}, 400),
        ({"os": "a\nb"}, 400),
        ({"end": {"engine": ENGINE, "failure": {"reason": "R", "message": "x" * 5000}}}, 400),
        ({"end": {"engine": {**ENGINE, "name": "x" * 33}}}, 400),
    ):
        await operator.send("a", credential, status=status, **body)
    received, piece = 0, b"x" * (32 << 10)
    for _ in range(5):
        received = (await operator.send("a", credential, offset=received, piece=piece))["received"]
    assert received <= 64 << 10
    await operator.poll_as_stand_in(offer={"plan": "x" * (300 << 10)}, status=413)


async def test_operator_answers_503_until_it_has_listed_the_classes() -> None:
    inbox, cluster, key = Inbox(), ClusterView(), CollectorKey(new_key())
    app = collector(inbox, routes(inbox, cluster, lambda: NOW, lambda: False, "https://x:1", key))
    async with TestClient(TestServer(app)) as client:
        for path in ("/v1/join/laptop", "/v1/members/laptop/a/ask", f"/v1/members/laptop/a/lines/{POD}"):
            async with client.post(path, json={**FACTS, "key": "1" * 64, "offset": 0}) as answer:
                assert answer.status == 503
