"""Status that Strimzi reports, and when it counts."""

from typing import Any

import pytest

from tierbench.domain import reasons
from tierbench.domain.decision import ProviderObject
from tierbench.domain.views import pod_view
from tierbench.kinds.broker.strimzi import ROLE
from tierbench.kinds.broker.strimzi_lifecycle import strimzi_object
from tierbench.kube.meta import parse_time
from tierbench.workloads.workload import LABEL_ROLE, LABEL_RUN, LABEL_SLOT

SINCE = "2026-01-01T00:01:00Z"
LABELS = {LABEL_RUN: "1", LABEL_SLOT: "0", LABEL_ROLE: ROLE}


def reported(kind: str, *conditions: dict[str, str], observed: int = 1, **status: Any) -> ProviderObject:
    metadata = {"name": "x", "labels": LABELS, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    body = {"observedGeneration": observed, "conditions": list(conditions), **status}
    return strimzi_object(kind, {"metadata": metadata, "status": body})


def condition(kind: str, status: str = "True", reason: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": "So.", "lastTransitionTime": SINCE}


def test_readiness_counts_only_for_the_current_generation() -> None:
    assert reported("Kafka", condition("Ready")).ready
    assert not reported("Kafka", condition("Ready"), observed=0).ready
    assert reported("Kafka", condition("Warning", reason="KafkaStorage"), condition("Ready")).ready


@pytest.mark.parametrize(
    ("kind", "answer", "transient"),
    [
        ("Kafka", condition("NotReady", reason="InvalidConfigurationException"), False),
        ("Kafka", condition("NotReady", reason="InvalidResourceException"), False),
        ("Kafka", condition("NotReady", reason="UnsupportedKafkaVersionException"), False),
        ("Kafka", condition("NotReady", reason="FatalProblem"), True),
        ("KafkaTopic", condition("Ready", "False", "KafkaError"), True),
    ],
)
def test_rejection_has_reason_and_message_of_strimzi(kind: str, answer: dict[str, str], transient: bool) -> None:
    found = reported(kind, answer)
    assert found.rejection is not None
    assert (found.rejection.reason, found.rejection.transient) == (reasons.STRIMZI_REFUSED, transient)
    assert f"{kind} x: {answer['reason']}: So." in found.rejection.message
    assert found.rejected_since == parse_time(SINCE)
    assert not found.ready


@pytest.mark.parametrize(("reason", "observed"), [("Creating", 0), ("TimeoutException", 1)])
def test_not_ready_is_no_rejection_while_strimzi_continues(reason: str, observed: int) -> None:
    starting = reported("Kafka", condition("NotReady", reason=reason), observed=observed)
    assert (starting.answered, starting.ready, starting.rejection) == (True, False, None)


def test_first_of_several_addresses_is_used() -> None:
    listeners = [{"name": "plain", "bootstrapServers": "a:9092,b:9092"}, {"name": "tls"}]
    assert reported("Kafka", listeners=listeners).listeners == {"plain": "a:9092"}


def test_broker_that_ran_out_of_memory_is_reported() -> None:
    """Strimzi still reports it as ready, and it may run again."""
    killed = {"name": "kafka", "state": {"running": {}}, "lastState": {"terminated": {"reason": "OOMKilled"}}}
    metadata = {"name": "x", "uid": "1", "labels": LABELS, "creationTimestamp": SINCE}
    pod = pod_view({"metadata": metadata, "spec": {}, "status": {"containerStatuses": [killed]}})
    assert pod.problem is not None
    assert pod.problem.reason == reasons.OUT_OF_MEMORY
