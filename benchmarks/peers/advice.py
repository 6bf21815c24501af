"""Compares the time of an advice over many results with the time to read them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import product
from random import Random
from typing import Any

from benchmarks.peers.measure import Comparison
from benchmarks.peers.reading import against_reading
from tierbench.advice.advise import advise
from tierbench.api.model import Metadata
from tierbench.api.placement_advice import PlacementAdviceSpec
from tierbench.api.record import RecordStatus
from tierbench.api.result import BenchmarkResult, ResultSpec
from tierbench.results.aggregate import conclude

RESULTS = 10_000
MOST = 4
"""The limit for an advice, as a multiple of the time to read its results: 2.4 s if that is 0.6 s."""
CLASSES = ("cloud", "jetson-nano", "raspberry-pi-4", "raspberry-pi-5")
NODES = 5
SIZES = tuple(f"{number}Mi" for number in range(1, 26))
STATES = ("Unchanged", "Warm", "Cold", "Other", "Last")
TLS = ("None", "TLSv1.2", "TLSv1.3", "Other")
TRIALS = 10


def results() -> Iterator[BenchmarkResult]:
    """Yields the results of four classes with five nodes each. Times grow with the size."""
    random = Random(1)
    places = product(enumerate(CLASSES), range(NODES), SIZES, STATES, TLS)
    for case, ((speed, server), node, size, state, tls) in enumerate(places, start=1):
        base = int(size[:-2]) * 10**7 * (1 + speed / 20)
        levels = {"fileSize": size, "cacheState": state, "tls": tls, "concurrency": "1"}
        yield _result(case, server, f"{server}-{node}", levels, [base * random.gauss(1, 0.03) for _ in range(TRIALS)])


def _result(case: int, server: str, node: str, levels: dict[str, str], times: list[float]) -> BenchmarkResult:
    trials: list[dict[str, Any]] = [
        {
            "trial": number,
            "outcome": "Completed",
            "startTime": "2026-11-20T22:00:00Z",
            "durationNanoseconds": round(time),
            "transfer": {"bytes": 2**20, "downloads": 1},
        }
        for number, time in enumerate(times, start=1)
    ]
    spec = {
        "benchmark": {"kind": "FileTransferBenchmark", "name": "files"},
        "run": 1,
        "case": case,
        "levels": levels,
        "server": {"nodeClass": server, "node": node},
        "client": {"nodeClass": "user", "node": "user-1"},
        "trials": TRIALS,
    }
    wanted = ResultSpec.model_validate(spec)
    status = conclude(wanted, RecordStatus.model_validate({"trials": trials}), datetime.now(UTC), None)
    metadata = Metadata(name=f"r{case}", namespace="default")
    return BenchmarkResult(metadata=metadata, spec=wanted, status=status)


def comparisons() -> list[Comparison]:
    """Measures a mean over a workload, throughput over all levels, and a median."""
    measured = list(results())
    assert len(measured) == RESULTS
    workload = {"fileSizes": [{"size": "5Mi", "weight": 3}, {"size": "20Mi"}]}
    median_time = {"type": "Percentile", "percentile": "P50"}
    questions = {
        "mean time": PlacementAdviceSpec.model_validate({"clientClassName": "user", "workload": workload}),
        "throughput": PlacementAdviceSpec.model_validate({"clientClassName": "user"}),
        "median": PlacementAdviceSpec.model_validate({"clientClassName": "user", "objective": median_time}),
    }
    return [
        against_reading(f"advice over {RESULTS} results, {name}", measured, partial(_ranking, spec, measured), MOST)
        for name, spec in questions.items()
    ]


def _ranking(spec: PlacementAdviceSpec, measured: list[BenchmarkResult]) -> object:
    return advise(spec, measured, datetime.now(UTC)).ranking
