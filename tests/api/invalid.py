"""Invalid values of the API, each with the path and the message of the rule that rejects it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tierbench.api.model import Resource
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.broker.spec import BrokerBenchmark
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kinds.network.spec import NetworkBenchmark


@dataclass(frozen=True)
class Row:
    """An invalid value. The rule at `place` rejects it with `message`."""

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
PATH, CLAIM = "spec.storage.hostPath.path", "spec.storage.volumeClaimTemplate.storageClassName"
SIZES, REFINE = "spec.fileSizes", "spec.runPolicy.refine"
BETWEEN_SIZES = "runPolicy.refine measures between sizes where another server class takes the lead: name at least two "
SIZES_ALONE = "runPolicy.refine is not available for a NetworkBenchmark: remove it"
NO_LABEL_VALUE = "is not the value of a label: see `kubectl get nodes --show-labels`"
NO_LABEL_KEY = "is not the key of a label: see `kubectl get nodes --show-labels`"
EITHER, USER = "sets in workload what choose chooses: remove it", {"clientClassName": "user"}
NO_CLASS = "is not the name of a NodeClass: see `kubectl get nodeclasses.tierbench.io`"
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
ONE_STORAGE = "set exactly one of hostPath, emptyDir and volumeClaimTemplate"
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
INVITATION = {"name": "a", "tokenHash": "ab" * 32, "expirationTime": "2026-01-01T00:00:00Z"}
PAYLOAD_SIZES = "spec.payload.sizes"
LINKS, TRACE = "spec.links", {"configMapRef": {"name": "drive"}}
MESSAGES, NO_CONFIG_MAP = "spec.payload.messages", "is not the name of a ConfigMap"
OWN_SIZES = "messages have sizes and contents of their own"
ONE_BROKER = "set exactly one of mosquitto, kafka, http and external for each broker"
NO_CONTENT = "must be Random, Zeros, SensorJSON or Ratio10"
NO_COMPRESSION = "must be None, Gzip or Zstd, optionally with a level"
ONE_PACE = "type OpenLoop needs either intervalMilliseconds or messagesPerSecond, and no other type has them"
ONE_LOAD = "set exactly one of messagesPerPublisher and durationSeconds"
WORKLOAD, OBJECTIVE = "spec.workload", "spec.objective"
WORKLOAD_FILES, MIN_RATE = "spec.workload.fileSizes", "spec.constraints.minBytesPerSecond"
MIXED, PERCENTILE = "mixes files and messages", "percentile needs type Percentile, which needs a percentile"
HEAP, BATCH_SIZES = "spec.brokers[].kafka.heap", "spec.kafkaClients.batchSizes"
NO_URL_PATH = "is not a path: begin with /, and write"
NO_SECRET = "is not the name of a Secret"
STRIMZI = "spec.brokers[].kafka.strimzi"
BROKER_CLAIM, BROKER_COMPUTE = f"{STRIMZI}.volumeClaimTemplate", f"{STRIMZI}.resources"
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
    *(("cpu", amount, NO_CPU) for amount in ("0.0005", "-1", "half")),
    *((name, "1.5Gi", NO_SIZE) for name in ("memory", "ephemeral-storage")),
    *((name, "17Ti", NO_SIZE) for name in ("memory", "ephemeral-storage")),
)


def external(**fields: Any) -> list[dict[str, Any]]:
    """Returns an external broker, with a valid address unless `fields` say otherwise."""
    return [{"name": "site", "external": {"address": "broker.example.com:1883", **fields}}]


def link(**fields: Any) -> dict[str, Any]:
    return {"name": "lte", **fields}


def own_messages(*names: str, config_map: str = "sensor-messages") -> list[dict[str, Any]]:
    """Returns messages of the user, one unless more names are given."""
    return [{"name": name, "configMapRef": {"name": config_map}} for name in names or ("sensor",)]


def on_external_broker(**fields: Any) -> dict[str, Any]:
    """Returns a spec with two payload sizes and an external broker."""
    payload = {"sizes": ["1Ki", "1Mi"]}
    return {"clients": {"nodeClassNames": ["user"]}, "brokers": external(), "payload": payload, **fields}


def kafka(**fields: Any) -> list[dict[str, Any]]:
    """Returns a Kafka that the operator runs."""
    return [{"name": "kafka", "kafka": fields}]


def strimzi(heap: str = "128Mi", **options: Any) -> list[dict[str, Any]]:
    """Returns a Kafka that Strimzi runs."""
    return kafka(provider="Strimzi", heap=heap, strimzi=options)


def limited(most: str, **requests: Any) -> dict[str, Any]:
    """Returns resources with a limit of memory and of one core."""
    return {"limits": {"cpu": 1, "memory": most}, "requests": requests}


def claim(**fields: Any) -> dict[str, Any]:
    """Returns a volume of a storage class."""
    return {"storageClassName": "fast", "size": "1Gi", **fields}


def policy_rows(model: type[Resource]) -> Iterator[Row]:
    """Yields rows for the fields of all kinds of benchmarks."""
    schedule, zone, rate = (f"spec.runPolicy.{name}" for name in ("schedule", "timeZone", "constraints"))
    for wrong in ("every night", "0 0 * *", "0 0 * * * *", "0 0 * * $(date)"):
        yield Row(model, schedule, wrong, schedule, "is not a cron schedule: write minute, hour,")
    yield Row(
        model, "spec.runPolicy", {"schedule": "0 0 * * *", "timeZone": "../UTC"}, zone, "is not the name of a time"
    )
    yield Row(model, "spec.runPolicy", {"timeZone": "UTC"}, "spec.runPolicy", "timeZone needs schedule: set both")
    rate += ".minBytesPerSecond"
    yield Row(model, rate, "1MB", rate, NO_SIZE)
    yield Row(model, rate, "17Ti", rate, NO_SIZE)


def resource_rows(model: type[Resource]) -> Iterator[Row]:
    """Yields rows for requests and limits of servers and clients."""
    for place in ("spec.servers.resources", "spec.clients.resources"):
        for part in ("requests", "limits"):
            for name, wrong, message in WRONG_AMOUNTS:
                yield Row(model, f"{place}.{part}.{name}", wrong, f"{place}.{part}.{name}", message)
        yield Row(model, place, limited("1Gi", cpu="1001m"), place, "requests.cpu is more than limits.cpu")
        yield Row(model, place, limited("1Gi", memory="2Gi"), place, "requests.memory is more than limits.memory")
        yield Row(model, place, MUCH_DISK, place, "requests.ephemeral-storage is more than limits.ephemeral-storage")


def strimzi_rows() -> Iterator[Row]:
    """Yields rows for the options of Strimzi."""
    rows: list[tuple[list[dict[str, Any]], str, str]] = [
        (kafka(strimzi={}), "spec.brokers", "kafka.strimzi is only for provider: Strimzi"),
        (strimzi(heap="300Mi", resources=limited("300Mi")), "spec.brokers", "kafka.heap does not fit"),
        (strimzi(version="4.1"), f"{STRIMZI}.version", "is not a version of Kafka: write three numbers"),
        (strimzi(resources=limited("1Gi", cpu=2)), BROKER_COMPUTE, "requests.cpu is more than limits.cpu"),
        (strimzi(resources=limited("1Gi", memory="2Gi")), BROKER_COMPUTE, "requests.memory is more than limits.memory"),
        (strimzi(resources=MUCH_DISK), BROKER_COMPUTE, "requests.ephemeral-storage is more than limits"),
        (strimzi(volumeClaimTemplate=claim(size="1.5Gi")), f"{BROKER_CLAIM}.size", NO_SIZE),
        (strimzi(volumeClaimTemplate=claim(size="17Ti")), f"{BROKER_CLAIM}.size", NO_SIZE),
        (
            strimzi(volumeClaimTemplate=claim(storageClassName="Fast Disk")),
            f"{BROKER_CLAIM}.storageClassName",
            NO_CLASS_OF_STORAGE,
        ),
    ]
    for part in ("requests", "limits"):
        place = f"{BROKER_COMPUTE}.{part}"
        rows += [
            (strimzi(resources={part: {name: wrong}}), f"{place}.{name}", message)
            for name, wrong, message in WRONG_AMOUNTS
        ]
    for brokers, place, message in rows:
        yield Row(BROKERS, "spec.brokers", brokers, place, message)


UNSTEADY = {"jitterMicroseconds": 9}
WRONG_LINKS = (
    *(({"name": name}, "name", "must be lower-case letters, digits and hyphens, and") for name in ("5g", "LTE", "a-")),
    (link(up=UNSTEADY), "up", "jitterMicroseconds is more than delayMicroseconds"),
    (link(down=UNSTEADY), "down", "jitterMicroseconds is more than delayMicroseconds"),
    (link(trace={"configMapRef": {"name": "Drive"}}), "trace.configMapRef.name", NO_CONFIG_MAP),
)

ROWS = (
    Row(FILES, "metadata.name", "n" * 41, "", "metadata.name is longer than 40 characters: choose a shorter one"),
    Row(FILES, "metadata.name", "files.small", "", "metadata.name has a dot: write a hyphen instead"),
    Row(FILES, "spec.servers.nodeClassNames", ["Cloud"], "spec.servers.nodeClassNames[]", NO_CLASS),
    Row(FILES, "spec.servers.nodeClassNames", ["a.b"], "spec.servers.nodeClassNames[]", NO_CLASS),
    Row(FILES, "spec.clients.nodeClassNames", ["user-"], "spec.clients.nodeClassNames[]", NO_CLASS),
    *(Row(FILES, SIZES, [wrong], "spec.fileSizes[]", NO_SIZE) for wrong in WRONG_SIZES),
    Row(FILES, SIZES, ["17Ti"], "spec.fileSizes[]", NO_SIZE),
    Row(FILES, SIZES, [2**44 + 1], "spec.fileSizes[]", NO_SIZE),
    *(
        Row(model, LINKS, [value], f"{LINKS}[].{place}", message)
        for model in (FILES, BROKERS, NETWORKS)
        for value, place, message in WRONG_LINKS
    ),
    *(Row(BenchmarkResult, "spec.link", value, f"spec.link.{place}", message) for value, place, message in WRONG_LINKS),
    *(
        Row(model, LINKS, [link(trace=TRACE, down={"kilobitsPerSecond": 900})], LINKS, "a link has a trace or kilobits")
        for model in (FILES, BROKERS, NETWORKS)
    ),
    Row(FILES, "spec.retry", {"maxWaitMilliseconds": 999}, "spec.retry", "maxWaitMilliseconds is less"),
    *policy_rows(FILES),
    *policy_rows(BROKERS),
    *policy_rows(NETWORKS),
    *(row for model in (FILES, BROKERS, NETWORKS) for row in resource_rows(model)),
    Row(FILES, REFINE, {}, "spec", f"{BETWEEN_SIZES}fileSizes and two servers.nodeClassNames"),
    Row(BROKERS, REFINE, {}, "spec", f"{BETWEEN_SIZES}payload.sizes and two servers.nodeClassNames"),
    Row(BROKERS, "spec", on_external_broker(runPolicy={"refine": {}}), "spec", BETWEEN_SIZES),
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
    Row(BROKERS, "spec.servers.nodeClassNames", ["Cloud"], "spec.servers.nodeClassNames[]", NO_CLASS),
    Row(BROKERS, "spec.clients.nodeClassNames", ["user-"], "spec.clients.nodeClassNames[]", NO_CLASS),
    Row(
        BROKERS,
        "spec.clients.subscribers",
        {"type": "Separate", "nodeClassName": "a.b"},
        "spec.clients.subscribers.nodeClassName",
        NO_CLASS,
    ),
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
    Row(BROKERS, "spec.brokers", external(path="/a"), "spec.brokers", "external.path is only for protocol: HTTP"),
    *(
        Row(BROKERS, "spec.brokers", external(protocol="HTTP", path=wrong), "spec.brokers[].external.path", NO_URL_PATH)
        for wrong in ("", "readings", "/a b", "/a#b", "/%0d", "/a\n")
    ),
    Row(BROKERS, "spec.brokers", [{"name": "n", "http": {"images": ["1"]}}], "spec.brokers[].http.images[]", NO_IMAGE),
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
    Row(BROKERS, "spec.pacing", {"type": "ClosedLoop", "messagesPerSecond": 5}, "spec.pacing", ONE_PACE),
    Row(BROKERS, "spec.pacing", {"type": "OpenLoop"}, "spec.pacing", ONE_PACE),
    Row(BROKERS, "spec.load", {"messagesPerPublisher": 5, "durationSeconds": 5}, "spec.load", ONE_LOAD),
    Row(NETWORKS, "metadata.name", "n" * 41, "", "metadata.name is longer than 40 characters: choose a shorter one"),
    Row(NETWORKS, "metadata.name", "wifi.home", "", "metadata.name has a dot: write a hyphen instead"),
    Row(NETWORKS, "spec.servers.nodeClassNames", ["Cloud"], "spec.servers.nodeClassNames[]", NO_CLASS),
    Row(NETWORKS, "spec.servers", {}, "spec.servers", "names no server: set nodeClassNames, for example [cloud]"),
    Row(NETWORKS, "spec.servers.external", {"address": "iperf"}, "spec.servers.external.address", "is not an address"),
    Row(
        NETWORKS,
        "spec.tcp",
        {"congestionControl": ["Cubic"]},
        "spec.tcp.congestionControl[]",
        "is not the name of an algorithm: see `sysctl net.ipv4.tcp_allowed_congestion_control`",
    ),
    Row(NETWORKS, "spec.clients.nodeClassNames", ["user-"], "spec.clients.nodeClassNames[]", NO_CLASS),
    Row(
        NETWORKS,
        "spec.clients",
        {"nodeClassNames": ["a", "b"], "modes": ["Simultaneous"], "nodesPerClass": 9},
        "spec.clients",
        "more than 16 clients would measure at the same time: name fewer classes",
    ),
    Row(NETWORKS, "spec.protocols", ["TCP", "UDP"], "spec", "UDP needs a rate: write, for example, udp:"),
    Row(NETWORKS, "spec.trim", {"lowest": 5, "highest": 5}, "spec", "trim leaves no trial: raise repetitions above"),
    Row(NETWORKS, "spec.durationSeconds", 1789, "spec", "a trial takes longer than timeouts.trialSeconds: raise it"),
    Row(
        NETWORKS,
        "spec.ping",
        {"underLoad": True, "intervalMilliseconds": 9},
        "spec.ping",
        "underLoad needs a count above 0, and an intervalMilliseconds of at least 10",
    ),
    Row(
        NETWORKS,
        "spec.ping",
        {"underLoad": True, "count": 29},
        "spec",
        "the load is too short for ping.underLoad: raise durationSeconds",
    ),
    Row(CLASSES, "metadata.name", "jetson.nano", "", "metadata.name has a dot or more than 63 characters"),
    Row(CLASSES, "metadata.name", "n" * 64, "", "metadata.name has a dot or more than 63 characters"),
    Row(CLASSES, "spec.external", True, "spec", "needs nodeSelector, or external: true"),
    Row(CLASSES, "spec.invitations", [INVITATION], "spec", "has invitations, which only a class with external: true"),
    Row(CLASSES, "spec", {"external": True, "results": "Push"}, "spec", "has external: true, and so results: Auto"),
    Row(CLASSES, "spec", {}, "spec", "needs nodeSelector, or external: true"),
    Row(
        CLASSES,
        "spec",
        {"external": True, "invitations": [{**INVITATION, "tokenHash": "x"}]},
        "spec.invitations[].tokenHash",
        "is not a SHA-256 in hex",
    ),
    Row(
        CLASSES,
        "spec",
        {"external": True, "invitations": [{**INVITATION, "name": "My laptop"}]},
        "spec.invitations[].name",
        "is not the name of a member",
    ),
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
    Row(ADVICE, "spec.clientClassName", "User", "spec.clientClassName", NO_CLASS),
    Row(ADVICE, WORKLOAD, {}, WORKLOAD, "names no level: set fileSizes, as in [{size: 512Mi}]"),
    Row(ADVICE, WORKLOAD, {"fileSizes": [{"size": "1M"}], "payloadSize": "1Ki"}, WORKLOAD, MIXED),
    Row(ADVICE, WORKLOAD, {"fileSizes": [{"size": "1M"}], "delivery": "AtMostOnce"}, WORKLOAD, MIXED),
    Row(ADVICE, WORKLOAD, {"fileSizes": [{"size": "1M"}], "messagesPerSecond": 5}, WORKLOAD, MIXED),
    Row(ADVICE, WORKLOAD, {"levels": {"nodeClass": "cloud"}}, "spec", EITHER),
    Row(ADVICE, "spec", {**USER, "choose": ["delivery"], "workload": {"delivery": "AtMostOnce"}}, "spec", EITHER),
    Row(ADVICE, WORKLOAD_FILES, [{"size": "1MB"}], f"{WORKLOAD_FILES}[].size", NO_SIZE),
    Row(ADVICE, WORKLOAD_FILES, [{"size": "17Ti"}], f"{WORKLOAD_FILES}[].size", NO_SIZE),
    Row(ADVICE, WORKLOAD, {"payloadSize": "17Ti"}, f"{WORKLOAD}.payloadSize", NO_SIZE),
    Row(ADVICE, WORKLOAD, {"payloadSize": "1.5Ki"}, f"{WORKLOAD}.payloadSize", NO_SIZE),
    Row(ADVICE, OBJECTIVE, {"type": "Percentile"}, OBJECTIVE, PERCENTILE),
    Row(ADVICE, OBJECTIVE, {"type": "MeanTime", "percentile": "P99"}, OBJECTIVE, PERCENTILE),
    Row(ADVICE, MIN_RATE, "1MB", MIN_RATE, NO_SIZE),
    Row(ADVICE, MIN_RATE, "17Ti", MIN_RATE, NO_SIZE),
)
