"""Where two classes are even."""

from math import exp, log, sqrt
from random import Random
from statistics import fmean, stdev

import pytest

from tests.unit.report.published import measured, published
from tierbench.advice.crossover import Crossover, Ratio, crossovers, even
from tierbench.advice.matrix import Table, runs
from tierbench.advice.words import standings
from tierbench.api.result import BenchmarkResult

TIME = "durationNanoseconds"


def found(results: list[BenchmarkResult]) -> tuple[Crossover, ...]:
    table: Table = runs(results)[0].tables[0]
    return crossovers(table, TIME, standings(table, TIME))


def results(seconds: dict[str, dict[str, float]], spread: float = 0.001) -> list[BenchmarkResult]:
    """Four trials for each size and class, around these times."""
    places = [(server, size, base) for size, row in seconds.items() for server, base in row.items()]
    return [
        measured(server, size, [(base * (1 + step * spread), 0) for step in (-1, 0, 0, 1)], case)
        for case, (server, size, base) in enumerate(places, start=1)
    ]


def test_the_published_table_has_two() -> None:
    first, second = found(published())
    assert (first.below, first.above, first.lower, first.upper) == ("cloud", "jetson", "1M", "512M")
    assert (second.below, second.above, second.lower, second.upper) == ("jetson", "cloud", "2G", "3G")
    for crossover, low, high in ((first, 1e6, 512e6), (second, 2e9, 3e9)):
        assert crossover.point is not None and crossover.low is not None and crossover.high is not None
        assert low < crossover.low < crossover.point < crossover.high < high
    assert str(second).startswith("Between 2 GB and 3 GB cloud comes ahead of jetson, at about 2.40 GB (95 % interval")


def test_the_point_of_a_power_law_is_exact() -> None:
    """cloud = 2, jetson = size ** 0.5: even at 4."""
    (crossover,) = found(results({"1": {"cloud": 2, "jetson": 1}, "16": {"cloud": 2, "jetson": 4}}))
    assert crossover.point == pytest.approx(4, rel=1e-6)


def test_tied_levels_belong_to_the_crossover() -> None:
    rows = {
        "1M": {"cloud": 1.0, "jetson": 2.0},
        "2M": {"cloud": 2.0, "jetson": 2.0},
        "4M": {"cloud": 3.0, "jetson": 2.0},
    }
    (crossover,) = found(results(rows))
    assert (crossover.lower, crossover.upper) == ("1M", "4M")
    assert crossover.point == pytest.approx(2e6, rel=0.01)


@pytest.mark.parametrize(
    "rows",
    [
        {"1M": {"cloud": 1.0, "jetson": 2.0}, "2M": {"cloud": 1.0, "jetson": 2.0}},
        {"1M": {"cloud": 1.0, "jetson": 2.0}, "2M": {"cloud": 2.0, "jetson": 2.0}},
        {"1M": {"cloud": 1.0, "jetson": 2.0}, "2M": {"jetson": 2.0}},
        {"1M": {"cloud": 1.0, "jetson": 2.0}},
    ],
)
def test_without_a_shown_change_there_is_none(rows: dict[str, dict[str, float]]) -> None:
    assert found(results(rows)) == ()


def test_words_have_no_order_along_which_to_cross() -> None:
    cases = [("Warm", "cloud", 1.0), ("Warm", "jetson", 2.0), ("Cold", "cloud", 2.0), ("Cold", "jetson", 1.0)]
    assert (
        found(
            [
                measured(server, "1M", [(base, 0), (base * 1.001, 0)], case, levels={"cacheState": state})
                for case, (state, server, base) in enumerate(cases, start=1)
            ]
        )
        == ()
    )


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """400 samples of five trials, log-linear truth with the crossover in the middle: about 95 % hold it."""
    random, hits, rounds = Random(7), 0, 400
    for _ in range(rounds):
        ratios = []
        for at, first, second in ((0.0, 1.0, exp(0.2)), (2.0, 1.0, exp(-0.2))):
            one, other = ([random.gauss(mean, 0.05 * mean) for _ in range(5)] for mean in (first, second))
            variance = sum((stdev(values) / sqrt(5) / fmean(values)) ** 2 for values in (one, other))
            ratios.append(Ratio(at, log(fmean(one) / fmean(other)), variance, 8))
        _, low, high = even(ratios)
        assert low is not None and high is not None
        hits += low <= exp(1.0) <= high
    assert 0.92 <= hits / rounds <= 0.985
