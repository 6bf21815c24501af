"""The algebra of the mixed model agrees with whole matrices in NumPy."""

from math import log

import numpy as np
import pytest

from tierbench.stats.mixed_model import LevelReadings, MixedModel

OMEGA, TAU = 0.0004, 0.0025
EVEN = [[(0, 0.10, 0.001), (1, 0.16, 0.001)], [(0, 0.52, 0.003), (1, 0.55, 0.003)], [(0, 0.9, 0.002), (1, 1.0, 0.002)]]
UNEVEN = [
    [(0, 0.10, 0.001), (1, 0.16, 0.004), (2, 0.11, 0.002)],
    [(1, 0.55, 0.003), (2, 0.5, 0.001)],
    [(0, 0.9, 0.002)],
]


@pytest.mark.parametrize("levels", [EVEN, UNEVEN, EVEN[:1], [[(0, 0.3, 0.01)], [(0, 0.4, 0.02)]]])
def test_the_fit_is_the_generalized_least_squares_estimate(levels: list[list[tuple[int, float, float]]]) -> None:
    nodes = 1 + max(node for readings in levels for node, _, _ in readings)
    precision, pull, square, determinant = np.zeros((len(levels), len(levels))), np.zeros(len(levels)), 0.0, 0.0
    for node in range(nodes):
        mine = [(place, y, e) for place, readings in enumerate(levels) for n, y, e in readings if n == node]
        pick = np.eye(len(levels))[[place for place, _, _ in mine]]
        y = np.array([y for _, y, _ in mine])
        covariance = TAU + np.diag([OMEGA + e for _, _, e in mine])
        inverse = np.linalg.inv(covariance)
        precision += pick.T @ inverse @ pick
        pull += pick.T @ inverse @ y
        square += y @ inverse @ y
        determinant += log(np.linalg.det(covariance))
    means = np.linalg.solve(precision, pull)
    likelihood = -0.5 * (determinant + log(np.linalg.det(precision)) + square - pull @ means)
    model = MixedModel([LevelReadings(readings, nodes) for readings in levels], nodes, OMEGA)
    weights = [0.2, 0.3, 0.5][: len(levels)]
    found = model.fit(TAU)
    assert found.means == pytest.approx(list(means))
    variance = np.array(weights) @ np.linalg.inv(precision) @ np.array(weights)
    assert found.variance(list(enumerate(weights))) == pytest.approx(variance)
    assert model.log_likelihood(TAU) == pytest.approx(likelihood)
