"""What /metrics says of networks."""

from typing import Any

from tests.unit.metrics.test_metrics import one, samples
from tests.unit.results.network import flow, line, measured, spec
from tierbench.metrics.cache import ResultCache

TRIM = {"lowest": 1, "highest": 0}


def raw_results() -> list[dict[str, Any]]:
    """Results of TCP both ways, and of UDP, as the API server gives them."""
    ways: dict[str, Any] = {"upload": flow(40, retransmits=2), "download": flow(50, retransmits=3)}
    udp: dict[str, Any] = flow(9, packets=1000, lostPackets=100, outOfOrderPackets=3, jitterNanoseconds=250_000)
    found: list[dict[str, Any]] = []
    cases: tuple[tuple[dict[str, str], dict[str, Any]], ...] = (
        ({"direction": "Both"}, ways),
        ({"protocol": "UDP"}, {"upload": udp}),
    )
    for levels, flows in cases:
        status = measured(line(1, **flows), line(2, **flows), trim=TRIM, **levels)
        metadata = {"name": f"nb-demo-r1-c00{len(found)}", "namespace": "ns"}
        found.append({"metadata": metadata, "spec": spec(2, TRIM, **levels).to_json(), "status": status.to_json()})
    return found


def filled() -> ResultCache:
    """A cache that has seen them, and their benchmark."""
    run = {"number": 1, "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T01:00:00Z"}
    status = {"observedGeneration": 1, "phase": "Complete", "run": run}
    cache = ResultCache()
    head = {"kind": "NetworkBenchmark", "metadata": {"name": "demo", "namespace": "ns"}}
    cache.see_benchmark({**head, "status": status}, deleted=False)
    for raw in raw_results():
        cache.see(raw, deleted=False)
    return cache


async def test_a_network_as_prometheus_reads_it() -> None:
    found = await samples(filled())
    tcp = {"protocol": "TCP", "direction": "Both", "streams": "1", "client_class": "raspberry-pi-4"}
    assert one(found, "tierbench_network_throughput_bits_per_second", **tcp) == 90e6
    assert one(found, "tierbench_network_untrimmed_throughput_bits_per_second", **tcp) == 90e6
    assert one(found, "tierbench_network_download_bits_per_second", **tcp) == 50e6
    assert one(found, "tierbench_network_tcp_retransmits", **tcp) == 5
    assert one(found, "tierbench_network_ping_seconds_count", **tcp) == 6
    assert one(found, "tierbench_network_ping_seconds_bucket", le="0.001953125", **tcp) == 4
    assert one(found, "tierbench_network_ping_lost_ratio", **tcp) == 0
    assert one(found, "tierbench_network_server_process_cpu_ratio", **tcp) == 0.1
    udp = {"protocol": "UDP", "direction": "Upload"}
    assert one(found, "tierbench_network_udp_lost_ratio", **udp) == 0.1
    assert one(found, "tierbench_network_udp_jitter_seconds", **udp) == 0.00025
    networks = {"access_network": "ethernet", "client_access_network": "5g-sa"}
    assert one(found, "tierbench_result_info", **networks, **tcp) == 1
