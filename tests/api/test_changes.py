"""The API server accepts changes to the spec of a benchmark, and rejects those to a sealed result or record."""

from typing import Any

import pytest

from tests.api.objects import changed, create, item, smallest
from tests.api.server import ApiServer, Json, RefusedError
from tierbench.api.model import Resource
from tierbench.api.record import BenchmarkRecord
from tierbench.api.result import BenchmarkResult
from tierbench.api.schema import object_schema
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kinds.registry import BENCHMARKS

pytestmark = pytest.mark.apiserver

OTHER_VALUES: dict[str, Any] = {
    "servers": {"nodeClassNames": ["cloud", "jetson-nano"]},
    "clients": {"nodeClassNames": ["other"]},
    "colocation": "Allowed",
    "repetitions": 11,
    "warmupTrials": 1,
    "order": {"type": "Random", "seed": 4},
    "timeouts": {"schedulingSeconds": 61},
    "fileSizes": ["1Mi", "2Mi"],
    "concurrency": [2],
    "cacheState": ["Cold"],
    "tls": ["TLSv1.3"],
    "access": "NodePort",
    "retry": {"attempts": 3},
    "storage": {"hostPath": {"path": "/var/lib/tierbench"}},
    "verifyDigest": True,
    "brokers": [{"name": "other", "mosquitto": {}}],
    "payload": {"sizes": ["2Ki"]},
    "delivery": ["ExactlyOnce"],
    "encryption": ["AES128GCM"],
    "compression": ["Gzip"],
    "pairs": [2],
    "groups": [{"publishers": 8}],
    "tlsClients": {"certificates": ["Required"]},
    "mqttClients": {"versions": ["5"]},
    "kafkaClients": {"partitions": [2]},
    "pacing": {"type": "AsFastAsPossible"},
    "maxInFlight": 16,
    "load": {"durationSeconds": 5},
    "protocols": ["UDP"],
    "directions": ["Upload"],
    "streams": [2],
    "links": [{"name": "lte"}],
    "durationSeconds": 5,
    "ping": {"count": 3},
    "trim": {"lowest": 1},
    "traceIntervalMilliseconds": 0,
}
OPTIONAL: dict[str, tuple[Json, Json]] = {
    "udp": ({"kilobitsPerSecond": 1000}, {"kilobitsPerSecond": 2000}),
    "tcp": ({"congestionControl": ["cubic"]}, {"congestionControl": ["reno"]}),
    "preflight": ({"durationSeconds": 1}, {"durationSeconds": 2}),
}
FIELDS = [
    (model, field)
    for model in BENCHMARKS.values()
    for field in object_schema(model)["properties"]["spec"]["properties"]
]
SEALED = "a result that is Complete or Failed cannot be changed: delete it, or start a new run"


def update(server: ApiServer, model: type[Resource], body: Json, subresource: str = "") -> Json:
    path = f"{item(model, body['metadata']['name'])}{subresource}?fieldValidation=Strict"
    return server.request("PUT", path, body)


@pytest.mark.parametrize(("model", "field"), [row for row in FIELDS if row[1] not in {"runPolicy", *OPTIONAL}])
def test_field_of_a_benchmark_can_change(server: ApiServer, name: str, model: type[Resource], field: str) -> None:
    created = create(server, model, smallest(model, name))
    body = changed(created, f"spec.{field}", OTHER_VALUES[field])
    if field == "protocols":
        body = changed(body, "spec.udp", {"kilobitsPerSecond": 1000})
    if field == "tlsClients":
        body = changed(body, "spec.tls", ["TLSv1.3"])
    assert update(server, model, body)["metadata"]["generation"] == 2


@pytest.mark.parametrize("model", BENCHMARKS.values())
def test_run_policy_can_change(server: ApiServer, name: str, model: type[Resource]) -> None:
    created = create(server, model, smallest(model, name))
    policy = {"suspend": True, "rerun": "again", "historyLimit": 2, "ttlSecondsAfterFinished": 600}
    updated = update(server, model, changed(created, "spec.runPolicy", policy))
    assert updated["spec"]["runPolicy"] == policy | {"tolerancePercent": 5, "constraints": {}}
    assert updated["metadata"]["generation"] == 2


@pytest.mark.parametrize(("model", "field"), [row for row in FIELDS if row[1] in OPTIONAL])
def test_optional_field_can_be_added_changed_and_removed(
    server: ApiServer, name: str, model: type[Resource], field: str
) -> None:
    one, other = OPTIONAL[field]
    for number, (before, after) in enumerate([(one, other), (None, other), (one, None)]):
        body = smallest(model, f"{name}-{number}")
        created = create(server, model, body if before is None else changed(body, f"spec.{field}", before))
        assert update(server, model, changed(created, f"spec.{field}", after))["metadata"]["generation"] == 2


@pytest.mark.parametrize("model", BENCHMARKS.values())
def test_manifest_that_is_applied_again_changes_nothing(server: ApiServer, name: str, model: type[Resource]) -> None:
    body = smallest(model, name)
    path = f"{item(model, name)}?fieldManager=author"
    headers = {"Content-Type": "application/apply-patch+yaml"}
    applied = [server.request("PATCH", path, body, headers)["metadata"] for _ in range(3)]
    assert {metadata["generation"] for metadata in applied} == {1}
    assert (
        applied[1]["resourceVersion"] == applied[2]["resourceVersion"]
    )  # the second one stores defaults of the status


@pytest.mark.parametrize("model", BENCHMARKS.values())
def test_new_benchmark_has_observed_generation_0(server: ApiServer, name: str, model: type[Resource]) -> None:
    created = create(server, model, smallest(model, name))
    read = server.request("GET", item(model, name))
    assert [body["status"] for body in (created, read)] == [{"observedGeneration": 0}] * 2


def test_spec_of_a_result_cannot_change(server: ApiServer, name: str) -> None:
    created = create(server, BenchmarkResult, smallest(BenchmarkResult, name))
    with pytest.raises(RefusedError, match="the spec of a result cannot be changed: it says which case was measured"):
        update(server, BenchmarkResult, changed(created, "spec.trials", 11))


@pytest.mark.parametrize("phase", ["Complete", "Failed"])
def test_sealed_result_cannot_change(server: ApiServer, name: str, phase: str) -> None:
    created = create(server, BenchmarkResult, smallest(BenchmarkResult, name))
    running = update(server, BenchmarkResult, created | {"status": {"phase": "Running"}}, "/status")
    sealed = update(server, BenchmarkResult, running | {"status": {"phase": phase, "message": "so"}}, "/status")
    for status in ({"phase": "Running"}, {"phase": phase, "message": "not so"}, {"message": "so"}):
        with pytest.raises(RefusedError, match=SEALED):
            update(server, BenchmarkResult, sealed | {"status": status}, "/status")
    with pytest.raises(RefusedError, match=SEALED):
        update(server, BenchmarkResult, {key: value for key, value in sealed.items() if key != "status"}, "/status")
    relabelled = changed(sealed, "metadata.labels", {"kept": "yes"})
    assert update(server, BenchmarkResult, relabelled)["status"] == sealed["status"]


def test_sealed_record_cannot_change(server: ApiServer, name: str) -> None:
    created = create(server, BenchmarkRecord, smallest(BenchmarkRecord, name))
    trial = {"trial": 1, "outcome": "Completed", "startTime": "2026-01-01T00:00:00Z", "durationNanoseconds": 7}
    growing = update(server, BenchmarkRecord, created | {"status": {"trials": [trial]}}, "/status")
    measured = {"trials": [trial], "ended": {"time": "2026-01-01T00:00:01Z"}}
    sealed = update(server, BenchmarkRecord, growing | {"status": measured}, "/status")
    for status in ({"trials": [trial]}, measured | {"trials": [trial | {"durationNanoseconds": 8}]}, {}):
        with pytest.raises(RefusedError, match="a record whose case has ended cannot be changed"):
            update(server, BenchmarkRecord, sealed | {"status": status}, "/status")
    with pytest.raises(RefusedError, match="the spec of a record cannot be changed"):
        update(server, BenchmarkRecord, changed(sealed, "spec.run", 2))


def test_spec_and_status_are_written_separately(server: ApiServer, name: str) -> None:
    created = create(
        server, FileTransferBenchmark, smallest(FileTransferBenchmark, name) | {"status": {"phase": "Complete"}}
    )
    assert created["status"] == {"observedGeneration": 0}
    both = changed(created, "spec.runPolicy.suspend", True) | {"status": {"phase": "Running"}}
    written = update(server, FileTransferBenchmark, both, "/status")
    assert (written["spec"]["runPolicy"]["suspend"], written["status"]["phase"]) == (False, "Running")
    again = changed(written, "spec.runPolicy.suspend", True) | {"status": {"phase": "Failed"}}
    written = update(server, FileTransferBenchmark, again)
    assert (written["spec"]["runPolicy"]["suspend"], written["status"]["phase"]) == (True, "Running")
