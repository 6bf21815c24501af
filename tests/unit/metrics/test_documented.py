from pathlib import Path

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.metrics import test_broker
from tests.unit.metrics.test_metrics import filled, raw_benchmark, raw_result, said
from tierbench.metrics.family import render
from tierbench.metrics.operator import OperatorMetrics

TEXT = (Path(__file__).parents[3] / "docs/concepts/metrics.md").read_text()


def test_every_metric_is_explained_and_nothing_else() -> None:
    raw = raw_result()
    raw["status"]["counts"]["retryCauses"] = {"Stalled": 1}
    statistics = raw["status"]["statistics"]
    rest = ("serverIoPressurePartsPerMillion", "serverCpuPartsPerMillion", "tcpRetransmits", "tcpRoundTripNanoseconds")
    statistics |= dict.fromkeys(rest, statistics["durationNanoseconds"])
    metrics = OperatorMetrics()
    metrics.error("Conflict")
    held, cache = raw_benchmark(), filled(raw)
    held["status"]["conditions"] = [said("Passed", "True", "So"), said("Regressed", "False", "So")]
    cache.see_benchmark(held, deleted=False)
    text = (
        "".join(render([*cache.samples(), *test_broker.filled().samples()]))
        + generate_latest(metrics.registry).decode()
    )
    names = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in text_string_to_metric_families(text)
        if family.name.startswith("tierbench") and not family.name.endswith("_created")
    }
    explained = {word.strip("`,") for word in TEXT.split() if word.startswith("`tierbench_")}
    assert explained == names
