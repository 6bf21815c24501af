"""Compares the time of commands of `kubectl tierbench` with the time to read the results."""

import gc
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from time import perf_counter

from benchmarks.peers.measure import RUNS, Comparison
from tierbench.api.result import BenchmarkResult
from tierbench.cli.main import GARBAGE_THRESHOLD


def against_reading(
    name: str, results: Sequence[BenchmarkResult], make: Callable[[], object], high: float
) -> Comparison:
    """Compares two durations. `high` is the largest ratio."""
    documents = [json.dumps(result.to_json()) for result in results]
    with _collecting_seldom():
        pairs = [(_seconds(make), _seconds(lambda: _read(documents))) for _ in range(RUNS + 1)][1:]
    ours, peer = (median(pair[side] for pair in pairs) for side in (0, 1))
    return Comparison(name, "s", ours, peer, "reading them", median(one / other for one, other in pairs), high=high)


def _read(documents: Sequence[str]) -> list[BenchmarkResult]:
    return [BenchmarkResult.model_validate(json.loads(document)) for document in documents]


def _seconds(make: Callable[[], object]) -> float:
    started = perf_counter()
    assert make()
    return perf_counter() - started


@contextmanager
def _collecting_seldom() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(GARBAGE_THRESHOLD)
    yield
    gc.set_threshold(*before)
