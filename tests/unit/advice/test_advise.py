"""Answers to questions: the best class, the ranking and the numbers."""

from typing import Any

import pytest

from tests.unit.advice.questions import (
    FAST,
    ONE_NODE,
    SLOW,
    answered,
    ask,
    edited,
    nodes,
    reasons,
    sizes,
    two_nodes,
    verdicts,
)
from tests.unit.report.published import LEVELS, measured, published
from tests.unit.report.test_page import result_of_kind
from tierbench.api.advice_answer import Confidence, PlacementAdviceStatus
from tierbench.api.node_class import NodeClass
from tierbench.api.result import BenchmarkResult


@pytest.mark.parametrize(
    ("workload", "best", "margin"),
    [
        (sizes("1Mi"), "cloud", "47%"),
        (sizes("512Mi", "2Gi"), "jetson", "12%"),
        (sizes("3Gi"), "cloud", "14%"),
        (sizes("5120Mi"), "cloud", "16%"),
        (sizes(**{"512Mi": 99, "3Gi": 1}), "jetson", "12%"),
        (sizes(**{"512Mi": 1, "3Gi": 9}), "cloud", "14%"),
    ],
)
def test_best_published_class_depends_on_the_workload(workload: dict[str, Any], best: str, margin: str) -> None:
    status = ask(published(), workload=workload)
    assert (status.best, status.margin, status.quantity) == (best, margin, "durationNanoseconds")
    assert answered(status) == ("True", "ShownBetter")
    assert [(item.ahead_below, item.ahead_above) for item in status.crossovers] == [
        ("cloud", "jetson"),
        ("jetson", "cloud"),
    ]


def test_answer_has_words_and_numbers() -> None:
    status = ask(published(), workload=sizes("512Mi", "2Gi"))
    assert status.answer == (
        "jetson is best for 512 MiB and 2 GiB, by transfer time: 12% ahead of cloud (ratio 0.876, 95% CI 0.818–0.938, "
        "on the nodes measured). This holds for the classes unless their nodes differ by more than about 5%. It is the "
        "best class with a probability of 91%; the expected loss of choosing it is 2%, if nodes differ as they "
        "usually do. On the nodes measured, cloud is ahead at 1 MiB, by 47%; jetson is ahead from 512 MiB to 2 GiB, "
        "by 12–14%; cloud is ahead from 3 GiB on, by 14–16%. Retries occurred only on jetson, from 3 GiB on (38 in "
        "total)."
    )
    assert (status.tolerated_node_deviation, status.expected_loss) == ("5%", "2%")
    assert status.comparison == "ratio of means of transfer time for 512 MiB and 2 GiB, between the nodes measured"
    best, other = status.ranking
    assert (best.value, other.value) == (12_108_000_000, 13_819_500_000)
    assert best.confidence_low is not None and best.confidence_low < 12_108_000_000
    assert (best.nodes, best.trials, best.retries) == (1, 20, 0)
    assert best.margin_parts_per_million == other.margin_parts_per_million


def test_without_a_workload_classes_are_compared_by_throughput() -> None:
    status = ask(published())
    assert status.quantity == "throughputBytesPerSecond"
    assert "NoWorkload" in reasons(status.caveats)


@pytest.mark.parametrize(
    ("objective", "quantity", "best"),
    [
        ({"type": "MeanTime"}, "durationNanoseconds", "cloud"),
        ({"type": "Percentile", "percentile": "P50"}, "durationP50Nanoseconds", "cloud"),
        ({"type": "Percentile", "percentile": "P99"}, "durationP99Nanoseconds", ""),
        ({"type": "Throughput"}, "throughputBytesPerSecond", "cloud"),
        ({"type": "Retries"}, "retriesPerTrialPartsPerMillion", "cloud"),
    ],
)
def test_objective_selects_the_quantity(objective: dict[str, str], quantity: str, best: str) -> None:
    status = ask(published(), workload=sizes("4Gi"), objective=objective)
    assert (status.quantity, status.best) == (quantity, best)


def test_inconclusive_answer_has_an_expected_loss() -> None:
    close = nodes({("cloud", "c"): (1.0, 1.1, 1.2, 1.1), ("jetson", "j"): (1.05, 1.15, 1.25, 1.15)})
    status = ask(close, workload=sizes("1Mi"))
    assert set(verdicts(status).values()) == {("Inconclusive", "CouldGoEitherWay")}
    assert (status.best, status.node_affinity, status.confidence) == ("", None, Confidence.NONE)
    assert status.expected_loss == "3%"
    assert (
        "cloud: 4% ahead of jetson (ratio 0.957, 95% CI 0.844–1.08, on the nodes measured), but the difference is"
        in status.answer
    )
    assert {"MoreNodes", "MoreTrials"} == reasons(status.recommendations)


def test_retries_are_compared_if_one_class_has_none() -> None:
    """A division by zero would prevent every further answer."""
    retried = [(1.0, 0)] * 9 + [(1.0, 1)]
    results = [measured("cloud", "1Mi", [(1.0, 0)] * 10, 1), measured("jetson", "1Mi", retried, 2)]
    status = ask(results, objective={"type": "Retries"})
    assert set(verdicts(status).values()) == {("Inconclusive", "CouldGoEitherWay")}
    assert "MoreTrials" in reasons(status.recommendations)


def test_deviation_of_one_trial_raises_no_error() -> None:
    (result,) = nodes({("cloud", "c"): (1.0,)})
    statistic = {"count": 1, "mean": 10**9, "standardDeviation": 10**8, "confidenceHigh": 2 * 10**9}
    known = result.to_json()["status"]["statistics"]
    statistics = {name: {**value, **statistic} for name, value in known.items()}
    assert ask([edited(result, statistics=statistics, untrimmed=statistics)]).ranking


def test_three_classes_are_ranked() -> None:
    more = nodes({("cloud", "c2"): FAST, ("jetson", "j2"): SLOW})
    fourth = [
        result.model_copy(
            update={
                "spec": result.spec.model_copy(
                    update={"server": result.spec.server.model_copy(update={"node_class": "pi", "node": "pi-1"})}
                )
            }
        )
        for result in nodes({("jetson", "j"): (4.0, 4.1, 4.05, 4.0)})
    ]
    status = ask([*more, *fourth], workload=sizes("1Mi"))
    assert [(item.name, item.verdict.value) for item in status.ranking] == [
        ("cloud", "Best"), ("jetson", "Worse"), ("pi", "Worse"),
    ]  # fmt: skip
    assert status.runner_up == "jetson"


def test_answer_is_from_the_newest_finished_run() -> None:
    newest = nodes({("cloud", "cloud-1"): (3.0, 3.01, 3.0), ("jetson", "jetson-1"): (6.0, 6.1, 6.05)}, run=2)
    assert ask([*ONE_NODE, *newest], workload=sizes("1Mi")).ranking[0].value == pytest.approx(3_003_333_333)
    newest[0] = edited(newest[0], phase="Running")
    assert ask([*ONE_NODE, *newest], workload=sizes("1Mi")).ranking[0].value == 1_000_000_000


def test_results_are_selected_by_client_benchmark_and_label() -> None:
    other = nodes({("cloud", "cloud-1"): SLOW, ("jetson", "jetson-1"): FAST}, name="other")
    labelled = [
        result.model_copy(update={"metadata": result.metadata.model_copy(update={"labels": {"site": "a"}})})
        for result in other
    ]
    both = [*ONE_NODE, *labelled]
    assert ask(both, workload=sizes("1Mi"), benchmarks={"names": ["files"]}).best == "cloud"
    assert ask(both, workload=sizes("1Mi"), benchmarks={"matchLabels": {"site": "a"}}).best == "jetson"
    assert answered(ask(both, workload=sizes("1Mi"))) == ("False", "ContradictingRuns")
    elsewhere = ask(both, clientClassName="elsewhere")
    assert "there are results with clients on user" in elsewhere.answer


def test_levels_that_all_classes_have_get_equal_weights() -> None:
    def tls(server: str, level: str, seconds: float, case: int) -> BenchmarkResult:
        times = [(seconds, 0), (seconds * 1.01, 0), (seconds * 0.99, 0)]
        return measured(server, "1Mi", times, case, levels=LEVELS | {"tls": level})

    results = [tls("cloud", "None", 1, 1), tls("cloud", "TLSv1.3", 3, 2), tls("jetson", "None", 4, 3)]
    status = ask(results, workload=sizes("1Mi"))
    assert [item.value for item in status.ranking] == [1_000_000_000, 4_000_000_000]
    assert "LevelsLeftOut" in reasons(status.caveats)
    every = ask([*results, tls("jetson", "TLSv1.3", 5, 4)], workload=sizes("1Mi"))
    assert [item.value for item in every.ranking] == [2_000_000_000, 4_500_000_000]
    named = ask([*results, tls("jetson", "TLSv1.3", 5, 4)], workload={"levels": {"tls": "TLSv1.3"}})
    assert [item.value for item in named.ranking] == [3_000_000_000, 5_000_000_000]


def test_affinity_has_the_selector_of_the_class_or_names_of_nodes() -> None:
    selector = {"matchLabels": {"hw": "pc"}, "matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}
    cloud = NodeClass.model_validate({"metadata": {"name": "cloud"}, "spec": {"nodeSelector": selector}})
    found = ask(ONE_NODE, [cloud], workload=sizes("1Mi")).to_json()["nodeAffinity"]
    (term,) = found["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "hw", "operator": "In", "values": ["pc"]},
        {"key": "gpu", "operator": "DoesNotExist", "values": []},
    ]
    unknown = ask(ONE_NODE, workload=sizes("1Mi")).node_affinity
    assert unknown is not None
    requirement = unknown.required_during_scheduling_ignored_during_execution.node_selector_terms[0].match_expressions[
        0
    ]
    assert (requirement.key, requirement.values) == ("kubernetes.io/hostname", ("cloud-1",))


def test_unknown_factor_is_compared() -> None:
    results = [
        result_of_kind(
            "FileTransferBenchmark", {"steps": steps}, server, case, {"durationNanoseconds": mean}
        ).model_copy()
        for case, (steps, server, mean) in enumerate(
            [("10", "cloud", 100), ("10", "pi", 200), ("1000", "cloud", 9000), ("1000", "pi", 800)], start=1
        )
    ]
    status = ask(results, clientClassName="pi", workload={"levels": {"steps": "1000"}})
    assert status.best == "pi"
    (crossover,) = status.crossovers
    assert (crossover.factor, crossover.lower_level, crossover.upper_level) == ("steps", "10", "1000")
    assert not any("runPolicy.refine" in note.message for note in status.recommendations)


def test_status_is_valid_and_its_messages_have_a_maximum_length() -> None:
    status = ask(published())
    assert PlacementAdviceStatus.model_validate(status.to_json()) == status
    messages = [item.message for item in status.ranking] + [
        note.message for note in (*status.caveats, *status.recommendations)
    ]
    assert max(map(len, messages)) <= 512


def test_published_conclusions_hold_for_classes_of_two_nodes() -> None:
    status = ask(two_nodes(), workload=sizes("512Mi", "1Gi", "2Gi"))
    assert (status.best, status.confidence, status.tolerated_node_deviation) == ("jetson", Confidence.HIGH, "")
    assert (
        " cloud is ahead at 1 MiB, by 47%; jetson is ahead from 512 MiB to 2 GiB, by 12–14%; "
        "cloud is ahead from 3 GiB on, by 14–16%."
    ) in status.answer
    assert [(each.lower_level, each.upper_level) for each in status.crossovers] == [("1Mi", "512Mi"), ("2Gi", "3Gi")]


def test_rate_over_a_workload_is_all_bytes_divided_by_all_time() -> None:
    """1 MB at 1 MB/s and 3 MB at 3 MB/s are 4 MB in 2 s. The mean of both rates would be the same by chance."""
    results = [
        measured(server, size, [(time, 0), (time * 1.001, 0), (time * 0.999, 0)], case)
        for case, (server, size, time) in enumerate(
            [("cloud", "1M", 1.0), ("cloud", "3M", 1.0), ("jetson", "1M", 0.2), ("jetson", "3M", 3.0)], start=1
        )
    ]
    status = ask(results)
    values = {item.name: item.value for item in status.ranking}
    assert values == {"cloud": pytest.approx(2e6, rel=1e-3), "jetson": pytest.approx(4e6 / 3.2, rel=1e-3)}
    assert status.best == "cloud"


@pytest.mark.parametrize(("margin", "verdict"), [(5, "Best"), (11, "Inconclusive"), (60, "Equal")])
def test_smallest_margin_separates_best_and_equal(margin: int, verdict: str) -> None:
    times = {
        (server, f"{server}-{node}"): [base * (1 + node / 1000 + step / 1000) for step in range(10)]
        for server, base in (("cloud", 1.0), ("jetson", 1.109))
        for node in range(4)
    }
    status = ask(nodes(times), workload=sizes("1Mi"), minMarginPercent=margin)
    assert verdicts(status)["cloud"][0] == verdict
    assert status.ranking[0].name == "cloud"


def test_interval_of_skewed_trials_is_above_zero() -> None:
    skewed = nodes({("cloud", "c"): (0.29, 0.3, 0.886), ("jetson", "j"): (0.4, 0.41, 0.42)})
    for item in ask(skewed, workload=sizes("1Mi")).ranking:
        assert item.confidence_low is not None and item.confidence_low > 0
