"""Alternatives are classes, settings or combinations of them."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pytest

from benchmarks.calibrate.simulate import Point, run
from tests.unit.advice.questions import answered, ask, reasons
from tests.unit.report.published import measured
from tierbench.advice.answer import describe_run
from tierbench.advice.selection import Choice, alternative_name, relabelled_run
from tierbench.advice.tables import runs
from tierbench.api.advice_answer import PlacementAdviceStatus, Verdict
from tierbench.api.node_class import NodeClass
from tierbench.api.result import BenchmarkResult

Places = Mapping[Any, float]
"""Means by class, size and further levels."""
_SPREAD = (0.99, 1.0, 1.0, 1.01)


def results(names: Sequence[str], means: Places) -> list[BenchmarkResult]:
    """Returns a result with a mean for each class, size and level of each name."""
    return [
        measured(server, size, [(mean * step, 0) for step in _SPREAD], case, levels=_levels(names, rest))
        for case, ((server, size, *rest), mean) in enumerate(means.items(), start=1)
    ]


def _levels(names: Sequence[str], levels: Sequence[str]) -> dict[str, str]:
    return {name: level for name, level in zip(names, levels, strict=True) if level}


def ranked(status: PlacementAdviceStatus) -> list[tuple[str, str]]:
    return [(item.name, item.verdict.value) for item in status.ranking]


BROKERS = {
    ("cloud", "1M", "mosquitto"): 1.0,
    ("cloud", "1M", "kafka"): 2.0,
    ("cloud", "100M", "mosquitto"): 20.0,
    ("cloud", "100M", "kafka"): 10.0,
}
SMALL = {"levels": {"fileSize": "1M"}}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"nodeClass": "cloud"}, "cloud"),
        ({"broker": "mosquitto", "delivery": "AtMostOnce"}, "mosquitto with delivery AtMostOnce"),
        ({"tls": "None", "nodeClass": "edge", "broker": "kafka", "compression": "GZIP"},
         "kafka on edge with TLS None and compression GZIP"),
        ({"tls": "TLSv1.3"}, "TLSv1.3"),
        ({"broker": "mosquitto", "image": "2.0"}, "mosquitto with image 2.0"),
        ({"pairs": "4", "batchSize": "1Mi"}, "pairs 4 and 1 MiB"),
    ],
)  # fmt: skip
def test_name_of_an_alternative_lists_its_settings(settings: dict[str, str], words: str) -> None:
    assert alternative_name(settings) == words


def test_relabelled_result_has_its_class_as_a_level() -> None:
    one = results(["broker", "tls"], {("cloud", "1M", "kafka", "None"): 1.0})[0]
    (relabelled,) = Choice(("broker",), [one]).relabel([one])
    assert (relabelled.spec.server.node_class, relabelled.spec.server.node) == ("kafka", "cloud-1")
    assert relabelled.spec.levels == {"nodeClass": "cloud", "fileSize": "1M", "tls": "None"}
    assert Choice(("nodeClass",), [one]).relabel([one]) == (one,)


def test_advice_on_brokers_has_settings_and_no_affinity() -> None:
    status = ask(results(["broker"], BROKERS), choose=["broker"], workload=SMALL)
    assert (status.best, status.runner_up, status.settings) == ("mosquitto", "kafka", {"broker": "mosquitto"})
    assert (answered(status), status.node_affinity) == (("True", "ShownBetter"), None)
    assert status.answer.startswith("mosquitto is best for 1 MB, by transfer time: 50% ahead of kafka")
    assert "This holds for other nodes unless they change the difference by more than about" in status.answer
    assert "It is the best choice with a probability" in status.answer
    assert status.comparison.endswith("between choices, on the nodes measured")


def test_advice_on_brokers_has_their_crossover() -> None:
    status = ask(results(["broker"], BROKERS), choose=["broker"])
    (found,) = status.crossovers
    assert (found.ahead_below, found.ahead_above) == ("mosquitto", "kafka")
    assert (found.factor, found.lower_level, found.upper_level) == ("fileSize", "1M", "100M")


CLASS: Any = {"metadata": {"name": "jetson"}, "spec": {"nodeSelector": {"matchLabels": {"hw": "jetson"}}}}


def test_three_dimensions_name_a_class_and_its_settings() -> None:
    """The best combination is not the best by any single dimension."""
    means = {
        (server, "1M", broker, tls): 1.0 + (server == "cloud") + (broker == "kafka") + (tls == "TLSv1.3")
        for server, broker, tls in product(("cloud", "jetson"), ("mosquitto", "kafka"), ("None", "TLSv1.3"))
    }
    means["jetson", "1M", "kafka", "TLSv1.3"] = 0.5
    classes = [NodeClass.model_validate(CLASS)]
    status = ask(results(["broker", "tls"], means), classes, choose=["nodeClass", "broker", "tls"], workload=SMALL)
    assert status.best == "kafka on jetson with TLSv1.3"
    assert status.settings == {"broker": "kafka", "tls": "TLSv1.3"}
    assert len(status.ranking) == 8
    assert status.node_affinity is not None
    (term,) = status.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
    assert [(each.key, each.values) for each in term.match_expressions] == [("hw", ("jetson",))]


def test_class_is_held_equal_if_it_is_not_chosen() -> None:
    """Kafka was measured on the slower class only, and is faster there. With pooled classes it would be slower."""
    means = {("cloud", "1M", "mosquitto"): 1.0, ("jetson", "1M", "mosquitto"): 9.0, ("jetson", "1M", "kafka"): 6.0}
    status = ask(results(["broker"], means), choose=["broker"], workload=SMALL)
    assert ranked(status) == [("kafka", "Best"), ("mosquitto", "Worse")]
    assert "LevelsLeftOut" in reasons(status.caveats)
    cloud = ask(results(["broker"], means), choose=["broker"], workload={"levels": {"nodeClass": "cloud"}})
    assert ranked(cloud)[0] == ("mosquitto", "NoData")


def test_constraint_excludes_a_setting() -> None:
    found = results(["broker"], BROKERS)
    status = ask(found, choose=["broker"], workload=SMALL, constraints={"maxMeanMilliseconds": 1500})
    assert ranked(status) == [("mosquitto", "Best"), ("kafka", "Infeasible")]
    assert "kafka violates a constraint" in status.ranking[0].message


CODECS = {
    ("cloud", "1M", "mosquitto", ""): 1.0,
    ("cloud", "1M", "kafka", "None"): 2.0,
    ("cloud", "1M", "kafka", "LZ4"): 0.5,
}


def test_factor_of_one_broker_is_part_of_its_alternative() -> None:
    status = ask(results(["broker", "codec"], CODECS), choose=["broker"], workload=SMALL)
    assert [name for name, _ in ranked(status)] == ["kafka with codec LZ4", "mosquitto", "kafka with codec None"]
    assert status.settings == {"broker": "kafka", "codec": "LZ4"}
    fixed = {place: mean for place, mean in CODECS.items() if "LZ4" not in place}
    assert ask(results(["broker", "codec"], fixed), choose=["broker"], workload=SMALL).best == "mosquitto"


def test_factor_without_results_cannot_be_chosen() -> None:
    status = ask(results(["broker"], BROKERS), choose=["codec"])
    assert answered(status) == ("False", "NothingToChoose")
    assert status.answer == "No result has codec. You can choose nodeClass or broker."


def test_too_many_alternatives_have_no_answer() -> None:
    many = {("cloud", "1M", str(pairs)): 1.0 for pairs in range(1, 66)}
    assert answered(ask(results(["pairs"], many), choose=["pairs"])) == ("False", "TooManyAlternatives")


def test_differences_between_nodes_do_not_hide_a_difference_of_settings() -> None:
    """One node is twice as fast as another, and both brokers are 10% apart on each."""
    means = {
        (server, "1M", broker): base * (1.1 if broker == "kafka" else 1.0)
        for server, base in (("cloud", 1.0), ("jetson", 2.0))
        for broker in ("mosquitto", "kafka")
    }
    found = [
        result.model_copy(update={"spec": result.spec.model_copy(update={
            "server": result.spec.server.model_copy(update={"node_class": "cloud"})})})
        for result in results(["broker"], means)
    ]  # fmt: skip
    status = ask(found, choose=["broker"], workload=SMALL)
    assert ranked(status) == [("mosquitto", Verdict.BEST), ("kafka", Verdict.WORSE)]
    assert (status.ranking[0].nodes, status.comparison.split()[-1]) == (2, "choices")


def test_versions_are_part_of_the_alternative_of_their_broker() -> None:
    means = {
        ("cloud", "1M", "mosquitto", "1.6.9"): 2.0,
        ("cloud", "1M", "mosquitto", "default"): 1.0,
        ("cloud", "1M", "kafka", ""): 3.0,
    }
    found = results(["broker", "image"], means)
    status = ask(found, choose=["broker"], workload=SMALL)
    assert [item.name for item in status.ranking] == [
        "mosquitto with image default", "mosquitto with image 1.6.9", "kafka"
    ]  # fmt: skip
    assert ask(found[:2], choose=["image"], workload=SMALL).settings == {"image": "default"}
    (run_of_one_broker,) = runs(found[:2])
    assert describe_run(relabelled_run(run_of_one_broker)).startswith("On the nodes measured, image default is ahead")


def test_paired_settings_have_the_coverage_of_their_intervals() -> None:
    found = run(Point((3, 3), tau=0.01, levels=3, ratios=(1.0, 1.1), shared=0.1), 40, 11)
    assert found.right.share >= 0.9
    assert min(found.workload_coverage.share, found.level_coverage.share) >= 0.9


def test_run_of_one_class_compares_the_setting_that_varies() -> None:
    (only,) = runs(results(["broker"], BROKERS))
    assert describe_run(relabelled_run(only)) == (
        "On the nodes measured, mosquitto is ahead at 1 MB, by 50%; kafka is ahead at 100 MB, by 50%."
    )
    numbers = {("cloud", "1M", "1"): 1.0, ("cloud", "1M", "4"): 2.0}
    (load,) = runs(results(["concurrency"], numbers))
    assert relabelled_run(load) == load
    classes = {("cloud", "1M", "kafka"): 1.0, ("jetson", "1M", "mosquitto"): 1.0}
    (several,) = runs(results(["broker"], classes))
    assert relabelled_run(several) is several
