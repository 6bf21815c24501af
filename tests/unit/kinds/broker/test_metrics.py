"""Metrics of brokers."""

from typing import Any

import pytest

from tests.unit.kinds.broker.trials import line, measured, spec
from tests.unit.metrics.test_metrics import one, samples
from tierbench.api.result import BenchmarkResult
from tierbench.domain.results import ResultStore
from tierbench.metrics.results import result_samples

OF_THE_WIRE = {
    "wireBytesPerMessage": 300,
    "wirePacketsPerMessagePartsPerMillion": 31_250,
    "setupBytes": 5000,
    "setupPackets": 20,
}
KAFKA = {
    "broker": "kafka",
    "groups": "1:8",
    "codec": "Lz4",
    "partitions": "4",
    "lingerMilliseconds": "5",
    "batchSize": "16Ki",
}


def raw_result(case: int = 1, **levels: str) -> dict[str, Any]:
    """Returns a result as the API server returns it."""
    batches = {"batches": 10, "batchBytes": 500_000} if "codec" in levels else {}
    wire = {"wireSentBytes": 1_650_000, "wireReceivedBytes": 1_650_000, "sessionNanoseconds": 11 * 10**8}
    codecs = {"compressNanoseconds": 2 * 10**6, "decryptNanoseconds": 10**6}
    more = batches | wire | codecs
    first, second = ({"connectNanoseconds": 10**6, "tlsNanoseconds": took} for took in (0, 2_000_000))
    status = measured(line(1, **first, **more), line(2, received=990, lost=10, **second, **more))
    metadata = {"name": f"bb-demo-r1-c{case:03d}", "namespace": "ns"}
    raw = {"metadata": metadata, "spec": spec(2, **levels).to_json(), "status": status.to_json()}
    statistics = raw["status"]["statistics"]
    for name, value in {**OF_THE_WIRE, "pairFairnessPartsPerMillion": 900_000}.items():
        statistics[name] = statistics["durationNanoseconds"] | {"mean": value}
    return raw


def filled() -> ResultStore:
    """A store with two results and their benchmark."""
    run = {"number": 1, "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T01:00:00Z"}
    status = {"observedGeneration": 1, "phase": "Complete", "run": run}
    store = ResultStore()
    head = {"kind": "BrokerBenchmark", "metadata": {"name": "demo", "namespace": "ns"}}
    store.update_benchmark({**head, "status": status}, deleted=False)
    store.update_result(raw_result(mqttVersion="5", handshake="Resumed", certificate="Required"), deleted=False)
    store.update_result(raw_result(2, **KAFKA), deleted=False)
    return store


async def test_prometheus_reads_metrics_of_a_broker() -> None:
    found = await samples(filled())
    labels = {
        "broker": "mosquitto",
        "mqtt_version": "5",
        "payload_size": "1024",
        "delivery": "AtLeastOnce",
        "server_class": "jetson",
    }
    assert one(found, "tierbench_broker_messages_sent", **labels) == 2000
    assert one(found, "tierbench_broker_messages_lost", **labels) == 10
    assert one(found, "tierbench_broker_throughput_messages_per_second", **labels) == 995
    assert one(found, "tierbench_broker_round_trip_seconds_count", **labels) == 8
    assert one(found, "tierbench_broker_round_trip_seconds_bucket", le="0.000244140625", **labels) == 2
    assert one(found, "tierbench_broker_tls_handshake_seconds", **labels) == 0.001
    assert one(found, "tierbench_broker_wire_bytes", **labels) == 3_300_000
    assert one(found, "tierbench_broker_wire_throughput_bytes_per_second", **labels) == 3_000_000
    assert one(found, "tierbench_broker_cpu_ratio", **labels) == 0.1
    assert one(found, "tierbench_broker_wire_bytes_per_message", **labels) == 300
    assert one(found, "tierbench_broker_wire_packets_per_message", **labels) == 0.03125
    assert one(found, "tierbench_broker_setup_bytes", **labels) == 5000
    assert one(found, "tierbench_broker_setup_packets", **labels) == 20
    assert one(found, "tierbench_broker_fairness_ratio", **labels) == 0.9


async def test_codec_times_are_per_message() -> None:
    found = await samples(filled())
    assert one(found, "tierbench_broker_compress_seconds", broker="mosquitto") == 2e-6
    assert one(found, "tierbench_broker_decrypt_seconds", broker="mosquitto") == pytest.approx(2 * 10**-3 / 1990)
    assert one(found, "tierbench_broker_encrypt_seconds", broker="mosquitto") == 0


def test_quantities_absent_from_a_result_have_no_metric() -> None:
    raw = raw_result()
    for name in (*OF_THE_WIRE, "pairFairnessPartsPerMillion"):
        del raw["status"]["statistics"][name]
    del raw["status"]["totals"]
    reported = {family.name for family in result_samples(BenchmarkResult.model_validate(raw)).families}
    assert not [name for name in reported if name.endswith(("_message", "_setup_bytes", "_packets", "fairness_ratio"))]
    assert not [name for name in reported if "compress" in name or "crypt" in name]


async def test_own_messages_have_a_content_and_no_size() -> None:
    raw = raw_result(content="sensor")
    del raw["spec"]["levels"]["payloadSize"]
    labels = result_samples(BenchmarkResult.model_validate(raw)).labels
    assert 'content="sensor"' in labels
    assert "payload_size" not in labels


async def test_prometheus_reads_metrics_of_kafka() -> None:
    found = await samples(filled())
    labels = {"broker": "kafka", "codec": "Lz4", "partitions": "4", "linger_milliseconds": "5", "batch_size": "16384"}
    assert one(found, "tierbench_broker_messages_sent", **labels) == 2000
    assert one(found, "tierbench_broker_batch_messages", **labels) == 100
    assert one(found, "tierbench_broker_batch_bytes", **labels) == 50_000
    assert one(found, "tierbench_broker_acknowledge_mean_seconds", **labels) == pytest.approx(0.0002)
