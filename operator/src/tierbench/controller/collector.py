"""Takes the lines of clients whose logs cannot be read. The leader alone serves it."""

import asyncio
import hashlib
import hmac
import logging
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Self

from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tierbench.api.record import CollectedBy
from tierbench.controller.credentials import new_key, pin_of, self_signed
from tierbench.kube.client import REQUEST_ERRORS, ApiError, ConflictError, Kube
from tierbench.kube.meta import Name, type_of
from tierbench.metrics.server import serve, tls_context
from tierbench.results.client_output import Output, OutputParser
from tierbench.workloads.manifests import CLASS, PLAN, SIGNATURE, STAND_IN
from tierbench.workloads.pods import COLLECTOR_PIN, COLLECTOR_TOKEN
from tierbench.workloads.workload import Manifest

_SECRETS: Final = type_of("v1", "Secret")
_KEY: Final = "key"
_RETRY_SECONDS: Final = 5.0
_PIECE_BYTES: Final = 64 << 10
_logger = logging.getLogger(__name__)
Scope = tuple[str, int]
"""The UID of a benchmark, and the number of a run: a token is for one of them."""


def _no_routes(_: object) -> Iterable[web.RouteDef]:
    return ()


@dataclass(frozen=True)
class CollectorKey:
    """The private key of the collector. It stays the same when the operator restarts, and so do the tokens."""

    pem: bytes

    @classmethod
    async def load(cls, kube: Kube, namespace: str, name: str) -> Self:
        """Reads the key from the chart's Secret. Creates it if there is none."""
        while True:
            raw = await kube.get(_SECRETS, namespace, name)
            stored = raw.get("data", {}).get(_KEY)
            if stored is not None:
                return cls(b64decode(stored))
            made = new_key()
            try:
                await kube.replace(_SECRETS, namespace, {**raw, "data": {_KEY: b64encode(made).decode()}})
            except ConflictError:
                continue
            return cls(made)

    @property
    def pin(self) -> str:
        """The pin of the key, in the format of curl's --pinnedpubkey."""
        return pin_of(self._private).decode()

    @property
    def certificate(self) -> bytes:
        """A certificate of the key. Clients know the key, and verify nothing else."""
        return self_signed(self._private)

    @property
    def _private(self) -> ec.EllipticCurvePrivateKey:
        key = serialization.load_pem_private_key(self.pem, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError("the Secret of the collector has another type of key")
        return key

    def token(self, scope: Scope) -> str:
        """Returns the token of a run. The operator computes it again, so it stores none."""
        uid, run = scope
        return self._keyed(f"{uid}/{run}")

    def credential(self, uid: str, name: str, key: str) -> str:
        """Returns the credential of a member of the class with this UID. `key` is what it joined with."""
        return self._keyed(f"member\n{uid}\n{name}\n{key}")

    def signature(self, scope: Scope, node_class: str, plan: str) -> str:
        """Returns what shows that the operator wrote a plan for the members of a class, in this run."""
        uid, run = scope
        return self._keyed(f"work\n{uid}\n{run}\n{node_class}\n{plan}")

    def _keyed(self, text: str) -> str:
        return hmac.new(self.pem, text.encode(), hashlib.sha256).hexdigest()

    def credentials(self, scope: Scope) -> Mapping[str, bytes]:
        """Returns what the clients of a run need: their token and the pin of the key."""
        return {COLLECTOR_TOKEN: self.token(scope).encode(), COLLECTOR_PIN: self.pin.encode()}


@dataclass
class _Pushed:
    """What the pod of a client has pushed. `recorded` is the number of its trials that are stored."""

    scope: Scope
    on_line: Callable[[], None]
    parser: OutputParser = field(default_factory=lambda: OutputParser(CollectedBy.PUSH))
    received: int = 0
    recorded: int = 0
    wanted: bool = False


class Inbox:
    """The lines that clients have pushed, by namespace and name of their pods. It has none of unknown pods."""

    def __init__(self) -> None:
        self.key: CollectorKey | None = None
        """Set while this process leads, if the chart has a collector."""
        self._pods: dict[Name, _Pushed] = {}

    def expect(self, pod: Name, scope: Scope, on_line: Callable[[], None], *, wanted: bool) -> Output:
        """Lets a pod push its lines if they are wanted, and returns those that have arrived."""
        known = self._pods.setdefault(pod, _Pushed(scope, on_line))
        known.wanted = wanted or known.received > 0
        return known.parser.output

    def expects(self, pod: Name) -> bool:
        """Returns whether a pod may push."""
        return self.key is not None and pod in self._pods

    def acknowledge(self, pod: Name, trials: int) -> None:
        """Tells a pod that so many of its trials are stored."""
        if pod in self._pods:
            self._pods[pod].recorded = max(self._pods[pod].recorded, trials)

    def forget(self, pod: Name) -> None:
        """Drops the lines of a pod."""
        self._pods.pop(pod, None)

    def credentials(self, scope: Scope) -> Mapping[str, bytes]:
        """Returns what the clients of a run need to push, or nothing without a collector."""
        return {} if self.key is None else self.key.credentials(scope)

    def sign(self, scope: Scope, job: Manifest) -> Manifest:
        """Returns the Job of a client. If it stands in for a member, its plan is signed.

        Raises:
            ApiError: the collector has no key yet.
        """
        template = job["spec"]["template"]["spec"]
        container = template["containers"][0]
        arguments = container["args"]
        if arguments[0] != STAND_IN:
            return job
        if self.key is None:
            raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", "the collector has no key yet")
        given = {name: next(one for one in arguments if one.startswith(name)) for name in (CLASS, PLAN)}
        node_class, plan = (given[name].removeprefix(name) for name in (CLASS, PLAN))
        signed = [*arguments, SIGNATURE + self.key.signature(scope, node_class, plan)]
        template = {**template, "containers": [{**container, "args": signed}, *template["containers"][1:]]}
        return {**job, "spec": {**job["spec"], "template": {**job["spec"]["template"], "spec": template}}}

    def scope_of(self, pod: Name) -> Scope:
        """Returns the run of a pod that may push."""
        return self._pods[pod].scope

    def admit(self, pod: Name, token: str) -> None:
        """Returns if a pod may push with this token. Raises HTTPNotFound or HTTPUnauthorized."""
        if self.key is None or not self.expects(pod):
            raise web.HTTPNotFound(text="The operator does not know this pod yet.\n")
        if not hmac.compare_digest(self.key.token(self._pods[pod].scope).encode(), token.encode(errors="replace")):
            raise web.HTTPUnauthorized(text="The token is not of the run of this pod.\n")

    def receive(self, pod: Name, offset: int, piece: bytes) -> dict[str, Any]:
        """Takes the next piece of a pod's lines, and returns what is known of them. Ignores any other piece."""
        known = self._pods[pod]
        if offset == known.received and known.wanted and not known.parser.is_full:
            known.received += len(piece)
            if known.parser.feed(piece):
                known.on_line()
        return {"wanted": known.wanted, "received": known.received, "recorded": known.recorded}


async def run_collector(
    inbox: Inbox,
    kube: Kube,
    secret: Name,
    port: int,
    more: Callable[[CollectorKey], Iterable[web.RouteDef]] = _no_routes,
) -> None:
    """Serves the collector with the key of its Secret, without end. `more` returns further routes."""
    while inbox.key is None:
        try:
            inbox.key = await CollectorKey.load(kube, *secret)
        except REQUEST_ERRORS as error:
            _logger.warning("cannot read the key of the collector; retrying", extra={"error": str(error)})
            await asyncio.sleep(_RETRY_SECONDS)
    async with serve(port, collector(inbox, more(inbox.key)), tls_context(inbox.key.certificate, inbox.key.pem)):
        await asyncio.Event().wait()


def collector(inbox: Inbox, more: Iterable[web.RouteDef] = ()) -> web.Application:
    """Returns the application that takes lines, and has further routes."""

    async def take(request: web.Request) -> web.Response:
        pod = (request.match_info["namespace"], request.match_info["pod"])
        inbox.admit(pod, bearer(request))
        offset = request.query.get("offset", "")
        if not (offset.isdecimal() and offset.isascii() and len(offset) < len(str(2**31))):
            raise web.HTTPBadRequest(text="offset is not a number of bytes.\n")
        piece = await request.read()
        return web.json_response(inbox.receive(pod, int(offset), piece))

    app = web.Application(client_max_size=_PIECE_BYTES)
    app.add_routes([web.post("/v1/lines/{namespace}/{pod}", take), *more])
    return app


def bearer(request: web.Request) -> str:
    """Returns the token of a request."""
    return request.headers.get("Authorization", "").removeprefix("Bearer ")
