"""Crossovers, and the levels that refine them."""

from typing import Any

import pytest

from tests.unit.report.published import measured, published
from tierbench.advice.caveats import Crossover, crossovers, midpoint, refinements
from tierbench.advice.posterior import level_verdicts
from tierbench.advice.tables import Table, runs
from tierbench.api.result import BenchmarkResult, ResultPhase

TIME = "durationNanoseconds"
CLOUD, JETSON = {"cloud": 1.0, "jetson": 2.0}, {"cloud": 2.0, "jetson": 1.0}


def crossovers_of(results: list[BenchmarkResult]) -> tuple[Crossover, ...]:
    table: Table = runs(results)[0].tables[0]
    return crossovers(table, next(level_verdicts([table], TIME)))


def results(seconds: dict[str, dict[str, float]], spread: float = 0.001) -> list[BenchmarkResult]:
    """Returns results of four trials around these times for each size and class."""
    places = [(server, size, base) for size, row in seconds.items() for server, base in row.items()]
    return [
        measured(server, size, [(base * (1 + step * spread), 0) for step in (-1, 0, 0, 1)], case)
        for case, (server, size, base) in enumerate(places, start=1)
    ]


def test_published_table_has_two_crossovers() -> None:
    first, second = crossovers_of(published())
    assert (first.below, first.above, first.lower, first.upper) == ("cloud", "jetson", "1Mi", "512Mi")
    assert (second.below, second.above, second.lower, second.upper) == ("jetson", "cloud", "2Gi", "3Gi")
    assert str(second) == "Between 2 GiB and 3 GiB, cloud overtakes jetson."
    assert first.confidence > 0.99 and second.confidence > 0.99


def test_crossover_spans_inconclusive_levels() -> None:
    rows = {
        "1Mi": {"cloud": 1.0, "jetson": 2.0},
        "2Mi": {"cloud": 2.0, "jetson": 2.0},
        "4Mi": {"cloud": 3.0, "jetson": 2.0},
    }
    (crossover,) = crossovers_of(results(rows))
    assert (crossover.lower, crossover.upper) == ("1Mi", "4Mi")


@pytest.mark.parametrize(
    "rows",
    [
        {"1Mi": {"cloud": 1.0, "jetson": 2.0}, "2Mi": {"cloud": 1.0, "jetson": 2.0}},
        {"1Mi": {"cloud": 1.0, "jetson": 2.0}, "2Mi": {"cloud": 2.0, "jetson": 2.0}},
        {"1Mi": {"cloud": 1.0, "jetson": 2.0}, "2Mi": {"jetson": 2.0}},
        {"1Mi": {"cloud": 1.0, "jetson": 2.0}},
    ],
)
def test_no_crossover_without_two_winners(rows: dict[str, dict[str, float]]) -> None:
    assert crossovers_of(results(rows)) == ()


def test_categorical_factor_has_no_crossover() -> None:
    cases = [("Warm", "cloud", 1.0), ("Warm", "jetson", 2.0), ("Cold", "cloud", 2.0), ("Cold", "jetson", 1.0)]
    assert (
        crossovers_of(
            [
                measured(server, "1Mi", [(base, 0), (base * 1.001, 0)], case, levels={"cacheState": state})
                for case, (state, server, base) in enumerate(cases, start=1)
            ]
        )
        == ()
    )


def next_levels(measured: list[BenchmarkResult], within: float = 0.25) -> list[str]:
    return [middle.level for middle in refinements(runs(measured)[0], "fileSize", within)]


@pytest.mark.parametrize(
    ("lower", "upper", "middle"),
    [
        ("256Mi", "512Mi", "362Mi"),
        ("1Gi", "2Gi", "1450Mi"),
        ("1M", "512M", "22600k"),
        ("2G", "3G", "2450M"),
        ("1048576", "2097152", "1480000"),
        ("1048576", "2Mi", "1450Ki"),
        ("100", "1Ki", "320"),
        ("1", "10", "3"),
    ],
)
def test_midpoint_is_the_geometric_mean_in_three_digits_and_the_same_unit(lower: str, upper: str, middle: str) -> None:
    assert midpoint(lower, upper, 0.25) == middle


@pytest.mark.parametrize(
    ("lower", "upper", "within"),
    [("256Mi", "320Mi", 0.25), ("512M", "512M", 0.01), ("1", "2", 0.25), ("100Mi", "101Mi", 0.001)],
)
def test_narrow_range_has_no_midpoint(lower: str, upper: str, within: float) -> None:
    assert midpoint(lower, upper, within) is None


def test_each_crossover_has_a_refinement() -> None:
    assert next_levels(results({"1M": CLOUD, "100M": JETSON, "200M": JETSON, "1G": CLOUD})) == ["10M", "447M"]
    assert next_levels(results({"1M": CLOUD, "100M": CLOUD})) == []


def test_inconclusive_midpoint_is_not_measured_again() -> None:
    unclear = {"cloud": 1.5, "jetson": 1.5}
    assert next_levels(results({"1M": CLOUD, "10M": unclear, "100M": JETSON})) == []


def changed(result: BenchmarkResult, *, status: dict[str, Any] | None = None, **spec: Any) -> BenchmarkResult:
    return result.model_copy(
        update={
            "spec": result.spec.model_copy(update=spec),
            "status": result.status.model_copy(update=status or {}),
        }
    )


def test_crossover_with_a_failed_case_is_not_refined() -> None:
    two = results({"1M": CLOUD, "100M": JETSON})
    assert next_levels(two) == ["10M"]
    slow = two[2]
    third = slow.spec.server.model_copy(update={"node_class": "third"})
    assert next_levels([*two, changed(slow, server=third, case=5)]) == ["10M"]
    failed = {"phase": ResultPhase.FAILED}
    assert next_levels([*two, changed(slow, server=third, case=5, status=failed)]) == []


def test_refinement_is_along_sizes_if_another_factor_has_more_levels() -> None:
    many = [
        changed(one, case=10 * number + one.spec.case, levels={**one.spec.levels, "concurrency": str(number)})
        for number in (1, 2, 4)
        for one in results({"1M": CLOUD, "100M": JETSON})
    ]
    assert runs(many)[0].row_factor == "concurrency"
    middle = refinements(runs(many)[0], "fileSize", 0.25)
    assert [(one.level, one.levels["concurrency"]) for one in middle] == [("10M", level) for level in ("1", "2", "4")]
    assert str(middle[0]) == "jetson overtakes cloud between 1M and 100M, concurrency 1: measures 10M"


def test_rate_is_compared_if_there_is_no_time() -> None:
    rate = "throughputMessagesPerSecond"
    rated = [
        changed(one, status={"statistics": {rate: one.status.statistics["durationNanoseconds"]}})
        for one in results({"1M": CLOUD, "100M": JETSON})
    ]
    (middle,) = refinements(runs(rated)[0], "fileSize", 0.25)
    assert str(middle) == "cloud overtakes jetson between 1M and 100M: measures 10M"
