"""The API server rejects values out of bounds, and the message names the bound."""

from typing import Any

import pytest

from tests.api.objects import changed, create, schema_path, smallest
from tests.api.server import ApiServer, RefusedError
from tierbench.api.model import Resource
from tierbench.api.node_class import NodeClass
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark as Files

pytestmark = pytest.mark.apiserver

CLASSES, CLIENTS = "spec.servers.nodeClassNames", "spec.clients.nodeClassNames"
NINE = [f"class-{number}" for number in range(9)]
CLAIM = "spec.storage.volumeClaimTemplate.storageClassName"

BOUNDS: list[tuple[type[Resource], str, Any, str]] = [
    (Files, CLASSES, [], "should have at least 1 items"),
    (Files, CLASSES, NINE, "must have at most 8 items"),
    (Files, CLASSES, ["cloud", "cloud"], "Duplicate value"),
    (Files, CLASSES, ["c" * 64], "may not be more than 63"),
    (Files, CLIENTS, [], "should have at least 1 items"),
    (Files, CLIENTS, NINE, "must have at most 8 items"),
    (Files, CLIENTS, ["user", "user"], "Duplicate value"),
    (Files, "spec.servers.nodesPerClass", 0, "should be greater than or equal to 1"),
    (Files, "spec.servers.nodesPerClass", 17, "should be less than or equal to 16"),
    (Files, "spec.colocation", "Sometimes", 'supported values: "Forbidden", "Allowed", "Required"'),
    (Files, "spec.repetitions", 0, "should be greater than or equal to 1"),
    (Files, "spec.repetitions", 31, "should be less than or equal to 30"),
    (Files, "spec.warmupTrials", -1, "should be greater than or equal to 0"),
    (Files, "spec.warmupTrials", 6, "should be less than or equal to 5"),
    (Files, "spec.order.type", "Alphabetical", 'supported values: "Sequential", "Random"'),
    (Files, "spec.order.seed", -1, "should be greater than or equal to 0"),
    (Files, "spec.order.seed", 2**31, "should be less than or equal to 2"),
    (Files, "spec.timeouts.schedulingSeconds", 4, "should be greater than or equal to 5"),
    (Files, "spec.timeouts.schedulingSeconds", 3601, "should be less than or equal to 3600"),
    (Files, "spec.timeouts.serverReadySeconds", 9, "should be greater than or equal to 10"),
    (Files, "spec.timeouts.serverReadySeconds", 86401, "should be less than or equal to 86400"),
    (Files, "spec.timeouts.trialSeconds", 0, "should be greater than or equal to 1"),
    (Files, "spec.timeouts.trialSeconds", 86401, "should be less than or equal to 86400"),
    (Files, "spec.runPolicy.historyLimit", 0, "should be greater than or equal to 1"),
    (Files, "spec.runPolicy.historyLimit", 51, "should be less than or equal to 50"),
    (Files, "spec.runPolicy.rerun", "r" * 64, "may not be more than 63"),
    (Files, "spec.runPolicy.refine.withinPercent", 0, "should be greater than or equal to 1"),
    (Files, "spec.runPolicy.refine.withinPercent", 1001, "should be less than or equal to 1000"),
    (Files, "spec.runPolicy.refine.maxCases", 1, "should be greater than or equal to 2"),
    (Files, "spec.runPolicy.refine.maxCases", 129, "should be less than or equal to 128"),
    (Files, "spec.runPolicy.ttlSecondsAfterFinished", 599, "should be greater than or equal to 600"),
    (Files, "spec.runPolicy.ttlSecondsAfterFinished", 31536001, "should be less than or equal to 31536000"),
    (Files, "spec.fileSizes", [], "should have at least 1 items"),
    (Files, "spec.fileSizes", [f"{number}Mi" for number in range(1, 34)], "must have at most 30 items"),
    (Files, "spec.fileSizes", ["1" * 19], "may not be more than 18"),
    (Files, "spec.fileSizes", [1.5], "must be of type integer"),
    (Files, "spec.fileSizes", [True], "must be of type integer"),
    (Files, "spec.concurrency", [], "should have at least 1 items"),
    (Files, "spec.concurrency", list(range(1, 10)), "must have at most 8 items"),
    (Files, "spec.concurrency", [0], "should be greater than or equal to 1"),
    (Files, "spec.concurrency", [65], "should be less than or equal to 64"),
    (Files, "spec.concurrency", [2, 2], "Duplicate value"),
    (Files, "spec.cacheState", ["Hot"], 'supported values: "Unchanged", "Warm", "Cold"'),
    (Files, "spec.cacheState", ["Cold", "Cold"], "Duplicate value"),
    (Files, "spec.tls", ["TLSv1.1"], 'supported values: "None", "TLSv1.2", "TLSv1.3"'),
    (Files, "spec.tls", ["None", "None"], "Duplicate value"),
    (Files, "spec.access", "Ingress", 'supported values: "PodIP", "ClusterIP", "NodePort", "HostNetwork"'),
    (Files, "spec.retry.readTimeoutMilliseconds", 9, "should be greater than or equal to 10"),
    (Files, "spec.retry.readTimeoutMilliseconds", 900001, "should be less than or equal to 900000"),
    (Files, "spec.retry.attempts", 0, "should be greater than or equal to 1"),
    (Files, "spec.retry.attempts", 1001, "should be less than or equal to 1000"),
    (Files, "spec.retry.waitMilliseconds", -1, "should be greater than or equal to 0"),
    (Files, "spec.retry.waitMilliseconds", 600001, "should be less than or equal to 600000"),
    (Files, "spec.retry.maxWaitMilliseconds", 0, "should be greater than or equal to 1"),
    (Files, "spec.retry.maxWaitMilliseconds", 600001, "should be less than or equal to 600000"),
    (Files, "spec.storage.hostPath.path", "/var/lib/tierbench/" + "p" * 237, "may not be more than 255"),
    (Files, CLAIM, "", "should be at least 1 chars long"),
    (Files, CLAIM, "c" * 254, "may not be more than 253"),
    (Files, "spec.verifyDigest", "yes", "must be of type boolean"),
    (NodeClass, "spec.accessNetwork", "l" * 64, "may not be more than 63"),
    (NodeClass, "spec.storage", "s" * 64, "may not be more than 63"),
    (NodeClass, "spec.nodeSelector.matchLabels", {f"l{number}": "" for number in range(17)}, "must have at most 16"),
    (NodeClass, "spec.tolerations", [{"operator": "Exists"}] * 17, "must have at most 16 items"),
    (BenchmarkResult, "spec.run", 0, "should be greater than or equal to 1"),
    (BenchmarkResult, "spec.levels", {f"l{number}": "" for number in range(25)}, "must have at most 24"),
]

REQUIRED: list[tuple[type[Resource], str]] = [
    (Files, "spec"),
    (Files, "spec.servers"),
    (Files, "spec.servers.nodeClassNames"),
    (Files, "spec.clients"),
    (Files, "spec.clients.nodeClassNames"),
    (Files, "spec.fileSizes"),
    (BenchmarkResult, "spec.benchmark"),
]


@pytest.mark.parametrize(("model", "path", "value", "message"), BOUNDS)
def test_value_out_of_bounds_is_refused(
    server: ApiServer, name: str, model: type[Resource], path: str, value: Any, message: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        create(server, model, changed(smallest(model, name), path, value))
    assert refused.value.code == 422
    messages = [text for field, text in refused.value.causes if schema_path(field).removesuffix("[]") == path]
    reworded = [
        text.replace("longer than", "more than") for text in messages
    ]  # Kubernetes before 1.32 words it like this
    assert [text for text in reworded if message in text], refused.value.causes


@pytest.mark.parametrize(("model", "path"), REQUIRED)
def test_missing_required_field_is_rejected(server: ApiServer, name: str, model: type[Resource], path: str) -> None:
    with pytest.raises(RefusedError) as refused:
        create(server, model, changed(smallest(model, name), path, None))
    assert (path, "Required value") in refused.value.causes


@pytest.mark.parametrize("path", ["spec.filesizes", "spec.retry.timeout", "spec.storage.hostPath.type"])
def test_unknown_field_is_refused(server: ApiServer, name: str, path: str) -> None:
    body = changed(smallest(Files, name), "spec.storage", {"hostPath": {"path": "/var/lib/tierbench"}})
    with pytest.raises(RefusedError, match=f'unknown field "{path}"'):
        create(server, Files, changed(body, path, "1"))
