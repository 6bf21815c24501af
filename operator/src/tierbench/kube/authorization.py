"""Asks the API server who sent a token, and what that user may do."""

from typing import Any, Final

from tierbench.kube.client import REQUEST_ERRORS, Kube, describe_error
from tierbench.kube.meta import ResourceType

_TOKEN_REVIEW: Final = ("authentication.k8s.io/v1", "TokenReview", "tokenreviews")
_ACCESS_REVIEW: Final = ("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews")
# The fields of a SubjectAccessReview's spec, and those of a TokenReview's user that they are set from.
_SUBJECT: Final = {"user": "username", "uid": "uid", "groups": "groups", "extra": "extra"}


async def may_get(kube: Kube, path: str, token: str) -> bool | None:
    """Returns whether the token's user may get a non-resource path, or None if the cluster does not know the token.

    Raises ConnectionError if the API server does not answer.
    """
    try:
        known = await _review(kube, _TOKEN_REVIEW, {"token": token})
        if not known.get("authenticated"):
            return None
        user = known["user"]
        subject = {field: user[source] for field, source in _SUBJECT.items() if source in user}
        attributes = {"path": path, "verb": "get"}
        answer = await _review(kube, _ACCESS_REVIEW, {**subject, "nonResourceAttributes": attributes})
    except REQUEST_ERRORS as error:
        raise ConnectionError(describe_error(error)) from error
    return bool(answer.get("allowed"))


async def _review(kube: Kube, review: tuple[str, str, str], spec: dict[str, Any]) -> dict[str, Any]:
    api_version, kind, plural = review
    body = {"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec}
    answer = await kube.create(ResourceType(f"apis/{api_version}", plural), None, body)
    status: dict[str, Any] = answer.get("status", {})
    return status
