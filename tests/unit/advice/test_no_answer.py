"""Questions without an answer, and their reasons."""

from collections.abc import Sequence

import pytest

from tests.unit.advice.questions import (
    FAST,
    INVALID,
    ONE_NODE,
    SLOW,
    answered,
    ask,
    edited,
    nodes,
    reasons,
    sizes,
    verdicts,
)
from tests.unit.report.published import published
from tests.unit.report.test_page import result_of_kind
from tierbench.api.advice_answer import Confidence
from tierbench.api.result import BenchmarkResult


def test_p99_of_ten_trials_cannot_be_compared() -> None:
    status = ask(published(), workload=sizes("4Gi"), objective={"type": "Percentile", "percentile": "P99"})
    assert verdicts(status) == {"cloud": ("NoData", "TooFewTrials"), "jetson": ("NoData", "TooFewTrials")}


def test_no_class_is_best_if_none_is_feasible() -> None:
    status = ask(published(), workload=sizes("5Gi"), constraints={"maxMeanMilliseconds": 1})
    assert answered(status) == ("False", "NoneFeasible")
    assert status.node_affinity is None


def contradicting_runs() -> list[BenchmarkResult]:
    back = nodes({("cloud", "cloud-1"): SLOW, ("jetson", "jetson-1"): FAST}, run=2)
    return [*ONE_NODE, *back]


def with_version(results: Sequence[BenchmarkResult], version: str) -> list[BenchmarkResult]:
    engine = {"name": "tierbench-client", "version": version, "architecture": "amd64"}
    return [edited(result, engine=engine) for result in results]


@pytest.mark.parametrize(
    ("results", "reason", "hint"),
    [
        ([], "NoResults", "there are no results at all"),
        (ONE_NODE[:1], "OneClassOnly", "Measure another"),
        (nodes({("cloud", "c"): (1.0,), ("jetson", "j"): (9.0,)}), "TooFewTrials", "Run more repetitions"),
        ([edited(result, valid=False, invalid=INVALID) for result in ONE_NODE], "NotValid", "ClientSaturated"),
        ([*with_version(ONE_NODE[:1], "1"), *with_version(ONE_NODE[1:], "2")], "DifferentVersions", "Rerun"),
        (contradicting_runs(), "ContradictingRuns", "rerun"),
        (
            [*ONE_NODE, result_of_kind("BrokerBenchmark", {}, "cloud", 1, {}).model_copy(
                update={"spec": ONE_NODE[0].spec.model_copy(update={
                    "benchmark": ONE_NODE[0].spec.benchmark.model_copy(update={"kind": "BrokerBenchmark"})})})],
            "DifferentKinds", "spec.benchmarks",
        ),
        ([edited(result, phase="Failed", reason="NoReadyNode", statistics={}) for result in ONE_NODE],
         "CasesFailed", "NoReadyNode"),
    ],
)  # fmt: skip
def test_no_class_is_best_without_evidence(results: list[BenchmarkResult], reason: str, hint: str) -> None:
    status = ask(results, workload=sizes("1Mi"))
    assert answered(status) == ("False", reason)
    assert (status.best, status.node_affinity, status.confidence) == ("", None, Confidence.NONE)
    assert hint in status.answer
    assert not {item.verdict.value for item in status.ranking} & {"Best", "Worse"}


def test_level_that_was_not_measured_has_no_answer() -> None:
    status = ask(published(), workload=sizes("7Gi"))
    assert verdicts(status) == {"cloud": ("NoData", "NotMeasured"), "jetson": ("NoData", "NotMeasured")}
    assert "was not measured at 7 GiB" in status.answer
    assert "NotMeasured" in reasons(status.recommendations)


def test_class_that_lacks_a_level_is_not_compared() -> None:
    half = [result for result in published() if result.spec.server.node_class == "cloud" or result.spec.case < 9]
    status = ask([*half], workload=sizes("1Mi", "5Gi"))
    assert verdicts(status) == {"cloud": ("NoData", "OneClassOnly"), "jetson": ("NoData", "NotMeasured")}
