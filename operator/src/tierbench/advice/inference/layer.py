"""The linear algebra of one class at one ω: levels are independent but for how each node differs throughout.

Node k has the covariance V = τ²11' + diag(D), D its trial noise plus ω². The levels have the precision P = Σ V⁻¹ over
nodes, a diagonal matrix Λ less one of the rank of the nodes. By Woodbury's identity all that is needed is a matrix of
the nodes, H = I + τ²W, with W free of τ.
"""

from collections.abc import Sequence
from functools import cached_property
from math import log, sqrt

Readings = Sequence[tuple[int, float, float]]
"""What the nodes say of a level: the node's number, its log mean and the variance of that."""
Weighted = Sequence[tuple[int, float]]
"""Places of levels, and their weights."""


class Layer:
    """Everything that does not depend on τ. `means` are the levels' for τ = 0."""

    def __init__(self, levels: Sequence[Readings], nodes: int, omega: float) -> None:
        """`omega` is ω²; at least one node has each level."""
        self.means: list[float] = []
        self._precisions: list[float] = []
        self._shares: list[tuple[float, ...]] = []
        self._levels = levels
        self._pulls = [0.0] * nodes
        self._even = (1 / nodes,) * nodes
        self._between = [[0.0] * nodes for _ in range(nodes)]
        self._constant = 0.0
        even = sum([self._add(readings, [1 / (omega + error) for _, _, error in readings]) for readings in levels])
        for node, between in enumerate(self._between):
            between[node] += even
            for other in range(nodes):
                between[other] -= even / nodes

    def _add(self, readings: Readings, own: Sequence[float]) -> float:
        """Takes in a level; `own` is 1/D of each node. That is returned where all nodes have the same: then what lies
        between them is the same for each pair, and levels of that kind are added up first.
        """
        precision = sum(own)
        mean = sum([d * y for d, (_, y, _) in zip(own, readings, strict=True)]) / precision
        even = len(own) == len(self._pulls) and own.count(own[0]) == len(own)
        shares = self._even if even else tuple([d / precision for d in own])
        self.means.append(mean)
        self._precisions.append(precision)
        self._shares.append(shares)
        self._constant += log(precision) - sum(map(log, own))
        for d, (node, y, _) in zip(own, readings, strict=True):
            pull = d * (y - mean)
            self._constant += pull * (y - mean)
            self._pulls[node] += pull
        if even:
            return own[0]
        for d, (node, _, _) in zip(own, readings, strict=True):
            between = self._between[node]
            between[node] += d
            for share, (other, _, _) in zip(shares, readings, strict=True):
                between[other] -= d * share
        return 0.0

    @cached_property
    def noise(self) -> list[float]:
        """The part of each level's variance that the trials make."""
        return [
            sum([share * share * error for share, (_, _, error) in zip(shares, readings, strict=True)])
            for shares, readings in zip(self._shares, self._levels, strict=True)
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
        means = [
            mean - sum([share * shift[node] for share, (node, _, _) in zip(shares, readings, strict=True)])
            for mean, shares, readings in zip(self.means, self._shares, self._levels, strict=True)
        ]
        return Solution(self, means, root, tau)

    def spread(self, weights: Weighted) -> tuple[float, tuple[float, ...]]:
        """Of a sum of levels: its variance were τ 0, and how much of each node it takes."""
        total, nodes = 0.0, [0.0] * len(self._pulls)
        for place, weight in weights:
            total += weight * weight / self._precisions[place]
            for share, (node, _, _) in zip(self._shares[place], self._levels[place], strict=True):
                nodes[node] += weight * share
        return total, tuple(nodes)

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
