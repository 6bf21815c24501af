"""What /metrics says of brokers."""

from typing import Any

from tests.unit.metrics.test_metrics import one, samples
from tests.unit.results.broker import line, measured, spec
from tierbench.metrics.cache import ResultCache


def raw_result() -> dict[str, Any]:
    """A result as the API server gives it."""
    status = measured(line(1), line(2, received=990, lost=10, tlsNanoseconds=2_000_000))
    metadata = {"name": "bb-demo-r1-c001", "namespace": "ns"}
    return {"metadata": metadata, "spec": spec(2).to_json(), "status": status.to_json()}


def filled() -> ResultCache:
    """A cache that has seen it, and its benchmark."""
    run = {"number": 1, "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T01:00:00Z"}
    status = {"observedGeneration": 1, "phase": "Complete", "run": run}
    cache = ResultCache()
    head = {"kind": "BrokerBenchmark", "metadata": {"name": "demo", "namespace": "ns"}}
    cache.see_benchmark({**head, "status": status}, deleted=False)
    cache.see(raw_result(), deleted=False)
    return cache


async def test_a_broker_as_prometheus_reads_it() -> None:
    found = await samples(filled())
    labels = {"broker": "mosquitto", "payload_size": "1024", "delivery": "AtLeastOnce", "server_class": "jetson"}
    assert one(found, "tierbench_broker_messages_sent", **labels) == 2000
    assert one(found, "tierbench_broker_messages_lost", **labels) == 10
    assert one(found, "tierbench_broker_throughput_messages_per_second", **labels) == 995
    assert one(found, "tierbench_broker_round_trip_seconds_count", **labels) == 8
    assert one(found, "tierbench_broker_round_trip_seconds_bucket", le="0.000244140625", **labels) == 2
    assert one(found, "tierbench_broker_tls_handshake_seconds", **labels) == 0.001
    assert one(found, "tierbench_broker_cpu_ratio", **labels) == 0.1
