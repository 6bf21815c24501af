"""Whether limits are kept to: yes, no, or not known."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.advice.test_advise import ask, edited, reasons, sizes
from tests.unit.report.published import measured, published
from tierbench.advice.constraints import Violation, violations
from tierbench.advice.workload import group_by_workload, workload_items
from tierbench.api.placement_advice import WorkloadProfile
from tierbench.api.result import BenchmarkResult
from tierbench.api.run_policy import Constraints

CUT_OFF = {"trials": 3, "reason": "TimedOut", "message": "The client ran out of time."}
ANY = workload_items(None)


def found(results: Sequence[BenchmarkResult], name: str = "cloud", **limits: Any) -> list[Violation]:
    kind = results[0].spec.benchmark.kind
    return list(violations(group_by_workload(results, ANY), name, Constraints.model_validate(limits), kind, ANY))


def failed(server: str, size: str, case: int) -> BenchmarkResult:
    body = measured(server, size, [(1.0, 0)], case).to_json()
    status = {"phase": "Failed", "reason": "AttemptsExhausted", "message": "20 attempts"}
    return BenchmarkResult.model_validate(body | {"status": status})


def test_a_limit_is_checked_where_another_class_failed() -> None:
    """At 5 GiB jetson has nothing, and cloud takes 50 s."""
    every = [
        measured("cloud", "1Mi", [(1.0, 0), (1.1, 0)], 1), measured("cloud", "5Gi", [(50.0, 0), (51.0, 0)], 2),
        measured("jetson", "1Mi", [(1.0, 0), (1.1, 0)], 3), failed("jetson", "5Gi", 4),
    ]  # fmt: skip
    (broken,) = found(every, "cloud", maximumMeanMilliseconds=10_000)
    assert (broken.reason, broken.unknown, broken.uncertain) == ("MeanTooLong", False, False)
    assert "at 5 GiB" in broken.message
    (missing,) = found(every, "jetson", maximumMeanMilliseconds=10_000)
    assert missing.unknown
    assert "was not measured at 5 GiB" in missing.message


def test_levels_that_nobody_asks_for_are_not_checked() -> None:
    every = [measured("cloud", "1Mi", [(1.0, 0), (1.1, 0)], 1), measured("cloud", "5Gi", [(50.0, 0), (51.0, 0)], 2)]
    wanted = workload_items(WorkloadProfile.model_validate(sizes("1Mi")))
    limits = Constraints(maximum_mean_milliseconds=10_000)
    assert not list(violations(group_by_workload(every, wanted), "cloud", limits, "FileTransferBenchmark", wanted))


@pytest.mark.parametrize("limit", ["maximumMeanMilliseconds", "maximumP99Milliseconds"])
def test_a_limit_that_is_kept_as_slow_trials_were_cut_off_is_not_known(limit: str) -> None:
    long: dict[str, Any] = {limit: 60_000}
    short: dict[str, Any] = {limit: 500}
    quick = measured("cloud", "1Mi", [(1.0 + step / 1000, 0) for step in range(30)])
    (breach,) = found([edited(quick, missing=CUT_OFF)], **long)
    assert breach.unknown and not breach.uncertain
    assert "Slow trials were cut off" in breach.message
    (broken,) = found([edited(quick, missing=CUT_OFF)], **short)
    assert not broken.unknown, "what broke the limit broke it"


def test_a_class_whose_slow_trials_were_cut_off_cannot_be_chosen_by_a_limit() -> None:
    every = published()
    cut_off = [edited(each, missing=CUT_OFF) if each.spec.server.node_class == "jetson" else each for each in every]
    status = ask(cut_off, workload=sizes("512Mi"), constraints={"maximumMeanMilliseconds": 60_000})
    assert {item.name: item.verdict.value for item in status.ranking}["jetson"] == "NoData"


def test_a_p99_of_ten_trials_is_not_known_and_says_what_it_needs() -> None:
    ten = measured("cloud", "1Mi", [(1.0 + step / 1000, 0) for step in range(10)])
    (breach,) = found([ten], maximumP99Milliseconds=2000)
    assert breach.unknown and breach.uncertain
    assert "10 values are too few; 368 are enough" in breach.message
    (broken,) = found([ten], maximumP99Milliseconds=900)
    assert not broken.unknown and not broken.uncertain, "all ten above it are enough to know that"
    status = ask(published(), workload=sizes("512Mi"), constraints={"maximumP99Milliseconds": 5700})
    assert "LimitUnsure" in reasons(status.caveats)


def test_measuring_more_makes_no_class_infeasible_by_its_retries() -> None:
    """One retry in ten trials, at most one a trial asked for."""
    few = measured("cloud", "1Mi", [(1.0, int(step == 0)) for step in range(10)])
    many = [
        measured("cloud", "1Mi", [(1.0, int(step == 0)) for step in range(10)], node=f"cloud-{node}")
        for node in range(5)
    ]
    assert found([few], maximumRetries=1) == found(many, maximumRetries=1) == []
    (broken,) = found([measured("cloud", "1Mi", [(1.0, 3), (1.0, 4)])], maximumRetries=2)
    assert (broken.reason, broken.uncertain) == ("TooManyRetries", False)
    (unsure,) = found([measured("cloud", "1Mi", [(1.0, 2), (1.0, 1)])], maximumRetries=2)
    assert unsure.uncertain
    assert found([measured("cloud", "1Mi", [(1.0, 0), (1.0, 0)])], maximumRetries=0) == []
