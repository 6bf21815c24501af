"""Metrics of networks."""

from typing import Any

from tests.unit.kinds.network.test_clients import NODES, shared
from tests.unit.kinds.network.trials import flow, line, loaded, spec
from tests.unit.metrics.test_metrics import one, samples
from tests.unit.results.trials import NOW
from tierbench.api.contract import TrialLine
from tierbench.api.record import RecordStatus
from tierbench.domain.results import ResultStore
from tierbench.results.aggregate import add_trials, conclude
from tierbench.results.client_output import PartOutput, merge_parts

TCP = {"samples": 10, "statesPartsPerMillion": {"Open": 750_000, "Loss": 250_000}, "events": {"TCPTimeouts": 2}}
TRIM = {"lowest": 1, "highest": 0}


def raw_result(*trials: tuple[TrialLine, ...], **levels: str) -> dict[str, Any]:
    """Returns a result of these trials, each with one line per client, as the API server returns it."""
    parts = [PartOutput(lines) for lines in zip(*trials, strict=True)]
    nodes = NODES if len(parts) > 1 else ()
    wanted = spec(len(trials), TRIM, **levels).model_copy(update={"clients": nodes})
    status = conclude(wanted, add_trials(wanted, RecordStatus(), merge_parts(parts), 1), NOW, None)
    name = "-".join(levels.values()).lower()
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": wanted.to_json(), "status": status.to_json()}


def raw_results() -> list[dict[str, Any]]:
    """Returns TCP both ways, UDP, requested congestion control, ping under load, and simultaneous clients."""
    ways: dict[str, Any] = {"upload": flow(40, retransmits=2, tcp=TCP), "download": flow(50, retransmits=3)}
    udp: dict[str, Any] = flow(9, packets=1000, lostPackets=100, outOfOrderPackets=3, jitterNanoseconds=250_000)
    return [
        raw_result((line(1, **ways),), (line(2, **ways),), direction="Bidirectional"),
        raw_result((line(1, upload=udp),), (line(2, upload=udp),), protocol="UDP"),
        raw_result((line(1),), (line(2),), congestionControl="bbr", clientMode="Alone"),
        raw_result((loaded(1, 40, 60),), (loaded(2, 50),), streams="2"),
        raw_result(*((shared(number, 60), shared(number, 30), shared(number, 10)) for number in (1, 2)), streams="4"),
    ]


def filled() -> ResultStore:
    """A store with these results and their benchmark."""
    run = {"number": 1, "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T01:00:00Z"}
    status = {"observedGeneration": 1, "phase": "Complete", "run": run}
    store = ResultStore()
    head = {"kind": "NetworkBenchmark", "metadata": {"name": "demo", "namespace": "ns"}}
    store.update_benchmark({**head, "status": status}, deleted=False)
    for raw in raw_results():
        store.update_result(raw, deleted=False)
    return store


async def test_prometheus_reads_metrics_of_a_network() -> None:
    found = await samples(filled())
    tcp = {"protocol": "TCP", "direction": "Bidirectional", "streams": "1", "client_class": "raspberry-pi-4"}
    assert one(found, "tierbench_network_throughput_bits_per_second", **tcp) == 90e6
    assert one(found, "tierbench_network_untrimmed_throughput_bits_per_second", **tcp) == 90e6
    assert one(found, "tierbench_network_download_bits_per_second", **tcp) == 50e6
    assert one(found, "tierbench_network_sent_bits_per_second", **tcp) == 92e6
    assert one(found, "tierbench_network_tcp_retransmits", **tcp) == 5
    assert one(found, "tierbench_network_tcp_not_open_ratio", **tcp) == 0.25
    assert one(found, "tierbench_network_ping_seconds_count", **tcp) == 6
    assert one(found, "tierbench_network_ping_seconds_bucket", le="0.001953125", **tcp) == 4
    assert one(found, "tierbench_network_ping_lost_ratio", **tcp) == 0
    assert one(found, "tierbench_network_server_process_cpu_ratio", **tcp) == 0.1
    udp = {"protocol": "UDP", "direction": "Upload"}
    assert one(found, "tierbench_network_udp_lost_ratio", **udp) == 0.1
    assert one(found, "tierbench_network_udp_jitter_seconds", **udp) == 0.00025
    alone = {"congestion_control": "bbr", "client_mode": "Alone"}
    assert one(found, "tierbench_network_throughput_bits_per_second", **alone) == 90e6
    networks = {"server_access_network": "ethernet", "client_access_network": "5g-sa"}
    assert one(found, "tierbench_result_info", **networks, **tcp) == 1
    under_load = {"streams": "2"}
    assert one(found, "tierbench_network_ping_mean_seconds", **under_load) == 0.001967
    assert one(found, "tierbench_network_ping_under_load_mean_seconds", **under_load) == 0.05
    assert one(found, "tierbench_network_ping_increase_seconds", **under_load) == 0.048033
    assert one(found, "tierbench_network_ping_under_load_lost_ratio", **under_load) == 0.666667
    assert one(found, "tierbench_network_ping_under_load_seconds_count", **under_load) == 3
    several = {"streams": "4"}
    assert one(found, "tierbench_network_fairness_ratio", **several) == 0.724638
    second = {"client": "2", "share_class": "jetson", "share_node": "jetson-1"}
    assert one(found, "tierbench_network_client_throughput_bits_per_second", **second, **several) == 30e6
