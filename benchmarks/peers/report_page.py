"""Measures the report of many results of brokers. Compares its time with reading them, and its size with a limit."""

from itertools import product
from random import Random

from benchmarks.peers.measure import Comparison, limit
from benchmarks.peers.reading import against_reading
from tests.unit.report.brokers import CLASSES, SIZES, measured
from tierbench.advice.tables import newest, runs
from tierbench.api.result import BenchmarkResult
from tierbench.report.page import render

MOST = 20
"""The limit for a report, as a multiple of the time to read its results: 3.4 s if that is 0.17 s."""
MEGABYTES = 10
MESSAGES = 1000
LEVELS = {
    "content": ("Random", "SensorJSON", "Zeros", "Ratio30"),
    "delivery": ("AtMostOnce", "AtLeastOnce", "ExactlyOnce"),
    "tls": ("None", "TLSv1.2", "TLSv1.3"),
    "pairs": ("1", "2", "4", "8"),
}


def results() -> list[BenchmarkResult]:
    """Returns three classes, three sizes, and 144 combinations of other levels. Round trips grow with all of them."""
    random = Random(1)
    places = product(enumerate(CLASSES, start=1), enumerate(SIZES, start=1), product(*LEVELS.values()))
    found = []
    for case, ((slowness, server), (larger, size), levels) in enumerate(places, start=1):
        times = [round(3e5 * slowness * larger * random.lognormvariate(0, 0.4)) for _ in range(MESSAGES)]
        found.append(measured(server, size, times, case, dict(zip(LEVELS, levels, strict=True))))
    return found


def comparisons() -> list[Comparison]:
    """Measures the time and the size of the report."""
    known = results()
    page = render(newest(runs(known)), {})
    name = f"report of {len(known)} results"
    return [
        against_reading(f"{name}, time", known, lambda: render(newest(runs(known)), {}), MOST),
        limit(f"{name}, size", "MB", len(page.encode()) / 1e6, MEGABYTES),
    ]
