"""The namespaces that operators watch, and messages about them."""

from typing import Any

import pytest

from tierbench.cli.cluster import ANNOTATION, explain_missing_status, watched_namespaces


def role(namespaces: str) -> dict[str, Any]:
    return {"name": f"tierbench:{namespaces}", "annotations": {ANNOTATION: namespaces}}


OTHER_ROLE = {"name": "view"}


@pytest.mark.parametrize(
    ("roles", "excluded"),
    [
        ([], False),
        ([OTHER_ROLE], False),
        ([OTHER_ROLE, role("team-a,team-c")], True),
        ([role("team-a"), role("team-b")], False),
        ([role("")], False),
    ],
)
def test_namespace_is_excluded_if_releases_watch_only_others(roles: list[dict[str, Any]], excluded: bool) -> None:
    assert watched_namespaces(roles).excludes("team-b") is excluded


@pytest.mark.parametrize(
    ("roles", "reason"),
    [
        ([], "Either the operator does not watch namespace team-b, or it does not run"),
        ([role("team-a,team-c")], "The operator does not watch namespace team-b, only team-a, team-c"),
        ([role("team-b")], "An operator for namespace team-b is installed, but does not answer"),
        ([role("")], "An operator for namespace team-b is installed, but does not answer"),
    ],
)
def test_missing_status_is_explained(roles: list[dict[str, Any]], reason: str) -> None:
    text = explain_missing_status(watched_namespaces(roles), "files", "team-b", 10)
    assert text.startswith(f"files has no status after 10 s. {reason}")
