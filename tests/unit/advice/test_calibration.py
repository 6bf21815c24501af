"""A small part of `make calibrate`, with fixed seeds."""

from random import Random

import pytest

from benchmarks.calibrate.__main__ import least, most
from benchmarks.calibrate.simulate import Point, contests, draw, run


@pytest.mark.parametrize(
    "point",
    [
        Point(levels=3),
        Point(levels=3, heavy=True),
        Point((5, 2), (10, 10), levels=3),
        Point((3, 3), (5, 30), levels=3),
        Point((2, 2, 3), (10, 10, 10), levels=3, ratios=(1.0, 1.0, 1.15)),
    ],
)
def test_intervals_contain_the_true_value_with_their_probability(point: Point) -> None:
    found = run(point, 60, 11)
    assert found.workload_coverage.share >= 0.87
    assert found.level_coverage.share >= 0.90
    assert found.called.share <= 0.12


def test_difference_of_15_percent_is_mostly_found_and_never_reversed() -> None:
    found = run(Point(ratios=(1.0, 1.15)), 60, 5)
    assert found.right.share >= 0.65
    assert found.wrong.hits == 0


def test_trials_on_one_node_do_not_narrow_its_class() -> None:
    """With 100 trials the interval of the class is as wide as with 10: the prior determines it."""
    widths = []
    for trials in (10, 100):
        point = Point((1, 1), (trials, trials), levels=1)
        whole, _ = contests(point, draw(point, Random(1)))
        widths.append(
            whole.posteriors["a"].class_log_cost.quantile(0.975) - whole.posteriors["a"].class_log_cost.quantile(0.025)
        )
    assert widths[1] > 0.9 * widths[0] > 0.1


def test_drift_over_a_run_changes_no_answer() -> None:
    for drift in (0.0, 0.10):
        found = run(Point(tau=0.0, ratios=(1.0, 1.15), levels=3, drift=drift), 20, 7)
        assert (found.right.hits, found.wrong.hits) == (20, 0)


def test_true_difference_shifts_the_estimates_only() -> None:
    """Points that differ in it alone have the same coverage and errors, so they are counted together."""
    even, apart = (run(Point(levels=1, ratios=(1.0, ratio)), 120, 3) for ratio in (1.0, 1.05))
    assert (even.workload_coverage, even.mistaken) == (apart.workload_coverage, apart.mistaken)
    assert even.mistaken == even.called != apart.called
    assert even.mistaken.hits > 0


@pytest.mark.parametrize(("points", "lowest"), [(1, 0.2), (10, 0.1)])
def test_limit_of_the_lowest_point_allows_for_chance(points: int, lowest: float) -> None:
    """Of ten coins at most one shows heads with a probability of 1.1%, and at most two with 5.5%."""
    assert least(0.5, 10, points) == lowest
    assert most(0.5, 10, points) == 1 - lowest
