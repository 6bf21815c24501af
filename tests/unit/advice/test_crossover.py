"""Between which levels two classes change places."""

import pytest

from tests.unit.report.published import measured, published
from tierbench.advice.leaders import Crossover, crossovers, standings
from tierbench.advice.tables import Table, runs
from tierbench.api.result import BenchmarkResult

TIME = "durationNanoseconds"


def found(results: list[BenchmarkResult]) -> tuple[Crossover, ...]:
    table: Table = runs(results)[0].tables[0]
    return crossovers(table, standings([table], TIME)[0])


def results(seconds: dict[str, dict[str, float]], spread: float = 0.001) -> list[BenchmarkResult]:
    """Four trials for each size and class, around these times."""
    places = [(server, size, base) for size, row in seconds.items() for server, base in row.items()]
    return [
        measured(server, size, [(base * (1 + step * spread), 0) for step in (-1, 0, 0, 1)], case)
        for case, (server, size, base) in enumerate(places, start=1)
    ]


def test_the_published_table_has_two() -> None:
    first, second = found(published())
    assert (first.below, first.above, first.lower, first.upper) == ("cloud", "jetson", "1Mi", "512Mi")
    assert (second.below, second.above, second.lower, second.upper) == ("jetson", "cloud", "2Gi", "3Gi")
    assert str(second) == "Between 2 GiB and 3 GiB cloud comes ahead of jetson."
    assert first.confidence > 0.99 and second.confidence > 0.99


def test_levels_at_which_it_is_not_known_belong_to_the_crossover() -> None:
    rows = {
        "1Mi": {"cloud": 1.0, "jetson": 2.0},
        "2Mi": {"cloud": 2.0, "jetson": 2.0},
        "4Mi": {"cloud": 3.0, "jetson": 2.0},
    }
    (crossover,) = found(results(rows))
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
def test_without_a_shown_change_there_is_none(rows: dict[str, dict[str, float]]) -> None:
    assert found(results(rows)) == ()


def test_words_have_no_order_along_which_to_cross() -> None:
    cases = [("Warm", "cloud", 1.0), ("Warm", "jetson", 2.0), ("Cold", "cloud", 2.0), ("Cold", "jetson", 1.0)]
    assert (
        found(
            [
                measured(server, "1Mi", [(base, 0), (base * 1.001, 0)], case, levels={"cacheState": state})
                for case, (state, server, base) in enumerate(cases, start=1)
            ]
        )
        == ()
    )
