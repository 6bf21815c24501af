"""The linear algebra of one class at one ω: levels are independent but for how each node differs throughout.

Node k has the covariance V = τ²11' + diag(D), D its trial noise plus ω². The levels have the precision P = Σ V⁻¹ over
nodes, a diagonal matrix Λ less one of the rank of the nodes. By Woodbury's identity all that is needed is a matrix of
the nodes, H = I + τ²W, with W free of τ.
"""

from collections.abc import Sequence
from functools import cached_property
from math import log, sqrt
from statistics import fmean

Readings = Sequence[tuple[int, float, float]]
"""What the nodes say of a level: the node's number, its log mean and the variance of that."""
Weighted = Sequence[tuple[int, float]]
"""Places of levels, and their weights."""


class Level:
    """What the nodes say of a level. It is even where all of them do, each as well known: most are, and then all that
    it adds is the same for each node, but for how far that lies `away` from the mean.
    """

    def __init__(self, readings: Readings, nodes: int) -> None:
        """At least one of the nodes has it."""
        self.readings = readings
        self.nodes = [node for node, _, _ in readings]
        self.errors = [error for _, _, error in readings]
        self.mean = fmean([y for _, y, _ in readings])
        self.even = len(readings) == nodes and self.errors.count(self.errors[0]) == nodes
        self.away = [y - self.mean for _, y, _ in sorted(readings)]
        self.square = sum([away * away for away in self.away])


class Layer:
    """Everything that does not depend on τ. `means` are the levels' for τ = 0."""

    def __init__(self, levels: Sequence[Level], nodes: int, omega: float) -> None:
        """`omega` is ω²."""
        self.means: list[float] = []
        self._precisions: list[float] = []
        self._shares: list[Sequence[float]] = []
        self._levels = levels
        self._pulls = [0.0] * nodes
        self._between = [[0.0] * nodes for _ in range(nodes)]
        self._constant = 0.0
        even, shares = 0.0, [1 / nodes] * nodes
        for level in levels:
            if level.even:
                own = 1 / (omega + level.errors[0])
                self._add_even(level, own, shares)
                even += own
            else:
                self._add(level, [1 / (omega + error) for error in level.errors])
        for node, between in enumerate(self._between):
            between[node] += even
            for other in range(nodes):
                between[other] -= even / nodes

    def _add_even(self, level: Level, own: float, shares: Sequence[float]) -> None:
        """Takes in a level, but for what lies between its nodes: that is the same for each pair, and added up first."""
        nodes = len(shares)
        self._precisions.append(nodes * own)
        self._shares.append(shares)
        self.means.append(level.mean)
        self._constant += log(nodes) + (1 - nodes) * log(own) + own * level.square
        self._pulls = [pull + own * away for pull, away in zip(self._pulls, level.away, strict=True)]

    def _add(self, level: Level, own: Sequence[float]) -> None:
        """Takes in a level; `own` is 1/D of each of its nodes."""
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
    def noise(self) -> list[float]:
        """The part of each level's variance that the trials make."""
        return [
            level.errors[0] / len(shares) if level.even else _dot([share * share for share in shares], level.errors)
            for shares, level in zip(self._shares, self._levels, strict=True)
        ]

    def log_likelihood(self, tau: float) -> float:
        """The residual log-likelihood at τ², but for a constant."""
        root = self._root(tau)
        half = _forward(root, self._pulls)
        determinant = 2 * sum(log(root[k][k]) for k in range(len(root)))
        return -0.5 * (self._constant + determinant - tau * sum(x * x for x in half))

    def solve(self, tau: float) -> "Solution":
        """The levels at τ²."""
        root = self._root(tau)
        shift = [tau * x for x in _backward(root, _forward(root, self._pulls))]
        even = fmean(shift)
        means = [
            mean - (even if level.even else _dot(shares, [shift[node] for node in level.nodes]))
            for mean, shares, level in zip(self.means, self._shares, self._levels, strict=True)
        ]
        return Solution(self, means, root, tau)

    def spread(self, weights: Weighted) -> tuple[float, tuple[float, ...]]:
        """Of a sum of levels: its variance were τ 0, and how much of each node it takes."""
        total, even, nodes = 0.0, 0.0, [0.0] * len(self._pulls)
        for place, weight in weights:
            total += weight * weight / self._precisions[place]
            level = self._levels[place]
            if level.even:
                even += weight / len(nodes)
                continue
            for share, node in zip(self._shares[place], level.nodes, strict=True):
                nodes[node] += weight * share
        return total, tuple([even + share for share in nodes])

    @cached_property
    def _starts(self) -> list[int]:
        """The first node that each has a level in common with: before it, the rows of H and of its factor are 0."""
        return [next((j for j in range(i) if row[j]), i) for i, row in enumerate(self._between)]

    def _root(self, tau: float) -> list[list[float]]:
        """The lower Cholesky factor of H."""
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


class Solution:
    """The levels of a class at one τ and ω."""

    def __init__(self, layer: Layer, means: Sequence[float], root: Sequence[Sequence[float]], tau: float) -> None:
        """`root` is H's."""
        self.layer, self.means, self._root, self._tau = layer, means, root, tau
        self._shared: dict[tuple[float, ...], float] = {}

    def variance(self, weights: Weighted) -> float:
        """Of a sum of levels: p'P⁻¹p."""
        total, nodes = self.layer.spread(weights)
        if nodes not in self._shared:
            self._shared[nodes] = self._tau * sum(x * x for x in _forward(self._root, nodes))
        return total + self._shared[nodes]


def _dot(first: Sequence[float], second: Sequence[float]) -> float:
    return sum([a * b for a, b in zip(first, second, strict=True)])


def _forward(root: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """L x = right."""
    found: list[float] = []
    for row, value in zip(root, right, strict=True):
        found.append((value - sum(a * x for a, x in zip(row, found, strict=False))) / row[len(found)])
    return found


def _backward(root: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """L'x = right."""
    found = list(right)
    for i in reversed(range(len(root))):
        found[i] /= root[i][i]
        for j in range(i):
            found[j] -= root[i][j] * found[i]
    return found
