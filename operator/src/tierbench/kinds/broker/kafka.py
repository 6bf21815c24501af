"""Apache Kafka on a node: one broker that is its own controller, sized by the node, with a complete configuration."""

from collections.abc import Sequence
from typing import Any, Final

from tierbench.api.quantity import format_size, parse_size
from tierbench.kinds.broker.client_spec import most_publishers
from tierbench.kinds.broker.server import (
    ACCOUNT_FOLDER,
    CONFIGURATION,
    DATA,
    MUTUAL,
    BrokerServer,
    share,
    storage_size,
    tls_credentials,
)
from tierbench.kinds.broker.server_spec import Kafka, KafkaFactors
from tierbench.kinds.broker.spec import BrokerSpec
from tierbench.workloads.plan import Factor
from tierbench.workloads.pods import CA, CREDENTIALS, SERVER_NAME
from tierbench.workloads.workload import NodeSize, ServerInstance

PORTS: Final = {"kafka": 9092, "kafkas": 9093}
MUTUAL_PORTS: Final = {f"kafkas{MUTUAL}": 9096}
CODEC: Final = "codec"
PARTITIONS: Final = "partitions"
LINGER: Final = "lingerMilliseconds"
BATCH_SIZE: Final = "batchSize"

_INTERNAL_PORT: Final = 9094
_CONTROLLER_PORT: Final = 9095
_CLUSTER_ID: Final = "dGllcmJlbmNoLWthZmthMQ"
_ACCOUNT: Final = "kafka-account"
_MEBIBYTE: Final = 2**20
_LEAST_HEAP: Final = 128 * _MEBIBYTE
_MOST_HEAP: Final = 1024 * _MEBIBYTE
_SEGMENT: Final = 64 * _MEBIBYTE
_LARGEST_BATCH: Final = 17 * _MEBIBYTE
_TMP: Final = "/tmp"  # noqa: S108 (a volume of the pod's own: native codecs are unpacked there)

# As in Kafka's own scripts. A broker that runs out of memory exits, so that the operator notices.
_JAVA: Final = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExitOnOutOfMemoryError",
    f"-Dlog4j2.configurationFile={CONFIGURATION}/log4j2.properties",
    "-cp",
    "/opt/kafka/libs/*",
)
_LOGGING: Final = """\
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{ISO8601} %p %c{1}: %m%n
rootLogger.level=warn
rootLogger.appenderRef.console.ref=console
"""
_PROTOCOLS: Final = {
    "KAFKA": "SASL_PLAINTEXT",
    "KAFKAS": "SASL_SSL",
    "KAFKAS-MUTUAL": "SASL_SSL",
    "INTERNAL": "PLAINTEXT",
    "CONTROLLER": "PLAINTEXT",
}
_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_FILES: Final = {
    "config.providers": "files",
    "config.providers.files.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
}
_TLS: Final = {
    "keystore.type": "PEM",
    "keystore.key": f"${{files:{CREDENTIALS}:tls.key}}",
    "keystore.certificate.chain": f"${{files:{CREDENTIALS}:tls.crt}}",
    "enabled.protocols": "TLSv1.2,TLSv1.3",
}
_MUTUAL: Final = {
    "client.auth": "required",
    "truststore.type": "PEM",
    "truststore.certificates": f"${{files:{CREDENTIALS}:{CA}}}",
}


def kafka_factors(factors: KafkaFactors) -> tuple[Factor, ...]:
    """Returns the factors that only the clients of Kafka have."""
    return (
        Factor(CODEC, tuple(level.value for level in factors.codecs)),
        Factor(PARTITIONS, tuple(map(str, factors.partitions))),
        Factor(LINGER, tuple(map(str, factors.linger_milliseconds))),
        Factor(BATCH_SIZE, factors.batch_sizes),
    )


def kafka_settings(kafka: Kafka, spec: BrokerSpec, size: NodeSize) -> dict[str, str]:
    """Returns the settings that tierbench chooses: heap and storage, and others by the names of server.properties.

    A log keeps twice the messages in flight, because messages are read at once, and the node's disk must not fill up.
    Messages have the times of the clients, whose clocks may be off. So none is refused or removed because of its time.
    The kernel chooses socket buffers, or a long path would be slow for one broker only. A killed broker is not admitted
    again until its session ends: the default of 9 s is most of the clients' timeout.
    """
    return {
        "heap": format_size(heap_size(kafka, size)),
        "storage": format_size(storage_size(size)),
        "log.segment.bytes": str(_segment(spec, size)),
        "log.retention.bytes": str(_retention(spec, size)),
        "log.retention.check.interval.ms": "1000",
        "log.retention.ms": "-1",
        "log.message.timestamp.after.max.ms": str(2**63 - 1),
        "log.segment.delete.delay.ms": "1000",
        "log.cleaner.dedupe.buffer.size": str(16 * _MEBIBYTE),
        "message.max.bytes": str(_LARGEST_BATCH),
        "socket.send.buffer.bytes": "-1",
        "socket.receive.buffer.bytes": "-1",
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "1000",
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }


def heap_size(kafka: Kafka, size: NodeSize) -> int:
    """Returns the bytes of the Java heap."""
    if kafka.heap is not None:
        return parse_size(kafka.heap)
    return share(size.memory_bytes, _LEAST_HEAP, _MOST_HEAP)


def _segment(spec: BrokerSpec, size: NodeSize) -> int:
    """Returns the bytes of a file of a partition's log.

    A log keeps whole files. So many partitions have smaller files, and most of the storage stays free. A batch must fit
    into one file.
    """
    factors = spec.kafka_clients
    logs = max(spec.pairs) * max(factors.partitions)
    largest = max(spec.payload.largest_bytes, *map(parse_size, factors.batch_sizes)) + _MEBIBYTE
    return min(_SEGMENT, max(largest, storage_size(size) // 8 // logs))


def _retention(spec: BrokerSpec, size: NodeSize) -> int:
    in_flight = spec.max_in_flight * most_publishers(spec.groups)
    return 2 * max(_segment(spec, size), in_flight * spec.payload.largest_bytes)


def _properties(kafka: Kafka, spec: BrokerSpec, size: NodeSize, tls: bool) -> str:
    """Returns the complete server.properties.

    Clients know the one broker by SERVER_NAME, and reach it at the address that `access` decides. Traffic of the broker
    to itself stays on loopback.
    """
    ports = (PORTS if tls else {"kafka": PORTS["kafka"]}) | (MUTUAL_PORTS if spec.tls_clients.required else {})
    loopback = {"INTERNAL": _INTERNAL_PORT, "CONTROLLER": _CONTROLLER_PORT}
    listeners = [f"{name.upper()}://:{port}" for name, port in ports.items()]
    internal = [f"{name}://127.0.0.1:{port}" for name, port in loopback.items()]
    advertised = [f"{name.upper()}://{SERVER_NAME}:{port}" for name, port in ports.items()]
    set_on_purpose = kafka_settings(kafka, spec, size)
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{_CONTROLLER_PORT}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "INTERNAL",
        "listeners": ",".join([*listeners, *internal]),
        "advertised.listeners": ",".join([*advertised, internal[0]]),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in _PROTOCOLS.items()),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        **{f"listener.name.{name}.scram-sha-512.sasl.jaas.config": _SCRAM for name in ports},
        **_tls_properties([name for name in ports if _PROTOCOLS[name.upper()] == "SASL_SSL"]),
        "log.dirs": f"{DATA}/kafka",
        **{name: value for name, value in set_on_purpose.items() if "." in name},
    }
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def _tls_properties(listeners: Sequence[str]) -> dict[str, str]:
    """Returns the properties of listeners with TLS."""
    return (_FILES if listeners else {}) | {
        f"listener.name.{name}.ssl.{key}": value
        for name in listeners
        for key, value in (_TLS | (_MUTUAL if name in MUTUAL_PORTS else {})).items()
    }


def kafka_server(kafka: Kafka, spec: BrokerSpec, image: str, instance: ServerInstance, tls: bool) -> BrokerServer:
    """Returns Kafka as it is deployed. An init container formats its storage with the clients' account."""
    heap = heap_size(kafka, instance.size) // _MEBIBYTE
    properties = f"{CONFIGURATION}/server.properties"
    return BrokerServer(
        name="kafka",
        image=image,
        command=("java", f"-Xms{heap}m", f"-Xmx{heap}m", *_JAVA, "kafka.Kafka", properties),
        process="java",
        ports={**PORTS, **(MUTUAL_PORTS if spec.tls_clients.required else {})},
        files={"server.properties": _properties(kafka, spec, instance.size, tls), "log4j2.properties": _LOGGING},
        requests={"cpu": "50m", "memory": "128Mi"},
        before=(_format(properties),),
        volumes=(_TMP,),
        credentials=tls_credentials(tls, spec.tls_clients.required),
        account=_ACCOUNT,
    )


def _format(properties: str) -> dict[str, Any]:
    """Returns the init container that formats the storage. It reads the account from a file, because anybody on the
    node can read arguments."""
    account = f"@{ACCOUNT_FOLDER}/{_ACCOUNT}"
    words = ["--ignore-formatted", "--cluster-id", _CLUSTER_ID, "--config", properties, "--add-scram", account]
    return {
        "name": "format",
        "command": ["java", "-Xmx64m", "-XX:+UseSerialGC", *_JAVA[-3:], "kafka.tools.StorageTool", "format", *words],
    }
