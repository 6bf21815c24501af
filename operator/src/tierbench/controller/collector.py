"""Takes the lines of clients whose logs cannot be read. The leader alone serves it."""

import asyncio
import hashlib
import hmac
import logging
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tierbench.api.record import CollectedBy
from tierbench.controller.credentials import new_key, pin_of, self_signed
from tierbench.kube.client import REQUEST_ERRORS, ConflictError, Kube
from tierbench.kube.meta import Name, type_of
from tierbench.metrics.server import serve, tls_context
from tierbench.results.client_output import Output, OutputParser
from tierbench.workloads.pods import COLLECTOR_PIN, COLLECTOR_TOKEN

_SECRETS: Final = type_of("v1", "Secret")
_KEY: Final = "key"
_RETRY_SECONDS: Final = 5.0
_PIECE_BYTES: Final = 64 << 10
_logger = logging.getLogger(__name__)
Scope = tuple[str, int]
"""The UID of a benchmark, and the number of a run: a token is for one of them."""


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
        return hmac.new(self.pem, f"{uid}/{run}".encode(), hashlib.sha256).hexdigest()

    def credentials(self, scope: Scope) -> Mapping[str, bytes]:
        """Returns what the clients of a run need: their token and the pin of the key."""
        return {COLLECTOR_TOKEN: self.token(scope).encode(), COLLECTOR_PIN: pin_of(self._private)}


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


async def run_collector(inbox: Inbox, kube: Kube, secret: Name, port: int) -> None:
    """Serves the collector with the key of its Secret, without end."""
    while inbox.key is None:
        try:
            inbox.key = await CollectorKey.load(kube, *secret)
        except REQUEST_ERRORS as error:
            _logger.warning("cannot read the key of the collector; retrying", extra={"error": str(error)})
            await asyncio.sleep(_RETRY_SECONDS)
    async with serve(port, collector(inbox), tls_context(inbox.key.certificate, inbox.key.pem)):
        await asyncio.Event().wait()


def collector(inbox: Inbox) -> web.Application:
    """Returns the application that takes lines."""

    async def take(request: web.Request) -> web.Response:
        pod = (request.match_info["namespace"], request.match_info["pod"])
        inbox.admit(pod, request.headers.get("Authorization", "").removeprefix("Bearer "))
        offset = request.query.get("offset", "")
        if not (offset.isdecimal() and offset.isascii() and len(offset) < len(str(2**31))):
            raise web.HTTPBadRequest(text="offset is not a number of bytes.\n")
        piece = await request.read()
        return web.json_response(inbox.receive(pod, int(offset), piece))

    app = web.Application(client_max_size=_PIECE_BYTES)
    app.add_routes([web.post("/v1/lines/{namespace}/{pod}", take)])
    return app
