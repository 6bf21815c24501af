"""Rules on groups of publishers and subscribers: one object is rejected, a similar one is accepted."""

from typing import Any

import pytest

from tests.api.invalid import BROKERS, external, kafka
from tests.api.objects import changed, create, smallest
from tests.api.server import ApiServer, RefusedError

pytestmark = pytest.mark.apiserver

GROUPS = "spec.groups"
FAN_IN = [{"publishers": 8}]
SHARED = [{"publishers": 4, "subscribers": 2, "subscription": "Shared"}]


@pytest.mark.parametrize(
    ("groups", "other", "refusal"),
    [
        (FAN_IN, ("spec.clients.engine", "Paho"), r"groups need clients\.engine: Native: write Native, or remove"),
        (FAN_IN, ("spec.clients.subscribers", {"type": "Separate", "nodeClassName": "user"}), "remove clients.subscr"),
        (FAN_IN, ("spec.payload", {"sizes": ["1Ki", 7]}), "messages of several publishers need 8 bytes"),
        (FAN_IN, ("spec.payload", {"sizes": ["2"]}), "messages of several publishers need 8 bytes"),
        (FAN_IN, ("spec.pairs", [1, 114]), "pairs and groups make more than 1024 connections in a case: lower pairs"),
        (SHARED, ("spec.brokers", kafka()), "groups with subscription: Shared are only for MQTT: write subscription"),
        (SHARED, ("spec.brokers", external(protocol="Kafka")), "groups with subscription: Shared are only for MQTT"),
    ],
)
def test_groups_require_compatible_settings(
    server: ApiServer, name: str, groups: list[dict[str, Any]], other: tuple[str, Any], refusal: str
) -> None:
    body = changed(smallest(BROKERS, name), *other)
    create(server, BROKERS, changed(body, "metadata.name", f"{name}-pairs"))
    with pytest.raises(RefusedError, match=refusal):
        create(server, BROKERS, changed(body, GROUPS, groups))
    create(server, BROKERS, changed(smallest(BROKERS, name), GROUPS, groups))


def test_groups_within_the_limits_are_accepted(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), GROUPS, [{}, *FAN_IN, {"publishers": 1, "subscribers": 8}])
    body = changed(changed(body, "spec.pairs", [113]), "spec.payload", {"sizes": [8]})
    create(server, BROKERS, changed(body, "spec.brokers", kafka()))


@pytest.mark.parametrize(
    ("groups", "refusal"),
    [
        ([{"publishers": 65}], r"spec\.groups\[0\]\.publishers.*less than or equal to 64"),
        ([{"subscribers": 0}], r"spec\.groups\[0\]\.subscribers.*greater than or equal to 1"),
        ([{"subscription": "All"}], r"supported values: \"Each\", \"Shared\""),
        ([{"publishers": 1}, {}], r"Duplicate value"),
    ],
)
def test_wrong_groups_are_rejected(server: ApiServer, name: str, groups: list[dict[str, Any]], refusal: str) -> None:
    with pytest.raises(RefusedError, match=refusal):
        create(server, BROKERS, changed(smallest(BROKERS, name), GROUPS, groups))


def test_each_group_multiplies_the_cases(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), "spec.payload.sizes", list(range(100, 116)))
    body = changed(body, GROUPS, [{"publishers": number} for number in range(1, 9)])
    create(server, BROKERS, changed(body, "spec.pairs", [1, 2, 3, 4, 5, 6, 7]))
    with pytest.raises(RefusedError, match="the matrix has 1024 cases, at most 1000 are allowed"):
        create(server, BROKERS, changed(body, "spec.pairs", [1, 2, 3, 4, 5, 6, 7, 8]))
