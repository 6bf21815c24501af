"""Every CEL rule refuses what it is for, with its message at its place."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.api.objects import changed, create, schema_path, smallest
from tests.api.server import ApiServer, Json, RefusedError
from tierbench.api.model import IMMUTABLE, Resource
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.result import BenchmarkResult
from tierbench.api.schema import object_schema, resource_types, rules_with_paths
from tierbench.kinds.broker.spec import BrokerBenchmark
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kinds.network.spec import NetworkBenchmark

pytestmark = pytest.mark.apiserver

IN_ITS_OWN_TEST = {
    (FileTransferBenchmark, "spec", "the matrix has more than 1000 cases"),
    (BrokerBenchmark, "spec", "the matrix has more than 1000 cases"),
    (BrokerBenchmark, "spec", "servers cannot be changed once created"),
    (BrokerBenchmark, "spec", "an external broker has one address"),
    (BrokerBenchmark, "spec", "kafka.heap does not fit into servers.resources"),
    (BrokerBenchmark, "spec", "clients.engine: Native supports four levels of Zstd"),
    (BrokerBenchmark, "spec", "pacing.closedLoop waits for messages to return"),
    (BrokerBenchmark, "spec", "pacing.acknowledged waits for acknowledgements"),
    (BrokerBenchmark, "spec.clients.subscribers", "set exactly one of nodeClass and none"),
    (NetworkBenchmark, "spec", "trim.by: Client needs clients that measure at the same time"),
    (BrokerBenchmark, "spec", "clients.engine: Paho only supports MQTT"),
    (BrokerBenchmark, "spec", "Strimzi does not support access: HostNetwork"),
    (BrokerBenchmark, "spec", "Strimzi's certificates do not contain nodes"),
    (FileTransferBenchmark, "spec", "preflight would measure between more than 64 pairs"),
    (BrokerBenchmark, "spec", "preflight would measure between more than 64 pairs"),
    (FileTransferBenchmark, "spec", "preflight cannot be changed once created"),
    (BrokerBenchmark, "spec", "preflight cannot be changed once created"),
    (NetworkBenchmark, "spec", "the matrix has more than 1000 cases"),
    (NetworkBenchmark, "spec", "tcp.congestionControl is only for TCP"),
    (NetworkBenchmark, "spec", "an external server serves one client at a time"),
    (NetworkBenchmark, "spec", "tcp cannot be changed once created"),
    (NetworkBenchmark, "spec", "udp cannot be changed once created"),
    (BenchmarkResult, "", "a result that is Measured or Failed cannot be changed"),
    (BenchmarkResult, "spec", "the spec of a result cannot be changed"),
}


@dataclass(frozen=True)
class Row:
    """`value` at `path` breaks the rule at `place`, which answers with `message`."""

    model: type[Resource]
    path: str
    value: Any
    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.model.KIND.kind} {self.path}={self.value!r}"[:80]


FILES, BROKERS, NETWORKS = FileTransferBenchmark, BrokerBenchmark, NetworkBenchmark
CLASSES, ADVICE = NodeClass, PlacementAdvice
SELECTOR, LABELS = "spec.nodeSelector", "spec.nodeSelector.matchLabels"
EXPRESSIONS, TOLERATIONS = "spec.nodeSelector.matchExpressions", "spec.tolerations"
PATH, CLAIM = "spec.storage.hostPath.path", "spec.storage.persistentVolumeClaim.storageClassName"
SIZES, REFINE = "spec.fileSizes", "spec.runPolicy.refine"
BETWEEN_SIZES = "runPolicy.refine measures between sizes where another server class takes the lead: name at least two "
SIZES_ALONE = "runPolicy.refine is not available for a NetworkBenchmark: remove it"
NO_LABEL_VALUE = "is not the value of a label: see `kubectl get nodes --show-labels`"
NO_LABEL_KEY = "is not the key of a label: see `kubectl get nodes --show-labels`"
EITHER, USER = "sets in workload what choose chooses: remove it", {"clientClass": "user"}
NO_CLASS = "is not the name of a NodeClass: see `kubectl get nodeclasses`"
NO_SIZE = "is not a size: write a whole number of bytes up to 16Ti, as in 1048576, 512Ki, 1Mi or 5Gi"
WRONG_SIZES = (
    "1.5Gi",
    "1MB",
    "-1",
    0,
    -5,
    "",
    "0",
    "01",
    "Ki",
    "1 Ki",
    "1Kii",
    "KiKi",
    "1m",
    "1e3",
    "1Ki\n",
    "\u0661Ki",
)
NO_WORD = "is not a short name: write letters, digits, spaces"
NEED_VALUES = "In and NotIn need values, Exists and DoesNotExist take none"
ONE_STORAGE = "set exactly one of hostPath, emptyDir and persistentVolumeClaim"
NO_CLASS_OF_STORAGE = "is not the name of a StorageClass"
BAD_PATH = "is not a path: write /var/lib/tierbench/NAME"
WRONG_PATHS = (
    *("", "/", "/.", "//", "files", "tierbench", "var/lib/tierbench"),
    *(
        "/var/lib/tierbench/",
        "/var/lib/tierbench/x/",
        "/var/lib/tierbench//x",
        "//var/lib/tierbench",
        "/var//lib/tierbench",
    ),
    *("/var/lib/tierbench/.", "/var/lib/tierbench/./x", "/var/lib/./tierbench", "/var/lib/tierbench/.hidden"),
    *(
        "/var/lib/tierbench/..",
        "/var/lib/tierbench/../../../etc",
        "/var/lib/tierbench/x/..",
        "/var/lib/tierbench/x/../../kubelet",
    ),
    *(
        "/etc/../var/lib/tierbench",
        "/etc//var/lib/tierbench",
        "/etc\n/var/lib/tierbench",
        "/var/lib/tierbench\n",
        "/var/lib/tierbench/x\n",
    ),
    *(
        " /var/lib/tierbench",
        "/var/lib/tierbench ",
        "/var/lib/tierbench/a b",
        "/var/lib/tierbench/a:b",
        "/var/lib/tierbench/\0",
    ),
    *(
        "/var/lib/tierbench/$(HOME)",
        "/var/lib/tierbench/a\\b",
        "/var/lib/tierbench/\u2024\u2024",
        "/var/lib/tierbench/_tierbench",
    ),
)
PAYLOAD_SIZES = "spec.payload.sizes"
MESSAGES, NO_CONFIG_MAP = "spec.payload.messages", "is not the name of a ConfigMap"
OWN_SIZES = "messages have sizes and contents of their own"
ONE_BROKER = "set exactly one of mosquitto, kafka and external for each broker"
NO_CONTENT = "must be Random, Zeros, SensorJSON or Ratio10"
NO_COMPRESSION = "must be None, Gzip or Zstd, optionally with a level"
ONE_PACE = "set exactly one of closedLoop, acknowledged, asFastAsPossible, intervalMilliseconds and messagesPerSecond"
ONE_LOAD = "set exactly one of messagesPerPublisher and durationSeconds"
WORKLOAD, OBJECTIVE = "spec.workload", "spec.objective"
FILES_ASKED, RATE_ASKED = "spec.workload.fileSizes", "spec.constraints.minimumBytesPerSecond"
MIXED, PERCENTILE = "mixes files and messages", "percentile needs type Percentile, which needs a percentile"
HEAP, BATCH_SIZES = "spec.brokers[].kafka.heap", "spec.kafka.batchSizes"
NO_SECRET = "is not the name of a Secret"
STRIMZI = "spec.brokers[].kafka.strimzi"
BROKER_CLAIM, BROKER_COMPUTE = f"{STRIMZI}.persistentVolumeClaim", f"{STRIMZI}.resources"
OUTSIDE = {"address": "iperf.example.com:5201"}
NO_IMAGE = "is not the name of an image: write letters and digits with dots or hyphens between them"
OLD_MOSQUITTO = [{"name": "mosquitto", "mosquitto": {"images": ["1"]}}]
WRONG_IMAGES = ("4", "64Mi", "a b", "-a", "a.", "registry.example/nginx:1", "")
STRIMZIS_IMAGES = (
    "kafka.images is only for provider: Standalone, because Strimzi has images of its own: set kafka.strimzi.version"
)
NO_CPU = "is not an amount of CPU: write cores or thousandths of one"
MUCH_DISK = {"requests": {"ephemeral-storage": "2Gi"}, "limits": {"ephemeral-storage": "1Gi"}}
WRONG_AMOUNTS = (
    ("cpu", "0.5", NO_CPU),
    *((name, "1.5Gi", NO_SIZE) for name in ("memory", "ephemeral-storage")),
    *((name, "17Ti", NO_SIZE) for name in ("memory", "ephemeral-storage")),
)


def external(**fields: Any) -> list[dict[str, Any]]:
    """An external broker, at an address that is one unless `fields` say otherwise."""
    return [{"name": "site", "external": {"address": "broker.example.com:1883", **fields}}]


def own_messages(*names: str, config_map: str = "sensor-messages") -> list[dict[str, Any]]:
    """Messages of a user's own, of one name unless others are given."""
    return [{"name": name, "configMapRef": {"name": config_map}} for name in names or ("sensor",)]


def elsewhere(**fields: Any) -> dict[str, Any]:
    """A spec of two payload sizes through a broker that is not ours."""
    payload = {"sizes": ["1Ki", "1Mi"]}
    return {"clients": {"nodeClasses": ["user"]}, "brokers": external(), "payload": payload, **fields}


def kafka(**fields: Any) -> list[dict[str, Any]]:
    """A Kafka of ours."""
    return [{"name": "kafka", "kafka": fields}]


def strimzi(heap: str = "128Mi", **options: Any) -> list[dict[str, Any]]:
    """A Kafka that Strimzi brings up."""
    return kafka(provider="Strimzi", heap=heap, strimzi=options)


def limited(most: str, **requests: Any) -> dict[str, Any]:
    """Resources of one, limited in memory and to one core."""
    return {"limits": {"cpu": 1, "memory": most}, "requests": requests}


def claim(**fields: Any) -> dict[str, Any]:
    """A volume of a storage class."""
    return {"storageClassName": "fast", "size": "1Gi", **fields}


def policy_rows(model: type[Resource]) -> Iterator[Row]:
    """What every kind of benchmark has."""
    schedule, zone, rate = (f"spec.runPolicy.{name}" for name in ("schedule", "timeZone", "constraints"))
    for wrong in ("every night", "0 0 * *", "0 0 * * * *", "0 0 * * $(date)"):
        yield Row(model, schedule, wrong, schedule, "is not a cron schedule: write minute, hour,")
    yield Row(
        model, "spec.runPolicy", {"schedule": "0 0 * * *", "timeZone": "../UTC"}, zone, "is not the name of a time"
    )
    yield Row(model, "spec.runPolicy", {"timeZone": "UTC"}, "spec.runPolicy", "timeZone needs schedule: set both")
    rate += ".minimumBytesPerSecond"
    yield Row(model, rate, "1MB", rate, NO_SIZE)
    yield Row(model, rate, "17Ti", rate, NO_SIZE)


def resource_rows(model: type[Resource]) -> Iterator[Row]:
    """What servers and clients ask for, and may use."""
    for place in ("spec.servers.resources", "spec.clients.resources"):
        for part in ("requests", "limits"):
            for name, wrong, message in WRONG_AMOUNTS:
                yield Row(model, f"{place}.{part}.{name}", wrong, f"{place}.{part}.{name}", message)
        yield Row(model, place, limited("1Gi", cpu="1001m"), place, "requests.cpu is more than limits.cpu")
        yield Row(model, place, limited("1Gi", memory="2Gi"), place, "requests.memory is more than limits.memory")
        yield Row(model, place, MUCH_DISK, place, "requests.ephemeral-storage is more than limits.ephemeral-storage")


def strimzi_rows() -> Iterator[Row]:
    """What can be asked of Strimzi."""
    asked: list[tuple[list[dict[str, Any]], str, str]] = [
        (kafka(strimzi={}), "spec.brokers", "kafka.strimzi is only for provider: Strimzi"),
        (strimzi(heap="300Mi", resources=limited("300Mi")), "spec.brokers", "kafka.heap does not fit"),
        (strimzi(version="4.1"), f"{STRIMZI}.version", "is not a version of Kafka: write three numbers"),
        (strimzi(resources=limited("1Gi", cpu=2)), BROKER_COMPUTE, "requests.cpu is more than limits.cpu"),
        (strimzi(resources=limited("1Gi", memory="2Gi")), BROKER_COMPUTE, "requests.memory is more than limits.memory"),
        (strimzi(resources=MUCH_DISK), BROKER_COMPUTE, "requests.ephemeral-storage is more than limits"),
        (strimzi(persistentVolumeClaim=claim(size="1.5Gi")), f"{BROKER_CLAIM}.size", NO_SIZE),
        (strimzi(persistentVolumeClaim=claim(size="17Ti")), f"{BROKER_CLAIM}.size", NO_SIZE),
        (
            strimzi(persistentVolumeClaim=claim(storageClassName="Fast Disk")),
            f"{BROKER_CLAIM}.storageClassName",
            NO_CLASS_OF_STORAGE,
        ),
    ]
    for part in ("requests", "limits"):
        place = f"{BROKER_COMPUTE}.{part}"
        asked += [
            (strimzi(resources={part: {name: wrong}}), f"{place}.{name}", message)
            for name, wrong, message in WRONG_AMOUNTS
        ]
    for brokers, place, message in asked:
        yield Row(BROKERS, "spec.brokers", brokers, place, message)


ROWS = (
    Row(FILES, "metadata.name", "n" * 41, "", "metadata.name is longer than 40 characters: choose a shorter one"),
    Row(FILES, "metadata.name", "files.small", "", "metadata.name has a dot: write a hyphen instead"),
    Row(FILES, "spec.servers.nodeClasses", ["Cloud"], "spec.servers.nodeClasses[]", NO_CLASS),
    Row(FILES, "spec.servers.nodeClasses", ["a.b"], "spec.servers.nodeClasses[]", NO_CLASS),
    Row(FILES, "spec.clients.nodeClasses", ["user-"], "spec.clients.nodeClasses[]", NO_CLASS),
    *(Row(FILES, SIZES, [wrong], "spec.fileSizes[]", NO_SIZE) for wrong in WRONG_SIZES),
    Row(FILES, SIZES, ["17Ti"], "spec.fileSizes[]", NO_SIZE),
    Row(FILES, SIZES, [2**44 + 1], "spec.fileSizes[]", NO_SIZE),
    Row(FILES, "spec.retry", {"waitMaximumMilliseconds": 999}, "spec.retry", "waitMaximumMilliseconds is less"),
    *policy_rows(FILES),
    *policy_rows(BROKERS),
    *policy_rows(NETWORKS),
    *(row for model in (FILES, BROKERS, NETWORKS) for row in resource_rows(model)),
    Row(FILES, REFINE, {}, "spec", f"{BETWEEN_SIZES}fileSizes and two servers.nodeClasses"),
    Row(BROKERS, REFINE, {}, "spec", f"{BETWEEN_SIZES}payload.sizes and two servers.nodeClasses"),
    Row(BROKERS, "spec", elsewhere(runPolicy={"refine": {}}), "spec", BETWEEN_SIZES),
    Row(NETWORKS, REFINE, {}, "spec", SIZES_ALONE),
    Row(FILES, "spec.storage", {}, "spec.storage", ONE_STORAGE),
    Row(
        FILES, "spec.storage", {"emptyDir": {}, "hostPath": {"path": "/var/lib/tierbench"}}, "spec.storage", ONE_STORAGE
    ),
    *(Row(FILES, PATH, path, PATH, BAD_PATH) for path in WRONG_PATHS),
    *(Row(FILES, "spec.servers.images", [name], "spec.servers.images[]", NO_IMAGE) for name in WRONG_IMAGES),
    Row(FILES, CLAIM, "Fast Disk", CLAIM, NO_CLASS_OF_STORAGE),
    Row(BROKERS, "metadata.name", "n" * 41, "", "metadata.name is longer than 40 characters: choose a shorter one"),
    Row(BROKERS, "metadata.name", "brokers.small", "", "metadata.name has a dot: write a hyphen instead"),
    Row(BROKERS, "spec.servers.nodeClasses", ["Cloud"], "spec.servers.nodeClasses[]", NO_CLASS),
    Row(BROKERS, "spec.clients.nodeClasses", ["user-"], "spec.clients.nodeClasses[]", NO_CLASS),
    Row(BROKERS, "spec.clients.subscribers", {"nodeClass": "a.b"}, "spec.clients.subscribers.nodeClass", NO_CLASS),
    Row(BROKERS, "spec.clients.pods", 2, "spec", "clients.pods is more than the smallest number in pairs"),
    Row(BROKERS, "spec.brokers", [{"name": "a"}], "spec.brokers", ONE_BROKER),
    Row(BROKERS, "spec.brokers", [{**external()[0], "mosquitto": {}}], "spec.brokers", ONE_BROKER),
    Row(BROKERS, "spec.brokers", [{"name": "A", "mosquitto": {}}], "spec.brokers[].name", "must be lower-case letters"),
    Row(BROKERS, "spec.brokers", external(address="broker"), "spec.brokers[].external.address", "is not an address"),
    Row(
        BROKERS,
        "spec.brokers",
        external(secretRef={"name": "a b"}),
        "spec.brokers[].external.secretRef.name",
        NO_SECRET,
    ),
    Row(BROKERS, "spec.brokers", kafka(heap="1.5Gi"), HEAP, NO_SIZE),
    Row(BROKERS, "spec.brokers", kafka(heap="17Ti"), HEAP, NO_SIZE),
    Row(BROKERS, "spec.brokers", kafka(heap="64Mi"), "spec.brokers", "kafka.heap must be from 96Mi to 64Gi"),
    Row(BROKERS, "spec.brokers", kafka(images=["4"]), "spec.brokers[].kafka.images[]", NO_IMAGE),
    Row(BROKERS, "spec.brokers", OLD_MOSQUITTO, "spec.brokers[].mosquitto.images[]", NO_IMAGE),
    Row(BROKERS, "spec.brokers", kafka(provider="Strimzi", images=["3.9.0"]), "spec.brokers", STRIMZIS_IMAGES),
    *strimzi_rows(),
    Row(BROKERS, BATCH_SIZES, ["1.5Ki"], f"{BATCH_SIZES}[]", NO_SIZE),
    Row(BROKERS, BATCH_SIZES, ["17Ti"], f"{BATCH_SIZES}[]", NO_SIZE),
    Row(BROKERS, BATCH_SIZES, ["17Mi"], BATCH_SIZES, "each size must be at most 16Mi"),
    Row(BROKERS, "spec.servers", None, "spec", "spec.servers is missing: name the node classes that host the broker"),
    Row(BROKERS, PAYLOAD_SIZES, ["1.5Ki"], f"{PAYLOAD_SIZES}[]", NO_SIZE),
    Row(BROKERS, PAYLOAD_SIZES, ["17Ti"], f"{PAYLOAD_SIZES}[]", NO_SIZE),
    Row(BROKERS, PAYLOAD_SIZES, ["17Mi"], PAYLOAD_SIZES, "each size must be from 2 to 16Mi"),
    Row(BROKERS, PAYLOAD_SIZES, [1], PAYLOAD_SIZES, "each size must be from 2 to 16Mi"),
    Row(BROKERS, "spec.payload", {"messages": own_messages(), "sizes": ["1Ki"]}, "spec.payload", OWN_SIZES),
    Row(BROKERS, "spec.payload", {"messages": own_messages(), "contents": ["Random"]}, "spec.payload", OWN_SIZES),
    Row(BROKERS, MESSAGES, own_messages("Random"), f"{MESSAGES}[].name", "must be lower-case letters"),
    Row(BROKERS, MESSAGES, own_messages(config_map="a b"), f"{MESSAGES}[].configMapRef.name", NO_CONFIG_MAP),
    Row(BROKERS, "spec.payload.contents", ["Ratio55"], "spec.payload.contents[]", NO_CONTENT),
    Row(BROKERS, "spec.compression", ["Gzip:10"], "spec.compression[]", NO_COMPRESSION),
    Row(BROKERS, "spec.pacing", {"closedLoop": {}, "messagesPerSecond": 5}, "spec.pacing", ONE_PACE),
    Row(BROKERS, "spec.load", {"messagesPerPublisher": 5, "durationSeconds": 5}, "spec.load", ONE_LOAD),
    Row(NETWORKS, "metadata.name", "n" * 41, "", "metadata.name is longer than 40 characters: choose a shorter one"),
    Row(NETWORKS, "metadata.name", "wifi.home", "", "metadata.name has a dot: write a hyphen instead"),
    Row(NETWORKS, "spec.servers.nodeClasses", ["Cloud"], "spec.servers.nodeClasses[]", NO_CLASS),
    Row(NETWORKS, "spec.servers", {}, "spec.servers", "names no server: set nodeClasses, for example [cloud]"),
    Row(NETWORKS, "spec.servers.external", {"address": "iperf"}, "spec.servers.external.address", "is not an address"),
    Row(
        NETWORKS,
        "spec.tcp",
        {"congestionControl": ["Cubic"]},
        "spec.tcp.congestionControl[]",
        "is not the name of an algorithm: see `sysctl net.ipv4.tcp_allowed_congestion_control`",
    ),
    Row(NETWORKS, "spec.clients.nodeClasses", ["user-"], "spec.clients.nodeClasses[]", NO_CLASS),
    Row(
        NETWORKS,
        "spec.clients",
        {"nodeClasses": ["a", "b"], "together": ["AllAtOnce"], "nodesPerClass": 9},
        "spec.clients",
        "more than 16 clients would measure at the same time: name fewer classes",
    ),
    Row(NETWORKS, "spec.protocols", ["TCP", "UDP"], "spec", "UDP needs a rate: write, for example, udp:"),
    Row(NETWORKS, "spec.trim", {"lowest": 5, "highest": 5}, "spec", "trim leaves no trial: raise repetitions above"),
    Row(NETWORKS, "spec.durationSeconds", 1789, "spec", "a trial takes longer than timeouts.trialSeconds: raise it"),
    Row(CLASSES, "metadata.name", "jetson.nano", "", "metadata.name has a dot or more than 63 characters"),
    Row(CLASSES, "metadata.name", "n" * 64, "", "metadata.name has a dot or more than 63 characters"),
    Row(CLASSES, SELECTOR, {}, SELECTOR, "names no label, so every node would belong to the class"),
    Row(CLASSES, LABELS, {"a b": "c"}, LABELS, "has a key that is not the key of a label"),
    Row(CLASSES, LABELS, {"hw": "jetson nano"}, f"{LABELS}.*", NO_LABEL_VALUE),
    Row(CLASSES, EXPRESSIONS, [{"key": "hw", "operator": "In"}], f"{EXPRESSIONS}[]", NEED_VALUES),
    Row(CLASSES, EXPRESSIONS, [{"key": "a", "operator": "Exists", "values": ["b"]}], f"{EXPRESSIONS}[]", NEED_VALUES),
    Row(CLASSES, EXPRESSIONS, [{"key": "a/b/c", "operator": "Exists"}], f"{EXPRESSIONS}[].key", NO_LABEL_KEY),
    Row(
        CLASSES,
        EXPRESSIONS,
        [{"key": "hw", "operator": "In", "values": ["a=b"]}],
        f"{EXPRESSIONS}[].values[]",
        NO_LABEL_VALUE,
    ),
    Row(CLASSES, TOLERATIONS, [{}], f"{TOLERATIONS}[]", "has no key, which needs operator Exists"),
    Row(
        CLASSES,
        TOLERATIONS,
        [{"key": "edge", "operator": "Exists", "value": "yes"}],
        f"{TOLERATIONS}[]",
        "has a value, which operator Exists does not allow",
    ),
    Row(CLASSES, TOLERATIONS, [{"key": "a b"}], f"{TOLERATIONS}[].key", "is not the key of a taint"),
    Row(CLASSES, TOLERATIONS, [{"key": "edge", "value": "a b"}], f"{TOLERATIONS}[].value", NO_LABEL_VALUE),
    Row(CLASSES, "spec.accessNetwork", "5g/sa", "spec.accessNetwork", NO_WORD),
    Row(CLASSES, "spec.storage", " ", "spec.storage", NO_WORD),
    Row(ADVICE, "spec.clientClass", "User", "spec.clientClass", NO_CLASS),
    Row(ADVICE, WORKLOAD, {}, WORKLOAD, "names no level: set fileSizes, as in [{size: 512Mi}]"),
    Row(ADVICE, WORKLOAD, {"fileSizes": [{"size": "1M"}], "payloadSize": "1Ki"}, WORKLOAD, MIXED),
    Row(ADVICE, WORKLOAD, {"fileSizes": [{"size": "1M"}], "delivery": "AtMostOnce"}, WORKLOAD, MIXED),
    Row(ADVICE, WORKLOAD, {"fileSizes": [{"size": "1M"}], "messagesPerSecond": 5}, WORKLOAD, MIXED),
    Row(ADVICE, WORKLOAD, {"levels": {"nodeClass": "cloud"}}, "spec", EITHER),
    Row(ADVICE, "spec", {**USER, "choose": ["delivery"], "workload": {"delivery": "AtMostOnce"}}, "spec", EITHER),
    Row(ADVICE, FILES_ASKED, [{"size": "1MB"}], f"{FILES_ASKED}[].size", NO_SIZE),
    Row(ADVICE, FILES_ASKED, [{"size": "17Ti"}], f"{FILES_ASKED}[].size", NO_SIZE),
    Row(ADVICE, WORKLOAD, {"payloadSize": "17Ti"}, f"{WORKLOAD}.payloadSize", NO_SIZE),
    Row(ADVICE, WORKLOAD, {"payloadSize": "1.5Ki"}, f"{WORKLOAD}.payloadSize", NO_SIZE),
    Row(ADVICE, OBJECTIVE, {"type": "Percentile"}, OBJECTIVE, PERCENTILE),
    Row(ADVICE, OBJECTIVE, {"type": "MeanTime", "percentile": "P99"}, OBJECTIVE, PERCENTILE),
    Row(ADVICE, RATE_ASKED, "1MB", RATE_ASKED, NO_SIZE),
    Row(ADVICE, RATE_ASKED, "17Ti", RATE_ASKED, NO_SIZE),
)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_rule_refuses_with_its_message_at_its_place(server: ApiServer, name: str, row: Row) -> None:
    body = smallest(row.model, name)
    create(server, row.model, smallest(row.model, f"{name}-good"))
    with pytest.raises(RefusedError) as refused:
        create(server, row.model, changed(body, row.path, row.value))
    assert refused.value.code == 422
    answers = [(schema_path(field), message) for field, message in refused.value.causes]
    assert [place for place, message in answers if message.startswith(row.message)] == [row.place]
    assert "rule evaluation error" not in str(refused.value)


def test_too_large_a_matrix_is_refused_with_its_size(server: ApiServer, name: str) -> None:
    body = changed(smallest(FILES, name), SIZES, [f"{number}Mi" for number in range(1, 31)])
    body = changed(body, "spec.concurrency", [1, 2, 4, 8])
    body = changed(body, "spec.cacheState", ["Natural", "Warm", "Cold"])
    create(server, FILES, changed(body, "spec.servers.nodesPerClass", 2))
    with pytest.raises(RefusedError, match="the matrix has 1080 cases, at most 1000 are allowed: remove levels"):
        create(server, FILES, changed(body, "spec.servers.nodesPerClass", 3))


def test_images_count_as_cases(server: ApiServer, name: str) -> None:
    body = changed(smallest(FILES, name), SIZES, [f"{number}Mi" for number in range(1, 31)])
    body = changed(body, "spec.concurrency", [1, 2, 4, 8])
    body = changed(body, "spec.cacheState", ["Natural", "Warm", "Cold"])
    create(server, FILES, changed(body, "spec.servers.images", ["default", "1.19.6"]))
    with pytest.raises(RefusedError, match="the matrix has 1080 cases, at most 1000 are allowed"):
        create(server, FILES, changed(body, "spec.servers.images", ["default", "1.19.6", "debian"]))
    body = changed(smallest(BROKERS, name), PAYLOAD_SIZES, list(range(100, 116)))
    body = changed(body, "spec.pairs", [1, 2, 4, 8, 16, 32, 64, 128])
    body = changed(body, "spec.brokers", [*kafka(images=["default", "3.9.1"]), {"name": "m", "mosquitto": {}}])
    create(server, BROKERS, changed(body, "spec.delivery", ["AtMostOnce", "AtLeastOnce"]))
    with pytest.raises(RefusedError, match="the matrix has 1152 cases, at most 1000 are allowed"):
        create(server, BROKERS, changed(body, "spec.delivery", ["AtMostOnce", "AtLeastOnce", "ExactlyOnce"]))


@pytest.mark.parametrize(("model", "sizes"), [(FILES, SIZES), (BROKERS, PAYLOAD_SIZES)])
def test_two_sizes_and_two_classes_can_be_refined(
    server: ApiServer, name: str, model: type[Resource], sizes: str
) -> None:
    body = changed(changed(smallest(model, name), sizes, ["1Ki", "1Mi"]), REFINE, {})
    body = changed(body, "spec.servers.nodeClasses", ["cloud", "edge"])
    create(server, model, changed(body, "metadata.name", f"{name}-good"))
    for lacking in ((sizes, ["1Mi"]), ("spec.servers.nodeClasses", ["cloud"])):
        with pytest.raises(RefusedError, match=BETWEEN_SIZES):
            create(server, model, changed(body, *lacking))


def test_too_many_broker_cases_are_refused_with_their_number(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), PAYLOAD_SIZES, list(range(100, 116)))
    body = changed(body, "spec.pairs", [1, 2, 4, 8, 16, 32, 64, 128])
    body = changed(body, "spec.brokers", [*external(), {"name": "mosquitto", "mosquitto": {}}])
    create(server, BROKERS, changed(body, "spec.delivery", ["AtMostOnce", "AtLeastOnce", "ExactlyOnce"]))
    with pytest.raises(RefusedError, match="the matrix has 1280 cases, at most 1000 are allowed: remove levels"):
        create(
            server, BROKERS, changed(body, "spec.compression", [f"Gzip:{level}" for level in range(1, 5)] + ["None"])
        )


def test_own_messages_are_one_level_of_the_matrix_each(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), MESSAGES, own_messages(*"abcdefghijkl"))
    body = changed(body, "spec.compression", [f"Gzip:{level}" for level in range(1, 9)])
    create(server, BROKERS, changed(body, "spec.pairs", list(range(1, 9))))
    body = changed(body, "spec.encryption", ["None", "AES128GCM"])
    with pytest.raises(RefusedError, match="the matrix has 1536 cases, at most 1000 are allowed"):
        create(server, BROKERS, changed(body, "spec.pairs", list(range(1, 9))))


def test_too_many_network_cases_are_refused_with_their_number(server: ApiServer, name: str) -> None:
    body = changed(smallest(NETWORKS, name), "spec.streams", list(range(1, 9)))
    body = changed(body, "spec.directions", ["Upload", "Download", "Both"])
    body = changed(body, "spec.servers.nodeClasses", ["a", "b", "c"])
    create(server, NETWORKS, changed(body, "spec.servers.nodesPerClass", 13))
    with pytest.raises(RefusedError, match="the matrix has 1008 cases, at most 1000 are allowed: remove levels"):
        create(server, NETWORKS, changed(body, "spec.servers.nodesPerClass", 14))


def test_levels_of_congestion_control_and_an_external_server_count_as_cases(server: ApiServer, name: str) -> None:
    body = changed(smallest(NETWORKS, name), "spec.streams", list(range(1, 9)))
    body = changed(body, "spec.directions", ["Upload", "Download", "Both"])
    body = changed(body, "spec.tcp", {"congestionControl": [f"a{number}" for number in range(8)]})
    body = changed(body, "spec.servers.nodesPerClass", 5)
    create(server, NETWORKS, changed(body, "metadata.name", f"{name}-good"))
    with pytest.raises(RefusedError, match="the matrix has 1152 cases, at most 1000 are allowed"):
        create(server, NETWORKS, changed(body, "spec.servers.external", OUTSIDE))


def test_clients_alone_and_all_at_once_count_as_cases(server: ApiServer, name: str) -> None:
    body = changed(smallest(NETWORKS, name), "spec.streams", list(range(1, 9)))
    body = changed(body, "spec.directions", ["Upload", "Download", "Both"])
    body = changed(body, "spec.servers.nodesPerClass", 3)
    body = changed(body, "spec.clients.nodesPerClass", 16)
    create(server, NETWORKS, changed(body, "spec.clients.together", ["AllAtOnce"]))
    with pytest.raises(RefusedError, match="the matrix has 1224 cases, at most 1000 are allowed"):
        create(server, NETWORKS, changed(body, "spec.clients.together", ["Alone", "AllAtOnce"]))


def test_congestion_control_is_of_tcp_alone(server: ApiServer, name: str) -> None:
    body = changed(smallest(NETWORKS, name), "spec.tcp", {"congestionControl": ["cubic", "bbr"]})
    create(server, NETWORKS, changed(body, "metadata.name", f"{name}-good"))
    body = changed(body, "spec.udp", {"kilobitsPerSecond": 1000})
    with pytest.raises(RefusedError, match=r"tcp\.congestionControl is only for TCP: write protocols: \[TCP\]"):
        create(server, NETWORKS, changed(body, "spec.protocols", ["TCP", "UDP"]))


def test_an_external_server_serves_one_client_at_a_time(server: ApiServer, name: str) -> None:
    body = changed(smallest(NETWORKS, name), "spec.servers", {"external": OUTSIDE})
    create(server, NETWORKS, changed(body, "metadata.name", f"{name}-good"))
    with pytest.raises(
        RefusedError, match=r"an external server serves one client at a time: remove AllAtOnce from clients\.together"
    ):
        create(server, NETWORKS, changed(body, "spec.clients.together", ["Alone", "AllAtOnce"]))


@pytest.mark.parametrize(
    ("model", "good", "bad"),
    [
        (FILES, {"nodeClasses": ["x", "y"]}, {"nodeClasses": ["x", "y", "z"]}),
        (BROKERS, {"nodeClasses": ["x"], "subscribers": {"nodeClass": "y"}}, {"nodeClasses": ["x"], "pods": 3}),
    ],
)
def test_a_preflight_of_too_many_pairs_is_refused(
    server: ApiServer, name: str, model: type[Resource], good: Json, bad: Json
) -> None:
    body = changed(smallest(model, name), "spec.servers", {"nodeClasses": ["a", "b"], "nodesPerClass": 16})
    body = changed(body, "spec.preflight", {})
    if model is BROKERS:
        body = changed(body, "spec.pairs", [4])
    create(server, model, changed(changed(body, "metadata.name", f"{name}-good"), "spec.clients", good))
    without = changed(changed(body, "metadata.name", f"{name}-without"), "spec.preflight", None)
    create(server, model, changed(without, "spec.clients", bad))
    with pytest.raises(RefusedError, match="preflight would measure between more than 64 pairs of nodes: remove it"):
        create(server, model, changed(body, "spec.clients", bad))


def test_an_external_broker_has_one_level_of_tls(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), "spec.brokers", external())
    create(server, BROKERS, changed(changed(body, "spec.servers", None), "metadata.name", f"{name}-good"))
    with pytest.raises(RefusedError, match="an external broker has one address: write one level of tls"):
        create(server, BROKERS, changed(body, "spec.tls", ["None", "TLSv1.3"]))


def test_a_heap_has_to_fit_into_the_limit(server: ApiServer, name: str) -> None:
    limits = {"limits": {"memory": "1Gi"}}
    limited = changed(smallest(BROKERS, name), "spec.servers.resources", limits)
    create(server, BROKERS, changed(limited, "spec.brokers", kafka(heap="512Mi")))
    with pytest.raises(RefusedError, match=r"kafka\.heap does not fit into servers\.resources\.limits\.memory"):
        create(server, BROKERS, changed(limited, "spec.brokers", kafka(heap="1Gi")))


@pytest.mark.parametrize("broker", [kafka(), external(protocol="Kafka")])
def test_paho_does_not_speak_to_kafka(server: ApiServer, name: str, broker: list[dict[str, Any]]) -> None:
    body = changed(smallest(BROKERS, name), "spec.clients.engine", "Paho")
    create(server, BROKERS, changed(body, "metadata.name", f"{name}-good"))
    with pytest.raises(RefusedError, match=r"clients\.engine: Paho only supports MQTT: write Native"):
        create(server, BROKERS, changed(body, "spec.brokers", broker))


def test_clients_are_trimmed_each_where_they_measure_at_once(server: ApiServer, name: str) -> None:
    body = changed(smallest(NETWORKS, name), "spec.trim", {"lowest": 1, "highest": 1, "by": "Client"})
    with pytest.raises(RefusedError, match=r"write clients\.together: \[AllAtOnce\], or remove trim\.by"):
        create(server, NETWORKS, body)
    create(server, NETWORKS, changed(body, "spec.clients.together", ["AllAtOnce"]))


def test_a_pace_waits_only_for_what_comes(server: ApiServer, name: str) -> None:
    alone = changed(smallest(BROKERS, name), "spec.clients.subscribers", {"none": {}})
    with pytest.raises(RefusedError, match=r"none returns: write pacing: \{acknowledged: \{inFlight: 1\}\}"):
        create(server, BROKERS, alone)
    paced = changed(alone, "spec.pacing", {"acknowledged": {}})
    with pytest.raises(
        RefusedError,
        match=r"AtMostOnce has none: remove AtMostOnce, or measure .* with pacing: \{asFastAsPossible: \{\}\}",
    ):
        create(server, BROKERS, changed(paced, "spec.delivery", ["AtMostOnce", "AtLeastOnce"]))
    with pytest.raises(RefusedError, match="set exactly one of nodeClass and none"):
        create(server, BROKERS, changed(paced, "spec.clients.subscribers", {"nodeClass": "x", "none": {}}))
    with pytest.raises(RefusedError, match="set exactly one of closedLoop, acknowledged"):
        create(server, BROKERS, changed(paced, "spec.pacing", {"acknowledged": {}, "asFastAsPossible": {}}))
    create(server, BROKERS, paced)


def test_the_native_engine_has_four_levels_of_zstd(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), "spec.compression", ["Zstd:19"])
    with pytest.raises(RefusedError, match=r"write Zstd:1, Zstd:3, Zstd:7 or Zstd:11, or clients\.engine: Paho"):
        create(server, BROKERS, body)
    create(server, BROKERS, changed(body, "spec.compression", ["Gzip:9", "Zstd", "Zstd:11"]))
    paho = changed(body, "spec.clients.engine", "Paho")
    create(server, BROKERS, changed(paho, "metadata.name", f"{name}-paho"))


def test_strimzi_cannot_give_what_it_does_not_have(server: ApiServer, name: str) -> None:
    """Neither the node's network, nor certificates that name nodes."""
    body = changed(smallest(BROKERS, name), "spec.brokers", strimzi())
    with pytest.raises(RefusedError, match="Strimzi does not support access: HostNetwork: write ClusterIP"):
        create(server, BROKERS, changed(body, "spec.access", "HostNetwork"))
    body = changed(body, "spec.access", "NodePort")
    with pytest.raises(RefusedError, match=r"Strimzi's certificates do not contain nodes: .* write tls: \[None\]"):
        create(server, BROKERS, changed(body, "spec.tls", ["None", "TLSv1.3"]))
    create(server, BROKERS, body)


@pytest.mark.parametrize("lacking", ["storageClassName", "size"])
def test_half_a_volume_is_refused(server: ApiServer, name: str, lacking: str) -> None:
    half = {key: value for key, value in claim().items() if key != lacking}
    body = changed(smallest(BROKERS, name), "spec.brokers", strimzi(persistentVolumeClaim=half))
    with pytest.raises(RefusedError, match=rf"persistentVolumeClaim\.{lacking}: Required value"):
        create(server, BROKERS, body)


def test_kafkas_factors_make_cases_of_kafka_alone(server: ApiServer, name: str) -> None:
    body = changed(smallest(BROKERS, name), PAYLOAD_SIZES, list(range(100, 110)))
    body = changed(body, "spec.kafka", {"codecs": ["None", "Lz4", "Zstd"], "partitions": list(range(1, 9))})
    create(server, BROKERS, changed(body, "spec.pairs", [1, 2, 3, 4]))
    body = changed(body, "spec.brokers", [*kafka(), {"name": "mosquitto", "mosquitto": {}}])
    create(server, BROKERS, changed(changed(body, "spec.pairs", [1, 2, 3, 4]), "metadata.name", f"{name}-both"))
    with pytest.raises(RefusedError, match="the matrix has 1250 cases, at most 1000 are allowed"):
        create(server, BROKERS, changed(body, "spec.pairs", [1, 2, 3, 4, 5]))


def test_every_rule_has_a_row() -> None:
    covered = {(row.model, row.place, row.message) for row in ROWS} | IN_ITS_OWN_TEST
    missing = [
        (model.KIND.kind, place, rule["message"])
        for model in resource_types()
        for place, rule in rules_with_paths("", object_schema(model))
        if rule["message"] != IMMUTABLE.message
        and not any((model, place) == row[:2] and rule["message"].startswith(row[2]) for row in covered)
    ]
    assert missing == []
