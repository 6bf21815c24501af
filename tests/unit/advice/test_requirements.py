"""Constraints are met, violated, or unknown."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.advice.questions import ONE_NODE, ask, edited, reasons, sizes, verdicts
from tests.unit.report.published import measured, published
from tierbench.advice.requirements import Violation, group_by_workload, mean_limits, violations, workload_items
from tierbench.api.advice_answer import Confidence
from tierbench.api.placement_advice import WorkloadProfile
from tierbench.api.result import BenchmarkResult
from tierbench.api.run_policy import Constraints

CUT_OFF = {"trials": 3, "reason": "TimedOut", "message": "The client ran out of time."}
ANY = workload_items(None)


def violations_of(results: Sequence[BenchmarkResult], name: str = "cloud", **limits: Any) -> list[Violation]:
    kind = results[0].spec.benchmark.kind
    return list(violations(group_by_workload(results, ANY), name, Constraints.model_validate(limits), kind, ANY))


def failed(server: str, size: str, case: int) -> BenchmarkResult:
    body = measured(server, size, [(1.0, 0)], case).to_json()
    status = {"phase": "Failed", "reason": "AttemptsExhausted", "message": "20 attempts"}
    return BenchmarkResult.model_validate(body | {"status": status})


def test_constraint_is_checked_at_levels_where_another_class_failed() -> None:
    """At 5 GiB jetson has no results, and cloud takes 50 s."""
    every = [
        measured("cloud", "1Mi", [(1.0, 0), (1.1, 0)], 1), measured("cloud", "5Gi", [(50.0, 0), (51.0, 0)], 2),
        measured("jetson", "1Mi", [(1.0, 0), (1.1, 0)], 3), failed("jetson", "5Gi", 4),
    ]  # fmt: skip
    (broken,) = violations_of(every, "cloud", maxMeanMilliseconds=10_000)
    assert (broken.reason, broken.unknown, broken.uncertain) == ("MeanTooLong", False, False)
    assert "at 5 GiB" in broken.message
    (missing,) = violations_of(every, "jetson", maxMeanMilliseconds=10_000)
    assert missing.unknown
    assert "was not measured at 5 GiB" in missing.message


def test_levels_outside_the_workload_are_not_checked() -> None:
    every = [measured("cloud", "1Mi", [(1.0, 0), (1.1, 0)], 1), measured("cloud", "5Gi", [(50.0, 0), (51.0, 0)], 2)]
    wanted = workload_items(WorkloadProfile.model_validate(sizes("1Mi")))
    limits = Constraints(max_mean_milliseconds=10_000)
    assert not list(violations(group_by_workload(every, wanted), "cloud", limits, "FileTransferBenchmark", wanted))


@pytest.mark.parametrize("limit", ["maxMeanMilliseconds", "maxP99Milliseconds"])
def test_constraint_that_only_fast_trials_meet_is_unknown(limit: str) -> None:
    long: dict[str, Any] = {limit: 60_000}
    short: dict[str, Any] = {limit: 500}
    quick = measured("cloud", "1Mi", [(1.0 + step / 1000, 0) for step in range(30)])
    (breach,) = violations_of([edited(quick, missing=CUT_OFF)], **long)
    assert breach.unknown and not breach.uncertain
    assert "Slow trials were cut off" in breach.message
    (broken,) = violations_of([edited(quick, missing=CUT_OFF)], **short)
    assert not broken.unknown, "fast trials alone violate it"


def test_class_without_its_slow_trials_is_not_feasible() -> None:
    every = published()
    cut_off = [edited(each, missing=CUT_OFF) if each.spec.server.node_class == "jetson" else each for each in every]
    status = ask(cut_off, workload=sizes("512Mi"), constraints={"maxMeanMilliseconds": 60_000})
    assert {item.name: item.verdict.value for item in status.ranking}["jetson"] == "NoData"


def test_p99_of_ten_trials_is_unknown_and_names_the_required_number() -> None:
    ten = measured("cloud", "1Mi", [(1.0 + step / 1000, 0) for step in range(10)])
    (breach,) = violations_of([ten], maxP99Milliseconds=2000)
    assert breach.unknown and breach.uncertain
    assert "10 values are too few; 368 are enough" in breach.message
    (broken,) = violations_of([ten], maxP99Milliseconds=900)
    assert not broken.unknown and not broken.uncertain, "ten values above the maximum are enough"
    status = ask(published(), workload=sizes("512Mi"), constraints={"maxP99Milliseconds": 5700})
    assert "LimitUnsure" in reasons(status.caveats)


def test_more_trials_do_not_violate_the_maximum_of_retries() -> None:
    """There is one retry in ten trials, and the maximum is one per trial."""
    few = measured("cloud", "1Mi", [(1.0, int(step == 0)) for step in range(10)])
    many = [
        measured("cloud", "1Mi", [(1.0, int(step == 0)) for step in range(10)], node=f"cloud-{node}")
        for node in range(5)
    ]
    assert violations_of([few], maxRetries=1) == violations_of(many, maxRetries=1) == []
    (broken,) = violations_of([measured("cloud", "1Mi", [(1.0, 3), (1.0, 4)])], maxRetries=2)
    assert (broken.reason, broken.uncertain) == ("TooManyRetries", False)
    (unsure,) = violations_of([measured("cloud", "1Mi", [(1.0, 2), (1.0, 1)])], maxRetries=2)
    assert unsure.uncertain
    assert violations_of([measured("cloud", "1Mi", [(1.0, 0), (1.0, 0)])], maxRetries=0) == []


@pytest.mark.parametrize(
    ("constraints", "size", "wanted"),
    [
        ({"maxRetries": 0}, "3Gi", {"cloud": ("Best", "OnlyFeasible"), "jetson": ("Infeasible", "TooManyRetries")}),
        ({"maxMeanMilliseconds": 5000}, "512Mi",
         {"jetson": ("Best", "OnlyFeasible"), "cloud": ("Infeasible", "MeanTooLong")}),
        ({"maxP99Milliseconds": 5000}, "512Mi",
         {"jetson": ("Best", "OnlyFeasible"), "cloud": ("Infeasible", "P99TooLong")}),
        ({"minBytesPerSecond": "100Mi"}, "1Gi",
         {"jetson": ("Best", "OnlyFeasible"), "cloud": ("Infeasible", "ThroughputTooLow")}),
        ({"architectures": ["arm64"]}, "1Mi",
         {"jetson": ("Best", "OnlyFeasible"), "cloud": ("Infeasible", "ArchitectureExcluded")}),
        ({"architectures": ["riscv64"]}, "1Mi",
         {"cloud": ("Infeasible", "ArchitectureExcluded"), "jetson": ("Infeasible", "ArchitectureExcluded")}),
        ({"minMessagesPerSecond": 5}, "1Mi",
         {"cloud": ("NoData", "NotMeasured"), "jetson": ("NoData", "NotMeasured")}),
    ],
)  # fmt: skip
def test_violation_makes_a_class_infeasible(
    constraints: dict[str, Any], size: str, wanted: dict[str, tuple[str, str]]
) -> None:
    assert verdicts(ask(published(), workload=sizes(size), constraints=constraints)) == wanted


def test_constraint_is_checked_at_every_level() -> None:
    status = ask(published(), workload=sizes("1Mi", "5Gi"), constraints={"maxMeanMilliseconds": 60_000})
    jetson = next(item for item in status.ranking if item.name == "jetson")
    assert jetson.message == "Transfer time is 66.08 s at 5 GiB; the maximum is 60.00 s."
    near = ask(published(), workload=sizes("5Gi"), constraints={"maxMeanMilliseconds": 66_500})
    assert "LimitUnsure" in reasons(near.caveats)
    assert near.confidence is Confidence.LOW


@pytest.mark.parametrize(
    ("kind", "quantity", "value"),
    [
        ("FileTransferBenchmark", "throughputBytesPerSecond", 1_000_000),
        ("NetworkBenchmark", "throughputBitsPerSecond", 8_000_000),
    ],
)
def test_minimum_throughput_is_in_the_unit_of_the_kind(kind: str, quantity: str, value: float) -> None:
    (limit,) = mean_limits(Constraints(min_bytes_per_second="1M"), kind, ())
    assert (limit.quantity, limit.value) == (quantity, value)


def test_constraint_is_unknown_if_a_trial_was_cut_off() -> None:
    cloud, jetson = ONE_NODE
    cut = edited(cloud, counts=cloud.to_json()["status"]["counts"] | {"failed": 1, "timedOut": 1})
    status = ask([cut, jetson], workload=sizes("1Mi"), constraints={"maxMeanMilliseconds": 5000})
    assert verdicts(status)["cloud"] == ("NoData", "NotMeasured")
