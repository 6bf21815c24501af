"""Estimates of values that are given."""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

from tierbench.advice.estimate import Estimate


def sample(values: Sequence[float]) -> Estimate:
    """What these trials on one node say."""
    spread = stdev(values) if len(values) > 1 else None
    error = None if spread is None else spread / sqrt(len(values))
    return Estimate(len(values), fmean(values), spread, error, max(1, len(values) - 1), len(values))
