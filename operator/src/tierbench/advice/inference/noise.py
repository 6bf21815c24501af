"""How much trials differ on one node at one level: variances pooled over nodes, then drawn together."""

from collections.abc import Sequence
from math import exp, log
from statistics import fmean, variance
from typing import Final, NamedTuple

from tierbench.advice.inference.special import digamma, trigamma, trigamma_inverse

_ENOUGH: Final = 4
_LEAST_VARIANCE: Final = 0.001
_MOST_DEGREES: Final = 50.0


class Noise(NamedTuple):
    """The relative variance of a trial (the variance by the squared mean), known with `degrees` of freedom."""

    variance: float
    degrees: float


def pooled(trials: Sequence[tuple[float, int]]) -> Noise:
    """Of a class at one level: the relative variances on its nodes, each with its number of trials, weighted n - 1."""
    degrees = sum(count - 1 for _, count in trials)
    if not degrees:
        return Noise(0.0, 0.0)
    return Noise(sum(value * (count - 1) for value, count in trials) / degrees, degrees)


def shrunken(found: Sequence[Noise]) -> list[Noise | None]:
    """Variances of several classes and levels, each drawn towards their common one as far as they are alike.

    The empirical Bayes estimate of Smyth (Statistical Applications in Genetics and Molecular Biology 3, 2004, article
    3, section 6.2). It takes four with a degree of freedom. One without any is the common one, or None.
    """
    known = [each for each in found if each.degrees]
    if len(known) < _ENOUGH:
        return [each if each.degrees else None for each in found]
    logs = [log(each.variance) - digamma(each.degrees / 2) + log(each.degrees / 2) for each in known]
    excess = variance(logs) - fmean(trigamma(each.degrees / 2) for each in known)
    half = min(trigamma_inverse(max(excess, _LEAST_VARIANCE)), _MOST_DEGREES / 2)
    prior = Noise(exp(fmean(logs) + digamma(half) - log(half)), 2 * half)
    return [_together(each, prior) for each in found]


def _together(one: Noise, prior: Noise) -> Noise:
    degrees = one.degrees + prior.degrees
    return Noise((one.degrees * one.variance + prior.degrees * prior.variance) / degrees, degrees)
