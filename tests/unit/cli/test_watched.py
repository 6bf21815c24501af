"""What is known of the namespaces that operators watch."""

from typing import Any

import pytest

from tierbench.cli.watched import ANNOTATION, no_status, watched


def role(namespaces: str) -> dict[str, Any]:
    return {"name": f"tierbench:{namespaces}", "annotations": {ANNOTATION: namespaces}}


OTHER_ROLE = {"name": "view"}


@pytest.mark.parametrize(
    ("roles", "misses"),
    [
        ([], False),
        ([OTHER_ROLE], False),
        ([OTHER_ROLE, role("team-a,team-c")], True),
        ([role("team-a"), role("team-b")], False),
        ([role("")], False),
    ],
)
def test_a_namespace_is_missed_where_releases_name_others(roles: list[dict[str, Any]], misses: bool) -> None:
    assert watched(roles).misses("team-b") is misses


@pytest.mark.parametrize(
    ("roles", "reason"),
    [
        ([], "Either the operator does not watch namespace team-b, or it does not run"),
        ([role("team-a,team-c")], "The operator does not watch namespace team-b, only team-a, team-c"),
        ([role("team-b")], "An operator is installed for namespace team-b, but does not answer"),
        ([role("")], "An operator is installed for namespace team-b, but does not answer"),
    ],
)
def test_no_status_names_what_is_known(roles: list[dict[str, Any]], reason: str) -> None:
    text = no_status(watched(roles), "files", "team-b", 10)
    assert text.startswith(f"files has no status after 10 s. {reason}")
