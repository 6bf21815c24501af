"""The variances of trials are pooled, then shrunk towards a common variance."""

from random import Random

import pytest

from tierbench.stats.hierarchy import TrialVariance, pool_variances, shrink_variances


def test_variances_are_weighted_by_their_degrees_of_freedom() -> None:
    found = pool_variances([(0.01, 3), (0.04, 2)])
    assert found.variance == pytest.approx(0.02)
    assert found.degrees == 3
    assert pool_variances([(0.0, 1)]) == TrialVariance(0.0, 0.0)


def test_three_variances_are_too_few_to_shrink() -> None:
    found = [TrialVariance(0.01, 2), TrialVariance(0.02, 2), TrialVariance(0.0, 0)]
    assert shrink_variances(found) == [*found[:2], None]


def test_similar_variances_shrink_to_one_and_different_ones_stay() -> None:
    random = Random(3)
    alike = [TrialVariance(sum(random.gauss(0, 0.1) ** 2 for _ in range(2)) / 2, 2) for _ in range(40)]
    found = [each for each in shrink_variances([*alike, TrialVariance(0.0, 0)]) if each is not None]
    assert len(found) == 41
    assert max(each.variance for each in alike) / min(each.variance for each in alike) > 100
    assert max(each.variance for each in found) / min(each.variance for each in found) < 3
    apart = [TrialVariance(10.0**-power, 30) for power in range(8)]
    for before, after in zip(apart, shrink_variances(apart), strict=True):
        assert after is not None
        assert before.variance / 2 < after.variance < 2 * before.variance
