"""Groups of publishers and subscribers: their levels, the plans of their clients, and their deliveries."""

from typing import Any

import pytest

from tests.plans import plan_of
from tests.unit.domain.objects import broker_benchmark
from tests.unit.kinds.broker.test_kafka import KAFKA
from tests.unit.kinds.broker.test_workload import LIGHT, cases, jobs, workload
from tests.unit.kinds.broker.trials import line, measured, recorded
from tierbench.api.canonical import in_order, spec_hash
from tierbench.kinds.broker.kafka import kafka_settings
from tierbench.workloads.workload import NodeSize

FAN_IN: dict[str, Any] = {"publishers": 8}
FAN_OUT: dict[str, Any] = {"subscribers": 8}
SHARED: dict[str, Any] = {"publishers": 4, "subscribers": 2, "subscription": "Shared"}
CLOUD = {"nodeClassNames": ["cloud"]}
GROUPS = [FAN_OUT, SHARED, FAN_IN]


def test_groups_are_a_factor_only_if_the_spec_has_them() -> None:
    given = workload(groups=GROUPS, pairs=[1, 2], servers=CLOUD, payload={"sizes": [100]})
    assert [(case.levels["pairs"], case.levels["groups"]) for case in cases(given)] == [
        (pairs, group) for pairs in ("1", "2") for group in ("1:8", "4:2 Shared", "8:1")
    ]
    assert "groups" not in cases(workload())[0].levels


def test_client_gets_the_group_of_its_case() -> None:
    two = {"nodeClassNames": ["user"], "pods": 2}
    given = workload(groups=GROUPS, pairs=[3], servers=CLOUD, payload={"sizes": [100]}, clients=two)
    planned = [[plan_of(job) for job in jobs(given, case)] for case in cases(given)]
    assert [plan["group"] for plan, _ in planned] == GROUPS
    assert "group" not in plan_of(jobs(workload())[0])
    assert {(one["pairs"], other["pairs"]) for one, other in planned} == {(2, 1)}


def test_order_of_groups_does_not_matter() -> None:
    specs = [in_order(broker_benchmark(groups=groups).spec) for groups in (GROUPS, GROUPS[::-1])]
    assert spec_hash(specs[0]) == spec_hash(specs[1]) != spec_hash(in_order(broker_benchmark(groups=GROUPS[1:]).spec))
    assert list(map(str, specs[0].groups)) == ["1:8", "4:2 Shared", "8:1"]


@pytest.mark.parametrize(("group", "deliveries"), [(FAN_IN, 8), (FAN_OUT, 8), (SHARED, 4), ({}, 1)])
def test_load_counts_every_delivery(group: dict[str, Any], deliveries: int) -> None:
    given = workload(groups=[group], pairs=[3], load={"messagesPerPublisher": 100}, payload={"sizes": ["1Ki"]})
    load = given.load(cases(given)[0])
    assert load.bytes_moved == 3 * 100 * 1024 * deliveries


@pytest.mark.parametrize(("group", "tuning"), [({}, "Light"), (SHARED, "Light"), (FAN_IN, "Heavy"), (FAN_OUT, "Heavy")])
def test_tuning_counts_deliveries(group: dict[str, Any], tuning: str) -> None:
    given = workload(**LIGHT, groups=[group])
    assert plan_of(jobs(given)[0])["tuning"] == tuning


def test_log_of_kafka_has_room_for_the_windows_of_all_publishers() -> None:
    spec = broker_benchmark(brokers=[KAFKA], payload={"sizes": ["1Mi"]}, maxInFlight=100, groups=[FAN_IN]).spec
    broker = spec.brokers[0].kafka
    assert broker is not None
    assert kafka_settings(broker, spec, NodeSize())["log.retention.bytes"] == str(2 * 8 * 100 * 2**20)


def test_lost_messages_are_reported_out_of_all_deliveries() -> None:
    fanned = line(1, sent=1000, received=7990, lost=10)
    status = measured(fanned, groups="1:8")
    (note,) = status.invalid
    assert note.message == "10 of 8000 messages were lost; the times are those of messages that arrived."
    assert status.statistics["throughputMessagesPerSecond"].mean == 7990
    assert recorded(fanned, groups="1:8").status.counts.messages == status.counts.messages
