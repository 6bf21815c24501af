"""The client of the agent of the broker: samples of the node during trials, and barriers between parts."""

import http.client
import json
import time
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import urlsplit

from .contract import FailureError, Json
from .pinned import PinnedConnection

_PAUSE_SECONDS: Final = 0.2  # between requests that fail
_AGAIN_SECONDS: Final = 0.01  # before a barrier is asked again
_REQUEST_SECONDS: Final = 60.0
_FIRST_ANSWER_SECONDS: Final = 30.0  # until it answers
_GRACE_SECONDS: Final = 5.0  # the same once it has
_BARRIER_SECONDS: Final = 600.0

_Answer = tuple[int, Json]


@dataclass
class Agent:
    """The one at an URL such as https://10.0.0.1:9999, the token that it asks for, and the pin of its key."""

    url: str
    token: str
    pin: str
    _known: bool = field(default=False, init=False)
    _connection: PinnedConnection = field(init=False)

    def __post_init__(self) -> None:
        address = urlsplit(self.url)
        self._connection = PinnedConnection(address.hostname or "", address.port, self.pin, _REQUEST_SECONDS)

    def begin(self) -> bool:
        """Starts sampling. False: the agent, known before, does not answer now.

        Raises:
            FailureError: it never answered, or it refuses.
        """
        try:
            self._persist("begin", {"file": "", "cacheState": ""})
        except OSError as error:
            if self._known:
                return False
            message = (
                f"the agent of the broker does not answer at {self.url} ({error}): check whether its container runs"
            )
            raise FailureError("AgentUnreachable", message) from error
        self._known = True
        return True

    def end(self) -> Json | None:
        """What was sampled; None if the agent does not tell, which never spoils a trial."""
        try:
            return self._persist("end", {})
        except (OSError, FailureError):
            return None

    def meet(self, barrier: str, part: int, parts: int) -> None:
        """Waits until all parts have come to a barrier.

        Raises:
            FailureError: the others did not come, or the agent does not answer.
        """
        body: Json = {"name": barrier, "part": part, "parts": parts}
        deadline = time.monotonic() + _BARRIER_SECONDS
        while True:
            try:
                status, answer = self._post("barrier", body)
            except OSError as error:
                status, answer = 0, {"message": str(error)}
            if status == http.HTTPStatus.OK:
                return
            if status and status != http.HTTPStatus.ACCEPTED:
                raise _refusal(status, answer)
            if time.monotonic() > deadline:
                detail = answer.get("message") or f"missing: {answer.get('missing')}"
                message = f"not all of the {parts} parts reached {barrier} within {_BARRIER_SECONDS:.0f} s: {detail}"
                raise FailureError("BarrierTimedOut", message)
            time.sleep(_AGAIN_SECONDS if status else _PAUSE_SECONDS)

    def _persist(self, action: str, body: Json) -> Json:
        timeout = _GRACE_SECONDS if self._known else _FIRST_ANSWER_SECONDS
        deadline = time.monotonic() + timeout
        while True:
            try:
                status, answer = self._post(action, body)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)
            else:
                if status != http.HTTPStatus.OK:
                    raise _refusal(status, answer)
                return answer

    def _post(self, action: str, body: Json) -> _Answer:
        """Over the connection that there is: a handshake in a trial's load would be counted as the load's."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            self._connection.request("POST", f"/v1/{action}", json.dumps(body), headers)
            response = self._connection.getresponse()
            return response.status, _object(response.read())
        except OSError:
            self._connection.close()
            raise
        except http.client.HTTPException as error:
            self._connection.close()
            raise ConnectionError(repr(error)) from error


def _object(body: bytes) -> Json:
    try:
        value = json.loads(body or b"{}")
    except ValueError:
        return {}
    return cast(Json, value) if isinstance(value, dict) else {}


def _refusal(status: int, answer: Json) -> FailureError:
    reason, message = answer.get("reason"), answer.get("message")
    if isinstance(reason, str) and isinstance(message, str):
        return FailureError(reason, message)
    return FailureError("AgentUnreachable", f"the agent of the broker answers with HTTP status {status}")
