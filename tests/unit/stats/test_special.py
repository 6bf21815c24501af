"""The special functions agree with SciPy, which the operator does not depend on."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from tierbench.stats.special import (
    digamma,
    gamma_cdf,
    gamma_quantile,
    incomplete_beta,
    student_cdf,
    student_quantile,
    trigamma,
    trigamma_inverse,
)

POINTS = (0.3, 1.0, 2.5, 7.0, 30.0)


@pytest.mark.parametrize("x", POINTS)
def test_gamma_functions_and_their_derivatives_agree_with_scipy(x: float) -> None:
    assert digamma(x) == pytest.approx(special.digamma(x), abs=1e-8)
    assert trigamma(x) == pytest.approx(special.polygamma(1, x), rel=1e-7)
    assert trigamma(trigamma_inverse(x)) == pytest.approx(x, rel=1e-6)
    for y in (0.0, 0.1, 1.0, 3.0, 20.0):
        assert gamma_cdf(y, x) == pytest.approx(special.gammainc(x, y), abs=1e-10)


@given(st.floats(0.6, 0.9999), st.floats(1, 500))
def test_student_quantile_agrees_with_scipy(probability: float, degrees: float) -> None:
    assert student_quantile(probability, degrees) == pytest.approx(stats.t.ppf(probability, degrees), rel=1e-7)


@given(st.floats(-100, 100), st.one_of(st.floats(0.5, 500), st.floats(500, 1e12)))
def test_student_cdf_agrees_with_scipy(t: float, degrees: float) -> None:
    assert student_cdf(t, degrees) == pytest.approx(stats.t.cdf(t, degrees), abs=1e-10)


def test_student_cdf_of_infinite_degrees_is_normal() -> None:
    assert student_cdf(-1.5, math.inf) == pytest.approx(stats.norm.cdf(-1.5), rel=1e-12)


@given(st.floats(1e-12, 0.01), st.floats(0.5, 500))
def test_student_cdf_of_small_t_has_the_slope_of_the_density(t: float, degrees: float) -> None:
    """The density at 0 is the slope there."""
    above_half = student_cdf(t, degrees) - 0.5
    assert above_half == pytest.approx(t * stats.t.pdf(0, degrees), rel=1e-3, abs=1e-15)


# At 1 - 1e-16 SciPy itself is 3e-9 off.
@given(st.floats(0, 1 - 1e-9), st.floats(0.5, 100), st.floats(0.5, 100))
def test_incomplete_beta_agrees_with_scipy(x: float, a: float, b: float) -> None:
    assert incomplete_beta(x, a, b) == pytest.approx(stats.beta.cdf(x, a, b), abs=1e-10)


@pytest.mark.parametrize(("probability", "degrees"), [(0.4, 3), (1, 3), (0.9, 0)])
def test_student_quantile_rejects_invalid_arguments(probability: float, degrees: float) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        student_quantile(probability, degrees)


@given(st.floats(0.01, 0.99), st.floats(0.5, 100_000))
def test_gamma_quantile_agrees_with_scipy(probability: float, shape: float) -> None:
    assert gamma_quantile(probability, shape) == pytest.approx(stats.gamma.ppf(probability, shape), rel=1e-5, abs=1e-9)


@given(st.floats(0, 200), st.floats(0.5, 100))
def test_gamma_cdf_agrees_with_scipy(x: float, shape: float) -> None:
    assert gamma_cdf(x, shape) == pytest.approx(stats.gamma.cdf(x, shape), abs=1e-10)


@pytest.mark.parametrize(("probability", "shape"), [(0, 1), (1, 1), (0.5, 0)])
def test_gamma_quantile_rejects_invalid_arguments(probability: float, shape: float) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        gamma_quantile(probability, shape)
