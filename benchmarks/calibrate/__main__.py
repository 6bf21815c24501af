"""Measures how often the inference is right in a grid of situations, and writes build/calibrate/results.json.

docs/explanation/statistics.md has the targets. `--repetitions 150` takes about two and a half minutes.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import exp, lgamma, log, log1p
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from benchmarks.calibrate.simulate import Figures, Point, run

TARGET: Final = Path("build/calibrate/results.json")
_CHANCE: Final = 0.05
"""The probability that a figure is outside by chance, if each of its points is exactly at the target."""
TAUS: Final = (0.0, 0.03, 0.10)
NODES: Final = (2, 3, 5)


def grid() -> Iterator[Point]:
    """Yields the points of the grid: nodes, trials, deviations of nodes, tails, levels and true differences."""
    for nodes, trials, tau, heavy, levels, ratio in product(
        NODES, (5, 10, 30), TAUS, (False, True), (1, 7), (1.0, 1.05, 1.15)
    ):
        few = trials == 10 or (nodes == 2 and not heavy)
        if few and (levels == 7 or nodes < 5):
            yield Point((nodes, nodes), (trials, trials), tau, heavy, levels, (1.0, ratio))


def points_outside_the_grid() -> dict[str, Point]:
    """Returns points that the publication of the method lacks: unequal numbers, a third class, settings."""
    return {
        "unequal trials": Point((3, 3), (5, 30)),
        "unequal nodes": Point((5, 2), (10, 10)),
        "three classes": Point((2, 2, 3), (10, 10, 10), ratios=(1.0, 1.0, 1.15)),
        "settings on the same nodes": Point((3, 3), tau=0.01, shared=0.10),
    }


def one(name: str, value: float, low: float, high: float) -> dict[str, Any]:
    """Returns a figure and its limits."""
    return {"name": name, "value": round(value, 4), "low": round(low, 4), "high": round(high, 4)}


def least(share: float, count: int, points: int = 1) -> float:
    """Returns the smallest share of hits that the lowest of several points may have in `count` simulations.

    Hits have the probability `share`. The result is the binomial quantile with Šidák's correction (JASA 62, 1967).
    """
    tail, below = 1 - (1 - _CHANCE) ** (1 / points), 0.0
    for hits in range(count):
        ways = lgamma(count + 1) - lgamma(hits + 1) - lgamma(count - hits + 1)
        below += exp(ways + hits * log(share) + (count - hits) * log1p(-share))
        if below > tail:
            return hits / count
    return 1.0


def most(share: float, count: int, points: int = 1) -> float:
    """Returns the largest share that the highest of this many points may have."""
    return 1 - least(1 - share, count, points)


def by_design(found: Sequence[tuple[Point, Figures]]) -> list[list[Figures]]:
    """Groups the figures of points that differ only in the true difference."""
    designs: dict[Point, list[Figures]] = {}
    for point, figures in found:
        designs.setdefault(replace(point, ratios=(1.0, 1.0)), []).append(figures)
    return list(designs.values())


def summarise(found: Sequence[tuple[Point, Figures]]) -> Iterator[dict[str, Any]]:
    """Compares the figures of the grid with the targets."""
    designs = by_design(found)
    repetitions = found[0][1].workload_coverage.of
    count = repetitions * len(found) // len(designs)
    for name in ("level_coverage", "workload_coverage"):
        shares = _shares(designs, name)
        yield one(f"{name}, average", fmean(shares), 0.93, 1.0)
        yield one(f"{name}, least", min(shares), least(0.90, count, len(shares)), 1.0)
    shares = _shares(designs, "mistaken")
    yield one("called at exact equality, average", fmean(shares), 0.0, 0.05)
    yield one("called at exact equality, most", max(shares), 0.0, most(0.10, count, len(shares)))
    for ratio in (1.05, 1.15):
        wrong = [figures.wrong.share for point, figures in found if point.ratios[1] == ratio]
        yield one(f"wrong direction at {ratio}, average", fmean(wrong), 0.0, 0.05)
        yield one(f"wrong direction at {ratio}, most", max(wrong), 0.0, most(0.05, repetitions, len(wrong)))
    usual = Point(ratios=(1.0, 1.15))
    for point, figures in found:
        if point == usual:
            yield one("power, 15%, two nodes", figures.right.share, least(0.75, repetitions), 1.0)


def _shares(designs: Sequence[Sequence[Figures]], name: str) -> list[float]:
    return [fmean(getattr(figures, name).share for figures in same) for same in designs]


def special(repetitions: int) -> Iterator[dict[str, Any]]:
    """Yields figures outside the grid, such as one node, unequal numbers, three classes, and trials cut off."""
    alone = run(Point((1, 1), (10, 10)), repetitions, 1)
    yield one("coverage, one node, by the prior", alone.workload_coverage.share, least(0.93, repetitions), 1.0)
    for name, point in points_outside_the_grid().items():
        figures = run(point, repetitions, 2)
        low = least(0.90, repetitions)
        yield one(f"workload coverage, {name}", figures.workload_coverage.share, low, 1.0)
        yield one(f"level coverage, {name}", figures.level_coverage.share, low, 1.0)
        yield one(f"called at equality, {name}", figures.called.share, 0.0, most(0.10, repetitions))
    yield from edge(10 * repetitions)
    still, drifting = (run(Point(tau=0.0, ratios=(1.0, 1.15), drift=drift), repetitions, 3) for drift in (0.0, 0.10))
    yield one("right, no drift", still.right.share, 0.95, 1.0)
    yield one("right, drift of 10%", drifting.right.share, 0.95, 1.0)
    yield one("called wrongly, drift of 10%", drifting.wrong.share, 0.0, 0.0)
    yield from cut_off(repetitions)
    yield from unknown(repetitions)


def edge(repetitions: int) -> Iterator[dict[str, Any]]:
    """Yields how often intervals contain the truth at the worst points, in the grid and outside it."""
    for name, point, coverage, called in (
        ("heavy tails", Point(tau=0.10, heavy=True, levels=1), 0.90, 0.10),
        ("trials that differ by 10%", Point(tau=0.10, levels=1, noise=0.10), 0.888, 0.112),
    ):
        figures = run(point, repetitions, 9)
        share = figures.workload_coverage.share
        yield one(f"coverage, one level, nodes that differ by 10%, {name}", share, least(coverage, repetitions), 1.0)
        yield one(f"called at equality, the same, {name}", figures.called.share, 0.0, most(called, repetitions))


def cut_off(repetitions: int) -> Iterator[dict[str, Any]]:
    """Yields figures of a class without its slow trials. It is never better, and not worse if it is as good."""
    for ratio in (1.0, 1.15):
        figures = run(Point(ratios=(1.0, ratio), cut_off=True), repetitions, 4)
        yield one(f"called better though cut off, at {ratio}", figures.right.share, 0.0, 0.0)
        yield one(f"called worse though cut off, at {ratio}", figures.wrong.share, 0.0, 0.05)
    behind = run(Point(ratios=(1.5, 1.0), cut_off=True), repetitions, 5)
    yield one("shown to be worse by half though cut off", behind.called.share, 0.75, 1.0)


def unknown(repetitions: int) -> Iterator[dict[str, Any]]:
    """Yields figures without a target: nodes differ by 10%, in one class or both, or classes shift from day to day."""
    for nodes in (2, 5):
        far = run(Point((nodes, nodes), tau=0.10, ratios=(1.0, 1.15)), repetitions, 6)
        yield one(f"power, 15%, nodes that differ by 10%, {nodes} per class", far.right.share, 0.0, 1.0)
        steady = run(Point((nodes, 2), tau=0.10, steady=True), repetitions, 7)
        yield one(
            f"workload coverage, {nodes} nodes that differ by 10%, 2 alike", steady.workload_coverage.share, 0.0, 1.0
        )
    for day in (0.02, 0.05):
        shifted = run(Point(day=day), repetitions, 8)
        yield one(f"workload coverage, classes shifted by {day:.0%} per day", shifted.workload_coverage.share, 0.0, 1.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the figures. Returns 1 if any of them is outside its limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=100)
    repetitions = parser.parse_args(arguments).repetitions
    found = [(point, run(point, repetitions, seed)) for seed, point in enumerate(grid(), start=100)]
    figures = [*summarise(found), *special(repetitions)]
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps(figures, indent=2) + "\n")
    outside = [each for each in figures if not each["low"] <= each["value"] <= each["high"]]
    for each in figures:
        print(
            f"{'NOT ' if each in outside else ''}ok: {each['name']}: {each['value']} ({each['low']} to {each['high']})"
        )
    return int(bool(outside))


if __name__ == "__main__":
    sys.exit(main())
