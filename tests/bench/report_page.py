"""The report of many results of brokers, against the limits that the project has set itself."""

from itertools import product
from random import Random
from statistics import median
from time import perf_counter

from tests.bench.measure import RUNS, Comparison, collecting_seldom, limit
from tests.unit.report.brokers import CLASSES, SIZES, measured
from tierbench.advice.matrix import newest, runs
from tierbench.api.result import BenchmarkResult
from tierbench.report.page import render

SECONDS = 10
MEGABYTES = 10
MESSAGES = 1000
LEVELS = {
    "content": ("Random", "SensorJSON", "Zeros", "Ratio30"),
    "delivery": ("AtMostOnce", "AtLeastOnce", "ExactlyOnce"),
    "tls": ("None", "TLSv1.2", "TLSv1.3"),
    "pairs": ("1", "2", "4", "8"),
}


def results() -> list[BenchmarkResult]:
    """Three classes, three sizes, and 144 combinations of the other levels; round trips grow with all of them."""
    random = Random(1)
    places = product(enumerate(CLASSES, start=1), enumerate(SIZES, start=1), product(*LEVELS.values()))
    found = []
    for case, ((slowness, server), (larger, size), levels) in enumerate(places, start=1):
        times = [round(3e5 * slowness * larger * random.lognormvariate(0, 0.4)) for _ in range(MESSAGES)]
        found.append(measured(server, size, times, case, dict(zip(LEVELS, levels, strict=True))))
    return found


@collecting_seldom()
def comparisons() -> list[Comparison]:
    """How long it takes, and how large it is."""
    known = results()
    times = []
    for _ in range(RUNS):
        started = perf_counter()
        page = render(newest(runs(known)), {})
        times.append(perf_counter() - started)
    name = f"report of {len(known)} results"
    return [
        limit(f"{name}, time", "s", median(times), SECONDS),
        limit(f"{name}, size", "MB", len(page.encode()) / 1e6, MEGABYTES),
    ]
