"""Asks the API server who a token's bearer is, and what they may do."""

from typing import Any, Final

from tierbench.kube.client import UNANSWERED, Kube, ResourceType, why

_TOKENS: Final = ("authentication.k8s.io/v1", "TokenReview", "tokenreviews")
_ACCESS: Final = ("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews")
_SCRAPE: Final = {"path": "/metrics", "verb": "get"}
_SUBJECT: Final = {"user": "username", "uid": "uid", "groups": "groups", "extra": "extra"}  # of one, of the other


async def may_scrape(kube: Kube, token: str) -> bool | None:
    """Whether the token's bearer may get /metrics; None if the cluster knows no such token. Raises ConnectionError."""
    try:
        known = await _review(kube, _TOKENS, {"token": token})
        if not known.get("authenticated"):
            return None
        user = known["user"]
        who = {key: user[field] for key, field in _SUBJECT.items() if field in user}
        answer = await _review(kube, _ACCESS, {**who, "nonResourceAttributes": _SCRAPE})
    except UNANSWERED as error:
        raise ConnectionError(why(error)) from error
    return bool(answer.get("allowed"))


async def _review(kube: Kube, review: tuple[str, str, str], spec: dict[str, Any]) -> dict[str, Any]:
    api_version, kind, plural = review
    body = {"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec}
    answer = await kube.create(ResourceType(f"apis/{api_version}", plural), None, body)
    status: dict[str, Any] = answer.get("status", {})
    return status
