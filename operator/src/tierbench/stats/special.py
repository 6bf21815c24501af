"""Special functions that the standard library lacks: the t, beta, binomial and gamma distributions, di- and trigamma.

A&S is Abramowitz and Stegun, Handbook of Mathematical Functions, 1964. DLMF is the NIST Digital Library of Mathematical
Functions.
"""

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final

_ROOT_OF_TWO: Final = math.sqrt(2)
_NORMAL_FROM: Final = 1e10
_HILL_FROM: Final = 16
_ASYMPTOTIC_FROM: Final = 6.0
_WILSON_HILFERTY_FROM: Final = 1000
_BISECTIONS: Final = 80
_NEWTON_STEPS: Final = 50
_BETA_TERMS: Final = 500
_NEWTON_TOLERANCE: Final = 1e-12
_BETA_TOLERANCE: Final = 1e-15
_TOLERANCE: Final = 1e-14
_TINY: Final = 1e-300


def student_cdf(t: float, degrees: float) -> float:
    """Returns P(T <= t) for Student's t distribution, to ten digits after the point.

    From 16 degrees of freedom on, the function takes Hill's expansion of the normal deviate. Below, it adds the terms
    of the recurrence of the incomplete beta function in steps of two degrees (DLMF 8.17.20).

    Source: Hill, Communications of the ACM 13, 1970, algorithm 395.
    """
    if degrees > _NORMAL_FROM:
        return 0.5 * math.erfc(-t / _ROOT_OF_TWO)
    logarithm = math.log1p(t * t / degrees)
    tail = 0.0
    if degrees < _HILL_FROM:
        share = degrees / (degrees + t * t)
        scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - degrees / 2 * logarithm
        term = math.exp(scale) * abs(t) / math.sqrt(math.pi * (degrees + t * t)) / degrees
        while degrees < _HILL_FROM:
            tail += term
            term *= share * (degrees + 1) / (degrees + 2)
            degrees += 2
    a = degrees - 0.5
    square, b = a * logarithm, 48 * a * a
    fourth = (((4 * square + 33) * square + 240) * square + 855) / (10 * b * (b + 0.8 * square * square + 100))
    deviate = math.sqrt(square) * (1 + (square + 3) / b - fourth)
    tail += 0.5 * math.erfc(deviate / _ROOT_OF_TWO)
    return 1 - tail if t >= 0 else tail


@lru_cache(maxsize=1024)  # the statistics of all cases of a run need the same few
def student_quantile(probability: float, degrees: float) -> float:
    """Returns the quantile of Student's t distribution for a probability of at least 0.5.

    The function applies Newton's method to the distribution function. It starts from the expansion of the normal
    quantile in 1/degrees (A&S 26.7.5). The result agrees with reference tables to nine digits.

    Raises:
        ValueError: `degrees` is not positive, or `probability` is not between 0.5 and 1.
    """
    if degrees <= 0 or not 0.5 <= probability < 1:  # noqa: PLR2004 (the upper half)
        raise ValueError(f"no quantile {probability} of t with {degrees} degrees of freedom")
    if degrees == 1:
        return math.tan(math.pi * (probability - 0.5))
    if degrees == 2:  # noqa: PLR2004 (has a closed form)
        return (2 * probability - 1) * math.sqrt(2 / (4 * probability * (1 - probability)))
    z = NormalDist().inv_cdf(probability)
    t = z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    for _ in range(_NEWTON_STEPS):
        step = (student_cdf(t, degrees) - probability) / _student_density(t, degrees)
        t -= step
        if abs(step) < _NEWTON_TOLERANCE * max(1.0, t):
            break
    return t


def _student_density(t: float, degrees: float) -> float:
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    return math.exp(scale - (degrees + 1) / 2 * math.log1p(t * t / degrees))


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Returns the regularised incomplete beta function I_x(a, b), from its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(1 - x, b, a)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)) / a
    return front * _beta_fraction(x, a, b)


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Returns 1/(1 + d1/(1 + d2/(1 + ...))) by the modified Lentz algorithm."""
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _BETA_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for coefficient in (even, odd):
            d = 1 / _away_from_zero(1 + coefficient * d)
            c = _away_from_zero(1 + coefficient / c)
            change = c * d
            fraction *= change
        if abs(change - 1) < _BETA_TOLERANCE:
            break
    return fraction


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def binomial_cdf(successes: int, trials: int, probability: float) -> float:
    """Returns P(X <= successes) for the binomial distribution (A&S 26.5.24)."""
    if successes >= trials:
        return 1.0
    return incomplete_beta(1 - probability, trials - successes, successes + 1)


def gamma_cdf(x: float, shape: float) -> float:
    """Returns P(X <= x) for the gamma distribution of this shape and scale 1.

    This is the regularised incomplete gamma function. Below shape + 1 the function sums its series (DLMF 8.11.4), above
    it evaluates the continued fraction (DLMF 8.9.2).
    """
    if x <= 0:
        return 0.0
    front = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    if x >= shape + 1:
        return 1 - front * _gamma_fraction(x, shape)
    term = total = 1 / shape
    number = shape
    while term > _TOLERANCE * total:
        number += 1
        term *= x / number
        total += term
    return front * total


def _gamma_fraction(x: float, shape: float) -> float:
    """Returns the continued fraction by the modified Lentz algorithm."""
    b = x + 1 - shape
    c, d = math.inf, 1 / b
    fraction = d
    number = 0
    while True:
        number += 1
        a = -number * (number - shape)
        b += 2
        d, c = 1 / (a * d + b), b + a / c
        fraction *= c * d
        if abs(c * d - 1) < _TOLERANCE:
            return fraction


@lru_cache(maxsize=1024)  # each reconcile of a case needs the same few
def gamma_quantile(probability: float, shape: float) -> float:
    """Returns the quantile of the gamma distribution of this shape and scale 1.

    The function bisects the distribution function. For a shape above 1,000 it takes the cube of a normal variable.
    Source: Wilson and Hilferty, Proceedings of the National Academy of Sciences 17, 1931.

    Raises:
        ValueError: `shape` is not positive, or `probability` is not between 0 and 1.
    """
    if shape <= 0 or not 0 < probability < 1:
        raise ValueError(f"no quantile {probability} of Gamma({shape})")
    if shape > _WILSON_HILFERTY_FROM:
        return shape * (1 - 1 / (9 * shape) + NormalDist().inv_cdf(probability) / (3 * math.sqrt(shape))) ** 3
    low, high = 0.0, shape + 10 * math.sqrt(shape) + 50
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if gamma_cdf(middle, shape) < probability else (low, middle)
    return (low + high) / 2


@lru_cache(maxsize=256)
def digamma(x: float) -> float:
    """Returns the derivative of log Γ at x > 0 (A&S 6.3.5, 6.3.18)."""
    shift = 0.0
    while x < _ASYMPTOTIC_FROM:
        shift -= 1 / x
        x += 1
    square = 1 / (x * x)
    return shift + math.log(x) - 0.5 / x - square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))


@lru_cache(maxsize=256)
def trigamma(x: float) -> float:
    """Returns the derivative of digamma at x > 0 (A&S 6.4.6, 6.4.12)."""
    shift = 0.0
    while x < _ASYMPTOTIC_FROM:
        shift += 1 / (x * x)
        x += 1
    square = 1 / (x * x)
    series = 1 / 6 - square * (1 / 30 - square * (1 / 42 - square / 30))
    return shift + 1 / x + square / 2 + series * square / x


def trigamma_inverse(y: float) -> float:
    """Returns the x > 0 at which trigamma is y > 0, by Newton's method on 1/y.

    Source: Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004, article 3, appendix.
    """
    x = 0.5 + 1 / y
    for _ in range(_NEWTON_STEPS):
        value = trigamma(x)
        step = value * (1 - value / y) / _tetragamma(x)
        x += step
        if -step / x < _TOLERANCE:
            break
    return x


def _tetragamma(x: float) -> float:
    """Returns the derivative of trigamma (A&S 6.4.14)."""
    shift = 0.0
    while x < _ASYMPTOTIC_FROM:
        shift -= 2 / x**3
        x += 1
    square = 1 / (x * x)
    return shift - square * (1 + 1 / x + square * (0.5 - square * (1 / 6 - square * (1 / 6 - 0.3 * square))))
