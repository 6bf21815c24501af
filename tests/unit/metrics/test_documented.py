from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.unit.metrics.everything import metrics_text

TEXT = (Path(__file__).parents[3] / "docs/concepts/metrics.md").read_text()


def test_every_metric_is_explained_and_nothing_else() -> None:
    names = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in text_string_to_metric_families(metrics_text())
        if family.name.startswith("tierbench") and not family.name.endswith("_created")
    }
    explained = {word.strip("`,") for word in TEXT.split() if word.startswith("`tierbench_")}
    assert explained == names
