"""The linear algebra of a mixed model: levels have fixed effects, nodes have random ones.

Node k has the covariance V = τ²11' + diag(D), where D is the variance of its log means plus ω². The levels have the
precision P = Σ V⁻¹ over nodes: a diagonal matrix Λ minus one of the rank of the nodes. By Woodbury's identity the only
matrix to factor is H = I + τ²W. Its size is the number of nodes, and W does not depend on τ.
"""

from collections.abc import Sequence
from functools import cached_property
from math import log, sqrt
from statistics import fmean

Readings = Sequence[tuple[int, float, float]]
"""The readings of a level: the number of the node, its log mean, and the variance of the log mean."""
Weighted = Sequence[tuple[int, float]]
"""The positions of levels, and their weights."""


class LevelReadings:
    """The readings of one level.

    A level is `balanced` if all nodes have it with the same variance. Most are. Then it adds the same to each node,
    except for the `residuals`: by how much the node's log mean differs from the mean.
    """

    def __init__(self, readings: Readings, nodes: int) -> None:
        """Takes at least one reading; `nodes` is the number of all nodes."""
        self.readings = readings
        self.nodes = [node for node, _, _ in readings]
        self.variances = [variance for _, _, variance in readings]
        self.mean = fmean([y for _, y, _ in readings])
        self.balanced = len(readings) == nodes and self.variances.count(self.variances[0]) == nodes
        self.residuals = [y - self.mean for _, y, _ in sorted(readings)]
        self.square = sum([residual * residual for residual in self.residuals])


class MixedModel:
    """The model at one ω: everything that does not depend on τ. `means` are the means of the levels for τ = 0."""

    def __init__(self, levels: Sequence[LevelReadings], nodes: int, omega: float) -> None:
        """Takes the readings of all levels, the number of nodes, and ω² as `omega`."""
        self.means: list[float] = []
        self._precisions: list[float] = []
        self._shares: list[Sequence[float]] = []
        self._levels = levels
        self._pulls = [0.0] * nodes
        self._between = [[0.0] * nodes for _ in range(nodes)]
        self._constant = 0.0
        balanced, shares = 0.0, [1 / nodes] * nodes
        for level in levels:
            if level.balanced:
                own = 1 / (omega + level.variances[0])
                self._add_balanced(level, own, shares)
                balanced += own
            else:
                self._add(level, [1 / (omega + variance) for variance in level.variances])
        for node, between in enumerate(self._between):
            between[node] += balanced
            for other in range(nodes):
                between[other] -= balanced / nodes

    def _add_balanced(self, level: LevelReadings, own: float, shares: Sequence[float]) -> None:
        """Adds a level except for its part of W, which is the same for each pair of nodes and is added once for all."""
        nodes = len(shares)
        self._precisions.append(nodes * own)
        self._shares.append(shares)
        self.means.append(level.mean)
        self._constant += log(nodes) + (1 - nodes) * log(own) + own * level.square
        self._pulls = [pull + own * residual for pull, residual in zip(self._pulls, level.residuals, strict=True)]

    def _add(self, level: LevelReadings, own: Sequence[float]) -> None:
        """Adds a level; `own` is 1/D of each of its nodes."""
        precision = sum(own)
        shares = [d / precision for d in own]
        mean = _dot(shares, [y for _, y, _ in level.readings])
        self._precisions.append(precision)
        self._shares.append(shares)
        self.means.append(mean)
        self._constant += log(precision) - sum(map(log, own))
        for d, (node, y, _) in zip(own, level.readings, strict=True):
            pull, between = d * (y - mean), self._between[node]
            self._constant += pull * (y - mean)
            self._pulls[node] += pull
            between[node] += d
            for share, (other, _, _) in zip(shares, level.readings, strict=True):
                between[other] -= d * share

    @cached_property
    def trial_variances(self) -> list[float]:
        """The part of the variance of each level's mean that comes from the trials."""
        return [
            level.variances[0] / len(shares)
            if level.balanced
            else _dot([share * share for share in shares], level.variances)
            for shares, level in zip(self._shares, self._levels, strict=True)
        ]

    def log_likelihood(self, tau: float) -> float:
        """Returns the residual log-likelihood at τ² = `tau`, up to a constant."""
        root = self._root(tau)
        half = _solve_lower(root, self._pulls)
        determinant = 2 * sum(log(root[k][k]) for k in range(len(root)))
        return -0.5 * (self._constant + determinant - tau * sum(x * x for x in half))

    def fit(self, tau: float) -> "Fit":
        """Returns the generalized least squares estimate of the levels at τ² = `tau`."""
        root = self._root(tau)
        shift = [tau * x for x in _solve_upper(root, _solve_lower(root, self._pulls))]
        mean_shift = fmean(shift)
        means = [
            mean - (mean_shift if level.balanced else _dot(shares, [shift[node] for node in level.nodes]))
            for mean, shares, level in zip(self.means, self._shares, self._levels, strict=True)
        ]
        return Fit(self, means, root, tau)

    def contrast(self, weights: Weighted) -> tuple[float, tuple[float, ...]]:
        """Returns, for a weighted sum of levels, its variance for τ = 0 and its loading on each node."""
        total, balanced, nodes = 0.0, 0.0, [0.0] * len(self._pulls)
        for place, weight in weights:
            total += weight * weight / self._precisions[place]
            level = self._levels[place]
            if level.balanced:
                balanced += weight / len(nodes)
                continue
            for share, node in zip(self._shares[place], level.nodes, strict=True):
                nodes[node] += weight * share
        return total, tuple([balanced + share for share in nodes])

    @cached_property
    def _starts(self) -> list[int]:
        """For each node, the first node with which it shares a level. Before it, the rows of H and its factor are 0."""
        return [next((j for j in range(i) if row[j]), i) for i, row in enumerate(self._between)]

    def _root(self, tau: float) -> list[list[float]]:
        """Returns the lower Cholesky factor of H."""
        root: list[list[float]] = []
        for i, (between, start) in enumerate(zip(self._between, self._starts, strict=True)):
            row = [0.0] * start
            for j in range(start, i):
                first = max(start, self._starts[j])
                value = tau * between[j] - sum([a * b for a, b in zip(row[first:], root[j][first:], strict=False)])
                row.append(value / root[j][j])
            row.append(sqrt(1 + tau * between[i] - sum([a * a for a in row])))
            root.append(row)
        return root


class Fit:
    """The means of all levels at one τ and ω."""

    def __init__(self, model: MixedModel, means: Sequence[float], root: Sequence[Sequence[float]], tau: float) -> None:
        """Takes the lower Cholesky factor of H as `root`, and τ² as `tau`."""
        self.model, self.means, self._root, self._tau = model, means, root, tau
        self._shared: dict[tuple[float, ...], float] = {}

    def variance(self, weights: Weighted) -> float:
        """Returns the variance p'P⁻¹p of a weighted sum of levels."""
        total, nodes = self.model.contrast(weights)
        if nodes not in self._shared:
            self._shared[nodes] = self._tau * sum(x * x for x in _solve_lower(self._root, nodes))
        return total + self._shared[nodes]


def _dot(first: Sequence[float], second: Sequence[float]) -> float:
    return sum([a * b for a, b in zip(first, second, strict=True)])


def _solve_lower(root: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Solves L x = right."""
    found: list[float] = []
    for row, value in zip(root, right, strict=True):
        found.append((value - sum(a * x for a, x in zip(row, found, strict=False))) / row[len(found)])
    return found


def _solve_upper(root: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Solves L'x = right."""
    found = list(right)
    for i in reversed(range(len(root))):
        found[i] /= root[i][i]
        for j in range(i):
            found[j] -= root[i][j] * found[i]
    return found
