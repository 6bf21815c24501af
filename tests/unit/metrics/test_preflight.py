"""What /metrics says of the network before the first case: a series a pair of nodes, however many cases there are."""

from prometheus_client.parser import text_string_to_metric_families

from tests.unit.metrics.test_metrics import filled, raw_benchmark, raw_result
from tests.unit.results.preflights import blocked, node_network
from tierbench.metrics.family import render
from tierbench.metrics.results import samples


def test_a_series_a_pair_and_none_of_what_is_not_known() -> None:
    held = raw_benchmark()
    held["status"]["run"]["networks"] = [node_network().to_json(), blocked().to_json()]
    store = filled(raw_result(fileSize="1Gi"))
    store.update_result(raw_result(fileSize="2Gi"), deleted=False)
    store.update_benchmark(held, deleted=False)
    found = {
        sample.name: (sample.labels["server_node"], sample.labels["client_node"], sample.value)
        for family in text_string_to_metric_families("".join(render(samples(store))))
        for sample in family.samples
        if sample.name.startswith("tierbench_preflight")
    }
    assert found == {
        "tierbench_preflight_upload_bits_per_second": ("cloud-1", "user-1", 90e6),
        "tierbench_preflight_download_bits_per_second": ("cloud-1", "user-1", 80e6),
        "tierbench_preflight_ping_mean_seconds": ("cloud-1", "user-1", 0.0005),
        "tierbench_preflight_ping_lost_ratio": ("cloud-1", "user-1", 0.1),
    }
