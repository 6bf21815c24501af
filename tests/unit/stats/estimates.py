"""Estimates for tests."""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

from tierbench.stats.estimates import Estimate


def sample(values: Sequence[float]) -> Estimate:
    """Returns the estimate of trials on one node."""
    spread = stdev(values) if len(values) > 1 else None
    error = None if spread is None else spread / sqrt(len(values))
    return Estimate(len(values), fmean(values), spread, error, max(1, len(values) - 1), len(values))
