"""How often something happens."""

from math import exp

import pytest
from scipy import stats

from tierbench.advice.inference.odds import odds
from tierbench.advice.inference.rates import Count, rate


def test_the_interval_is_that_of_jeffreys() -> None:
    found = rate([(1.0, [Count(3, 20)])])
    for tail in (0.025, 0.975):
        assert exp(found.quantile(tail)) == pytest.approx(stats.gamma.ppf(tail, 3.5) / 20, rel=1e-6)
    assert found.minus(found).cdf(0.0) == pytest.approx(0.5)


def test_what_nodes_differ_by_widens_it() -> None:
    even, uneven = rate([(1.0, [Count(5, 10), Count(5, 10)])]), rate([(1.0, [Count(10, 10), Count(0, 10)])])
    assert uneven.deviation > 2 * even.deviation


def test_never_is_not_surely_never() -> None:
    never, once = rate([(1.0, [Count(0, 10)])]), rate([(1.0, [Count(1, 10)])])
    found = odds({"never": never, "once": once})
    assert found["never"].best == pytest.approx(never.minus(once).cdf(0.0), abs=0.01)
    assert 0.7 < found["never"].best < 0.95
