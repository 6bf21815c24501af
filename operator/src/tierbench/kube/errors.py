"""Errors of requests to the API server."""

import json
import os
import ssl
from http.client import responses
from typing import Final

import aiohttp

_NOT_FOUND, _CONFLICT = 404, 409
# The first is the message of a server-side apply, the second that of other writes.
_UNKNOWN_FIELD: Final = ("field not declared in schema", "strict decoding error: unknown field")
_PERMANENT: Final = frozenset({400, 413, 422})

REJECTED: Final = frozenset({403, 422})
"""The HTTP status of a request that is invalid, or that a quota or a policy forbids."""


class ApiError(Exception):
    """The API server rejected a request. `status` is the HTTP status, `reason` is that of the Status object."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class NotFoundError(ApiError):
    """The object does not exist."""


class ConflictError(ApiError):
    """The object exists already, or has changed since it was read."""


class UnknownFieldError(ApiError):
    """The object has a field that the schema of its type does not have. The API server stored nothing of it."""


class LeadershipLostError(Exception):
    """This process does not lead, so it must not write."""


REQUEST_ERRORS: Final = (ApiError, aiohttp.ClientError, TimeoutError, OSError, LeadershipLostError)
"""The errors that a request can raise."""


def is_permanent(error: Exception) -> bool:
    """Returns whether the API server rejects the same request again until a schema or a policy changes."""
    return isinstance(error, UnknownFieldError) or (isinstance(error, ApiError) and error.status in _PERMANENT)


def describe_error(error: Exception) -> str:
    """Returns why a request failed, on one short line."""
    if isinstance(error, ApiError):
        return f"{error.status} {responses.get(error.status, error.reason)}"
    if isinstance(error, aiohttp.InvalidURL):
        return "this is no URL"
    cause = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError) and cause.errno and cause.errno > 0:
        return os.strerror(cause.errno)
    return str(cause) or type(cause).__name__


def error_of(status: int, data: bytes) -> ApiError:
    """Returns the error for an answer with a status of 400 or more."""
    try:
        body = json.loads(data)
        reason, message = str(body.get("reason", "")), str(body.get("message", ""))
    except ValueError:
        reason, message = "", data.decode(errors="replace")[:512]
    if any(words in message for words in _UNKNOWN_FIELD):
        return UnknownFieldError(status, reason, message)
    kinds: dict[int, type[ApiError]] = {_NOT_FOUND: NotFoundError, _CONFLICT: ConflictError}
    return kinds.get(status, ApiError)(status, reason, message)
