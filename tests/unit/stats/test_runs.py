"""A run is compared with earlier runs by how much these differ."""

from tierbench.advice.comparison import RUN_SIGNIFICANCE
from tierbench.stats.runs import RunMean, compare_with_runs


def test_similar_runs_narrow_the_wide_interval_of_the_prior() -> None:
    now, one = RunMean(0.3, 1e-6, 9), RunMean(0.0, 1e-6, 9)
    similar = [RunMean(each / 1000, 1e-6, 9) for each in (0, 2, -3, 1, -1)]
    assert compare_with_runs(now, [one]).p > RUN_SIGNIFICANCE > compare_with_runs(now, [one], similar).p
    found = compare_with_runs(now, similar)
    assert 1 < found.low < found.high
