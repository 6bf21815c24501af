"""The plan of a client matches its schema and fits into an argument."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import TypeAdapter, ValidationError

from tests.plans import plan_in
from tierbench.api.benchmark import Delivery, Tls
from tierbench.api.contract import CONTRACT_VERSION, MAXIMUM_TRIALS
from tierbench.api.trial_plan import (
    MAXIMUM_TARGETS,
    AgentAccess,
    BrokerPlan,
    BrokerTarget,
    PacingType,
    PlannedLoad,
    PlannedPacing,
    PlannedTrial,
    TrialPlan,
)
from tierbench.workloads.manifests import client_arguments

ARGUMENT_BYTES = 128 << 10  # MAX_ARG_STRLEN of Linux
ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "images/client/internal/plan/plan.schema.json"
LABEL = "x" * 63
CASE = 1000


def target(case: int) -> BrokerTarget:
    """A target with names as long as Kubernetes allows."""
    files = f"/credentials/{case}"
    return BrokerTarget(
        case=case,
        deadline_seconds=10**6,
        agent=AgentAccess(
            url="https://[2001:db8:1111:2222:3333:4444:5555:6666]:8090",
            token_file=f"{files}/agent-token",
            pin_file=f"{files}/agent-pin",
        ),
        url=f"kafkas://{LABEL}.{LABEL}.svc:9093",
        topic=f"tierbench/{LABEL}/{case}",
        username_file=f"{files}/username",
        password_file=f"{files}/password",
        ca_file=f"{files}/ca.crt",
    )


def plan(targets: int = 1, trials: int = 1, **fields: Any) -> BrokerPlan:
    return BrokerPlan(
        contract=CONTRACT_VERSION,
        kind="Broker",
        schedule=tuple(PlannedTrial(case=CASE, trial=1000) for _ in range(trials)),
        targets=tuple(target(CASE + number) for number in range(targets)),
        tls=Tls.TLS13,
        delivery=Delivery.EXACTLY_ONCE,
        pacing=PlannedPacing(type=PacingType.CLOSED_LOOP, in_flight=1),
        load=PlannedLoad(messages=1),
        **fields,
    )


def test_the_largest_plan_fits_into_an_argument() -> None:
    networks = tuple(f"2001:db8:1111:2222:3333:4444:5555:{number:x}/128" for number in range(256))
    largest = client_arguments(plan(MAXIMUM_TARGETS, MAXIMUM_TRIALS, refused_networks=networks))
    assert ARGUMENT_BYTES // 2 < max(len(word) for word in largest) < ARGUMENT_BYTES


def test_plan_matches_its_schema() -> None:
    schema = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    schema.check_schema(schema.schema)
    written = plan_in(client_arguments(plan()))
    schema.validate(written)
    assert TypeAdapter(TrialPlan).validate_python(written) == plan()
    with pytest.raises(jsonschema.ValidationError):
        schema.validate({**written, "surprise": 1})


def test_kubernetes_replaces_nothing_in_a_plan() -> None:
    words = client_arguments(plan(content_folder="/messages/$(POD_IP)/$$"))
    assert not any("$" in word for word in words)
    assert plan_in(words)["contentFolder"] == "/messages/$(POD_IP)/$$"


def test_the_operator_writes_no_plan_that_is_out_of_bounds() -> None:
    with pytest.raises(ValidationError):
        plan(MAXIMUM_TARGETS + 1)
    with pytest.raises(ValidationError):
        plan(trials=MAXIMUM_TRIALS + 1)
