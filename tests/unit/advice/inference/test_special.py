"""Against SciPy, which the operator does without."""

import pytest
from scipy import special, stats

from tierbench.advice.inference.special import digamma, t_cdf, trigamma, trigamma_inverse
from tierbench.results.rates import gamma_distribution

POINTS = (0.3, 1.0, 2.5, 7.0, 30.0)


@pytest.mark.parametrize("x", POINTS)
def test_the_gamma_functions(x: float) -> None:
    assert digamma(x) == pytest.approx(special.digamma(x), abs=1e-8)
    assert trigamma(x) == pytest.approx(special.polygamma(1, x), rel=1e-7)
    assert trigamma(trigamma_inverse(x)) == pytest.approx(x, rel=1e-6)
    for y in (0.0, 0.1, 1.0, 3.0, 20.0):
        assert gamma_distribution(y, x) == pytest.approx(special.gammainc(x, y), abs=1e-10)


@pytest.mark.parametrize(("degrees", "within"), [(1, 0.008), (2, 0.002), (5, 0.0004), (40, 1e-5), (1e7, 1e-6)])
def test_students_t(degrees: float, within: float) -> None:
    for tenth in range(-80, 81):
        assert t_cdf(tenth / 10, degrees) == pytest.approx(stats.t.cdf(tenth / 10, degrees), abs=within)
