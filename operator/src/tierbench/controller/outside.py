"""Gives the work of stand-ins to the members of external classes, and what members measure to the stand-ins.

Nothing of this is stored. A stand-in offers its work again to another operator, and says what it has of it. A member
sends again what the stand-in does not have.
"""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from email.utils import format_datetime
from time import monotonic
from typing import Annotated, Any, Final, TypeVar

from aiohttp import web
from pydantic import Base64Bytes, Field, ValidationError

from tierbench.api.contract import MAXIMUM_OUTPUT_BYTES
from tierbench.api.model import CLASS_NAME_PATTERN, Model
from tierbench.api.node_class import CollectorAddress, Invitation, NodeClass
from tierbench.controller.collector import CollectorKey, Inbox, bearer
from tierbench.controller.node_classes import ClusterView
from tierbench.domain.node_classes import KEY_DIGITS, Member, members_of
from tierbench.kube.meta import Name, parse_time

_MOST_OFFERED: Final = 256 << 10
_PIECE_BYTES: Final = 32 << 10
_FRESH_SECONDS: Final = 15.0
_AWAY: Final = timedelta(seconds=60)
_RESTART_SECONDS: Final = 60.0
"""Within this time every stand-in has offered its work to an operator that has just begun."""
_Request = TypeVar("_Request", bound=Model)
_Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Word = Annotated[str, Field(max_length=32, pattern=r"^[A-Za-z0-9._+-]*$")]
_ClassName = Annotated[str, Field(max_length=63, pattern=CLASS_NAME_PATTERN)]
_Bytes = Annotated[int, Field(ge=0, le=2 * MAXIMUM_OUTPUT_BYTES)]
_Text = Annotated[str, Field(max_length=4096)]


class _Facts(Model):
    """What a member says of itself with each request."""

    os: _Word = ""
    architecture: _Word = ""
    version: _Word = ""


class _Join(_Facts):
    """A request to join a class. `key` is a secret of the machine, so that no other one can use its token."""

    key: _Hash


class _Failure(Model):
    """Why a member did not measure to the end."""

    reason: Annotated[str, Field(max_length=63)]
    message: _Text
    case: Annotated[int, Field(ge=0)] = 0


class _Engine(Model):
    """The program that measured."""

    name: _Word
    version: _Word
    architecture: _Word


class _End(Model):
    """How a member ended its work."""

    engine: _Engine
    failure: _Failure | None = None


class _Lines(_Facts):
    """Lines of a member, from a number of bytes on. With `end`, they are the last ones."""

    offset: _Bytes
    piece: Annotated[Base64Bytes, Field(max_length=_PIECE_BYTES)] = b""
    end: _End | None = None


class _Offered(Model):
    """The work of a stand-in: a plan of the operator, and the content of the files that it names."""

    class_name: _ClassName
    plan: Annotated[str, Field(max_length=128 << 10)]
    signature: _Hash
    files: Annotated[dict[Annotated[str, Field(max_length=256)], _Text], Field(max_length=1024)]
    silent_seconds: Annotated[int, Field(ge=1)]


class _StandIn(Model):
    """What a stand-in asks: it has so many bytes, and knows the member. Its work is `over` once it has all of it."""

    received: _Bytes = 0
    member: Annotated[str, Field(max_length=63)] = ""
    over: bool = False
    offer: _Offered | None = None


@dataclass
class _Work:
    """The work of one stand-in. It has `taken` bytes of what the `member` sent, and the rest waits for it."""

    offered: _Offered
    taken: int
    member: str = ""
    seen: float = field(default_factory=monotonic)
    """When the member was last seen, or the work was offered."""
    asked: float = field(default_factory=monotonic)
    """When the stand-in last asked."""
    waiting: bytearray = field(default_factory=bytearray)
    end: _End | None = None
    over: bool = False

    @property
    def received(self) -> int:
        return self.taken + len(self.waiting)

    @property
    def is_silent(self) -> bool:
        return monotonic() - self.seen > self.offered.silent_seconds


class Outside:
    """The members of external classes, and the work that stand-ins offer them."""

    def __init__(self, inbox: Inbox, key: CollectorKey, cluster: ClusterView, now: Callable[[], datetime]) -> None:
        self._inbox = inbox
        self._key = key
        self._cluster = cluster
        self._now = now
        self._work: dict[Name, _Work] = {}
        self._held: dict[str, _Work] = {}
        """By class, the work that a member was given last: one of them measures at a time."""
        self._began = monotonic()

    def join(self, class_name: str, token: str, asked: _Join) -> tuple[int, dict[str, Any]]:
        """Lets a machine join by its token. It has its credential once the status of the class has the member."""
        node_class, digest = self._external(class_name), hashlib.sha256(token.encode()).hexdigest()
        found = (one for one in node_class.spec.invitations if hmac.compare_digest(one.token_hash, digest))
        invitation = next(found, None)
        if invitation is None:
            raise web.HTTPUnauthorized(text="No invitation of the class has this token.\n")
        name, key = invitation.name, digest[:KEY_DIGITS] + hashlib.sha256(asked.key.encode()).hexdigest()[:KEY_DIGITS]
        known = self._member(node_class, invitation)
        if known is None and parse_time(invitation.expiration_time) < self._now():
            raise web.HTTPUnauthorized(text="The token has expired.\n")
        if known is not None and known.key != key:
            raise web.HTTPUnauthorized(text="Another machine has joined with this token.\n")
        self._observe(class_name, name, key, asked)
        stored = members_of(node_class).get(name)
        if stored is None or stored.key != key:
            self._cluster.changed.set()
            return 202, {}
        return 200, {"name": name, "credential": self._key.credential(node_class.metadata.uid, name, key)}

    def admit(self, class_name: str, name: str, credential: str, facts: _Facts) -> None:
        """Returns if a request is of a member of a class. Raises HTTPUnauthorized."""
        node_class = self._external(class_name)
        invitation = next((one for one in node_class.spec.invitations if one.name == name), None)
        member = None if invitation is None else self._member(node_class, invitation)
        if member is None:
            raise web.HTTPUnauthorized(text="The machine is no member of the class: invite it again.\n")
        wanted = self._key.credential(node_class.metadata.uid, name, member.key)
        if not hmac.compare_digest(wanted.encode(), credential.encode(errors="replace")):
            raise web.HTTPUnauthorized(text="The credential is not of this member: invite it again.\n")
        self._observe(class_name, name, member.key, facts)

    def ask(self, class_name: str, name: str) -> dict[str, Any]:
        """Returns work for a member that has none, or nothing."""
        held = self._held.get(class_name)
        if held is not None and held.member == name:
            del self._held[class_name]
        elif held is not None and not held.is_silent:
            return {}
        pod, work = next(self._offers(class_name, name), (None, None))
        if pod is None or work is None:
            return {}
        if work.received:
            failure = _Failure(reason="Interrupted", message="The member has lost what it had measured.")
            work.end = _End(engine=_Engine(name="", version="", architecture=""), failure=failure)
            return {}
        self._give(work, name)
        return {"pod": "/".join(pod), "plan": work.offered.plan, "files": work.offered.files}

    def _give(self, work: _Work, name: str) -> None:
        held = self._held.get(work.offered.class_name)
        if held is not None and held.member != name and not held.is_silent:
            return
        work.member, work.seen = name, monotonic()
        self._held[work.offered.class_name] = work
        known = self._cluster.members[work.offered.class_name]
        known[name] = replace(known[name], busy=True)

    def _offers(self, class_name: str, name: str) -> Iterator[tuple[Name, _Work]]:
        """Yields the work that a member can take: its own first, if the answer was lost."""
        found = [
            (pod, work)
            for pod, work in sorted(self._current().items())
            if work.offered.class_name == class_name
            and work.member in {"", name}
            and work.end is None
            and not work.over
            and monotonic() - work.asked < _FRESH_SECONDS
        ]
        yield from sorted(found, key=lambda item: item[1].member == "")

    def take(self, class_name: str, name: str, pod: Name, lines: _Lines) -> dict[str, Any]:
        """Takes the next lines of a member, and returns what became of its work."""
        work = self._current().get(pod)
        if work is None:
            comes = self._inbox.expects(pod) or monotonic() - self._began < _RESTART_SECONDS
            return {"state": "Unknown" if comes else "Gone", "received": 0}
        if not work.member and work.offered.class_name == class_name:
            self._give(work, name)  # the stand-in did not know its member yet when the operator before this one ended
        if (work.offered.class_name, work.member) != (class_name, name):
            raise web.HTTPForbidden(text="This work is not of this member.\n")
        total = lines.offset + len(lines.piece)
        if total > MAXIMUM_OUTPUT_BYTES:
            raise web.HTTPRequestEntityTooLarge(MAXIMUM_OUTPUT_BYTES, total)
        work.seen = monotonic()
        if lines.offset == work.received and len(work.waiting) < _PIECE_BYTES:
            work.waiting += lines.piece
        if lines.end is not None and total == work.received:
            work.end = lines.end
        return {"state": "Done" if work.over else "Taken", "received": work.received}

    def stand(self, pod: Name, asked: _StandIn) -> dict[str, Any]:
        """Takes the offer of a stand-in, and returns what its member has sent."""
        work = self._current().get(pod)
        if work is None:
            if asked.offer is None:
                return {"known": False}
            work = self._take_offer(pod, asked, asked.offer)
        work.asked = monotonic()
        further = asked.received - work.taken
        if 0 < further <= len(work.waiting):
            del work.waiting[:further]
            work.taken = asked.received
        work.over = work.over or asked.over
        if work.over and self._held.get(work.offered.class_name) is work:
            del self._held[work.offered.class_name]
        piece = bytes(work.waiting[:_PIECE_BYTES])
        last = work.end is not None and len(piece) == len(work.waiting)
        return {
            "known": True,
            "member": work.member,
            "silentSeconds": int(monotonic() - work.seen),
            "piece": b64encode(piece).decode(),
            "end": work.end.to_json() if work.end is not None and last else None,
        }

    def _take_offer(self, pod: Name, asked: _StandIn, offer: _Offered) -> _Work:
        wanted = self._key.signature(self._inbox.scope_of(pod), offer.class_name, offer.plan)
        if not hmac.compare_digest(wanted, offer.signature):
            raise web.HTTPForbidden(text="The plan is not of the operator.\n")
        work = _Work(offer, asked.received, asked.member)
        self._work[pod] = work
        if work.member:
            self._held[offer.class_name] = work
        return work

    def _current(self) -> dict[Name, _Work]:
        """Returns the work of pods that are still there, and for a while that of pods that have ended."""
        self._work = {
            pod: work
            for pod, work in self._work.items()
            if self._inbox.expects(pod) or (work.over and monotonic() - work.asked < _RESTART_SECONDS)
        }
        return self._work

    def _external(self, class_name: str) -> NodeClass:
        node_class = self._cluster.classes.get(class_name)
        if node_class is None or not node_class.spec.external:
            raise web.HTTPUnauthorized(text="There is no such external class.\n")
        return node_class

    def _member(self, node_class: NodeClass, invitation: Invitation) -> Member | None:
        """Returns the member that has joined by an invitation."""
        seen = self._cluster.members.get(node_class.metadata.name, {}).get(invitation.name)
        if seen is not None and seen.key.startswith(invitation.token_hash[:KEY_DIGITS]):
            return seen
        return members_of(node_class).get(invitation.name)

    def _observe(self, class_name: str, name: str, key: str, facts: _Facts) -> None:
        held = self._held.get(class_name)
        busy = held is not None and held.member == name
        known, now = self._cluster.members.setdefault(class_name, {}), self._now()
        before = known.get(name)
        known[name] = Member(key, facts.os, facts.architecture, facts.version, now, busy)
        if before is None or now - before.seen > _AWAY:
            self._cluster.changed.set()


def routes(
    inbox: Inbox,
    cluster: ClusterView,
    now: Callable[[], datetime],
    is_synced: Callable[[], bool],
    url: str,
    key: CollectorKey,
) -> Iterable[web.RouteDef]:
    """Returns the routes of members and stand-ins, and lets the statuses of external classes name the collector.

    Until the operator knows the classes, it refuses no member for good.
    """
    outside = Outside(inbox, key, cluster, now)
    cluster.collector, cluster.waits_for_collector = CollectorAddress(url=url, pin=key.pin), False
    cluster.changed.set()

    def reply(answer: dict[str, Any], status: int = 200) -> web.Response:
        """Returns a response from which members, whose clocks may be off, take the time."""
        return web.json_response(answer, status=status, headers={"Date": format_datetime(now(), usegmt=True)})

    def check_synced() -> None:
        if not is_synced():
            raise web.HTTPServiceUnavailable(text="The operator has just started.\n")

    async def join(request: web.Request) -> web.Response:
        check_synced()
        status, answer = outside.join(request.match_info["class"], bearer(request), await _read(request, _Join))
        return reply(answer, status)

    async def ask(request: web.Request) -> web.Response:
        class_name, name = admitted(request, await _read(request, _Facts))
        return reply(outside.ask(class_name, name))

    async def take(request: web.Request) -> web.Response:
        lines = await _read(request, _Lines)
        class_name, name = admitted(request, lines)
        return reply(outside.take(class_name, name, _pod(request), lines))

    async def stand(request: web.Request) -> web.Response:
        inbox.admit(_pod(request), bearer(request))
        return reply(outside.stand(_pod(request), await _read(request, _StandIn, _MOST_OFFERED)))

    def admitted(request: web.Request, facts: _Facts) -> tuple[str, str]:
        check_synced()
        class_name, name = request.match_info["class"], request.match_info["name"]
        outside.admit(class_name, name, bearer(request), facts)
        return class_name, name

    member = "/v1/members/{class}/{name}"
    return (
        web.post("/v1/join/{class}", join),
        web.post(f"{member}/ask", ask),
        web.post(f"{member}/lines/{{namespace}}/{{pod}}", take),
        web.post("/v1/work/{namespace}/{pod}", stand),
    )


def _pod(request: web.Request) -> Name:
    return request.match_info["namespace"], request.match_info["pod"]


async def _read(request: web.Request, model: type[_Request], most: int = 0) -> _Request:
    """Reads a request of at most so many bytes. Raises HTTPBadRequest."""
    body = await (request.clone(client_max_size=most) if most else request).read()
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise web.HTTPBadRequest(text=f"{'.'.join(map(str, first['loc']))}: {first['msg']}\n") from error
