"""Every metric with some value, as Prometheus reads it."""

from prometheus_client import generate_latest

from tests.unit.kinds.broker import test_metrics as test_broker
from tests.unit.kinds.network import test_metrics as test_network
from tests.unit.metrics.test_metrics import condition, filled, raw_benchmark, raw_result
from tests.unit.results.preflights import node_network
from tierbench.metrics.operator import OperatorMetrics
from tierbench.metrics.results import SampleCache, render


def metrics_text() -> str:
    """Returns the metrics of results of each kind and of the operator."""
    raw = raw_result()
    raw["spec"]["levels"] |= {"image": "2.0", "link": "lte"}
    raw["status"]["counts"]["retryCauses"] = {"Stalled": 1}
    statistics = raw["status"]["statistics"]
    rest = (
        "lookupNanoseconds", "serverIoPressurePartsPerMillion", "serverCpuPartsPerMillion", "tcpRetransmits",
        "tcpRoundTripNanoseconds",
    )  # fmt: skip
    statistics |= dict.fromkeys(rest, statistics["durationNanoseconds"])
    metrics = OperatorMetrics()
    metrics.count_error("Conflict")
    metrics.count_request("GET", 200)
    held, store = raw_benchmark(), filled(raw)
    held["status"]["conditions"] = [condition("Passed", "True", "So"), condition("Regressed", "False", "So")]
    held["status"]["run"]["networks"] = [node_network().to_json()]
    store.update_benchmark(held, deleted=False)
    stores = (store, test_broker.filled(), test_network.filled())
    results = "".join(render([found for one in stores for found in SampleCache().read(one.newest_runs())]))
    return results + generate_latest(metrics.registry).decode()
