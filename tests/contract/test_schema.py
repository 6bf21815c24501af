"""The shared schema accepts valid documents and refuses every deviation."""

import copy
import json
from typing import Any

import jsonschema
import pytest

from tests.contract.schema import CONTRACT
from tierbench.api.contract import Seal, TrialLine, TrialStartedLine
from tierbench.results.client_output import parse_output

SERVER = {
    "residentBeforePartsPerMillion": 1_000_000, "residentAfterPartsPerMillion": 999_000, "deviceReadBytes": 2**40,
    "ioWaitPartsPerMillion": 0, "ioPressurePartsPerMillion": 1, "cpuPartsPerMillion": 500_000, "tcpRetransmits": 3,
    "tcpSegmentsSent": 9, "roundTripNanoseconds": 1000, "roundTripMaxNanoseconds": 2000,
}  # fmt: skip
TRIAL: dict[str, Any] = {
    "contract": 1, "record": "Trial", "trial": 3, "warmup": False, "outcome": "Failed",
    "failure": {"reason": "AttemptsExhausted", "message": "20 attempts"},
    "startTime": "2026-11-20T22:00:00.123456789Z", "durationNanoseconds": 10**15,
    "client": {"cpuNanoseconds": 1}, "server": SERVER,
    "transfer": {
        "bytes": 1, "downloads": 1, "retries": 3, "retryCauses": {"Stalled": 2, "Truncated": 1}, "errors": 1,
        "lookupNanoseconds": 0, "connectNanoseconds": 1, "tlsNanoseconds": 0, "firstByteNanoseconds": 1,
        "longestStallNanoseconds": 1, "digestVerified": True,
    },
    "distributions": {
        "downloadDuration": {"schema": 6, "count": 3, "sumNanoseconds": 9, "indexes": [64, 128], "counts": [1, 2]}
    },
}  # fmt: skip
STARTED = {"contract": 1, "record": "TrialStarted", "trial": 1, "warmup": True, "time": "2026-11-20T22:00:00Z"}
SEAL: dict[str, Any] = {
    "contract": 1, "trials": 11, "sha256": "0" * 64, "failure": {"reason": "Interrupted", "message": "terminated"},
    "engine": {"name": "tierbench-client", "version": "1", "architecture": "arm64"},
}  # fmt: skip


def changed(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Returns a copy with another value at a dotted path. None removes the field."""
    body = copy.deepcopy(body)
    *parents, name = path.split(".")
    place = body
    for parent in parents:
        place = place[parent]
    if value is None:
        del place[name]
    else:
        place[name] = value
    return body


def test_contract_is_a_valid_schema() -> None:
    CONTRACT.check_schema(CONTRACT.schema)


@pytest.mark.parametrize("body", [TRIAL, STARTED, SEAL], ids=["Trial", "TrialStarted", "Seal"])
def test_schema_accepts_valid_documents(body: dict[str, Any]) -> None:
    CONTRACT.validate(body)


def test_schema_accepts_what_the_models_write() -> None:
    for model, body in ((TrialLine, TRIAL), (TrialStartedLine, STARTED), (Seal, SEAL)):
        written = model.model_validate(body).to_json()
        CONTRACT.validate(written)
        assert model.model_validate(written) == model.model_validate(body)


DEVIATIONS = [
    (TRIAL, "contract", 2),
    (TRIAL, "contract", None),
    (TRIAL, "trial", 0),
    (TRIAL, "case", -1),
    (TRIAL, "trial", "3"),
    (TRIAL, "outcome", "Perhaps"),
    (TRIAL, "durationNanoseconds", -1),
    (TRIAL, "durationNanoseconds", 1.5),
    (TRIAL, "startTime", None),
    (TRIAL, "failure.reason", "two words"),
    (TRIAL, "failure.message", "x" * 1025),
    (TRIAL, "server.cpuPartsPerMillion", 1_000_001),
    (TRIAL, "transfer.retries", -1),
    (TRIAL, "distributions.downloadDuration.schema", 5),
    (SEAL, "sha256", "0" * 63),
    (SEAL, "trials", None),
    (SEAL, "failure.case", "7"),
    (SEAL, "engine", None),
    (STARTED, "trial", None),
]
UNKNOWN = [
    (TRIAL, "surprise"),
    (TRIAL, "server.surprise"),
    (TRIAL, "transfer.surprise"),
    (TRIAL, "transfer.retryCauses.Tired"),
    (SEAL, "surprise"),
    (STARTED, "surprise"),
]


@pytest.mark.parametrize(("body", "path", "value"), DEVIATIONS)
def test_schema_refuses_deviations(body: dict[str, Any], path: str, value: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        CONTRACT.validate(changed(body, path, value))


@pytest.mark.parametrize(("body", "path"), UNKNOWN)
def test_schema_refuses_unknown_fields(body: dict[str, Any], path: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        CONTRACT.validate(changed(body, path, 1))


@pytest.mark.parametrize(
    ("path", "value"),
    [(path, value) for body, path, value in DEVIATIONS if body is TRIAL and value not in {"3"}]
    + [
        ("distributions.downloadDuration.counts", [1]),
        ("distributions.downloadDuration.counts", [1, 1]),
        ("distributions.downloadDuration.indexes", [128, 64]),
        ("distributions.downloadDuration.indexes", [64, 64]),
    ],
)
def test_operator_reports_an_invalid_trial_as_a_problem(path: str, value: Any) -> None:
    output = parse_output(json.dumps(changed(TRIAL, path, value)) + "\n")
    assert output.trials == ()
    assert len(output.problems) == 1
