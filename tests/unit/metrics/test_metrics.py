"""What /metrics says of results: read back as Prometheus reads it."""

import json
from datetime import UTC, datetime
from typing import Any

from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.results.test_record import NOW, line, sample, spec
from tierbench.api.result import ResultStatus
from tierbench.metrics.cache import ResultCache
from tierbench.metrics.operator import OperatorMetrics
from tierbench.metrics.server import application
from tierbench.results.record import conclude, record

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def raw_benchmark(run: int = 1, *, complete: bool = True, name: str = "demo") -> dict[str, Any]:
    status: dict[str, Any] = {
        "observedGeneration": 1,
        "phase": "Complete" if complete else "Running",
        "run": {"number": run, "startTime": "2026-01-01T00:00:00Z"},
        "cases": {"total": 1, "ended": 1},
    }
    if complete:
        status["run"]["completionTime"] = "2026-01-01T01:00:00Z"
    return {"kind": "FileTransferBenchmark", "metadata": {"name": name, "namespace": "ns"}, "status": status}


def raw_result(run: int = 1, *, name: str = "demo", seconds: float = 1.0, **levels: Any) -> dict[str, Any]:
    lines = [
        line(1, nanoseconds=round(seconds * 1e9), server=sample(deviceReadBytes=2**20, ioWaitPartsPerMillion=200_000)),
        line(2, nanoseconds=round(seconds * 1e9), server=sample(deviceReadBytes=0)),
    ]
    wanted = spec(trials=2, warmup=0, **levels)
    status = conclude(wanted, record(wanted, ResultStatus(), lines, 1), NOW, None)
    body = wanted.to_json() | {"run": run, "benchmark": {"kind": "FileTransferBenchmark", "name": name}}
    case = "-".join(levels.values()).lower()
    return {
        "metadata": {"name": f"ft-{name}-r{run}-{case}", "namespace": "ns"},
        "spec": body,
        "status": json.loads(json.dumps(status.to_json())),
    }


async def scrape(cache: ResultCache, path: str = "/metrics") -> tuple[int, str]:
    async with TestClient(TestServer(application(cache, OperatorMetrics()))) as client:
        response = await client.get(path)
        return response.status, await response.text()


async def samples(cache: ResultCache) -> Samples:
    cache.mark_filled()
    status, text = await scrape(cache)
    assert status == 200
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for item in family.samples:
            key = (item.name, frozenset(item.labels.items()))
            assert key not in found, f"{key} twice"
            found[key] = item.value
    return found


def one(found: Samples, name: str, **labels: str) -> float:
    (value,) = [v for (n, known), v in found.items() if n == name and set(labels.items()) <= known]
    return value


async def test_a_result_as_prometheus_reads_it() -> None:
    cache = ResultCache()
    cache.see_benchmark(raw_benchmark(), deleted=False)
    cache.see(raw_result(seconds=1.5), deleted=False)
    found = await samples(cache)
    labels = {"benchmark": "demo", "server_class": "jetson", "file_size": str(2**30), "cache_state": "Natural"}
    assert one(found, "tierbench_file_transfer_duration_mean_seconds", **labels) == 1.5
    assert one(found, "tierbench_file_transfer_duration_seconds_bucket", le="1.0", **labels) == 0
    assert one(found, "tierbench_file_transfer_duration_seconds_bucket", le="2.0", **labels) == 2
    assert one(found, "tierbench_file_transfer_duration_seconds_count", **labels) == 2
    assert one(found, "tierbench_file_transfer_retries", **labels) == 0
    assert one(found, "tierbench_file_transfer_io_bound_trials", **labels) == 1
    assert one(found, "tierbench_file_transfer_io_bound_duration_mean_seconds", **labels) == 1.5
    assert one(found, "tierbench_result_valid", **labels) == 1
    ended = datetime(2026, 1, 1, 1, tzinfo=UTC).timestamp()
    assert one(found, "tierbench_benchmark_last_success_timestamp_seconds", benchmark="demo") == ended


async def test_only_the_newest_complete_run_counts() -> None:
    cache = ResultCache()
    cache.see_benchmark(raw_benchmark(2, complete=False), deleted=False)
    cache.see(raw_result(1, seconds=1), deleted=False)
    cache.see(raw_result(2, seconds=2), deleted=False)
    assert one(await samples(cache), "tierbench_file_transfer_duration_mean_seconds") == 1
    cache.see_benchmark(raw_benchmark(2), deleted=False)
    assert one(await samples(cache), "tierbench_file_transfer_duration_mean_seconds") == 2


async def test_deleting_a_benchmark_ends_its_series() -> None:
    cache = ResultCache()
    cache.see_benchmark(raw_benchmark(), deleted=False)
    cache.see(raw_result(), deleted=False)
    cache.see(raw_result(), deleted=True)
    cache.see_benchmark(raw_benchmark(), deleted=True)
    assert not [key for key in await samples(cache) if dict(key[1]).get("benchmark")]


@settings(deadline=None, max_examples=30)
@given(
    st.sets(
        st.tuples(st.sampled_from(["1Mi", "1Gi", "1G"]), st.sampled_from(["1", "4"]), st.sampled_from(["Cold", "Warm"]))
    )
)
async def test_no_two_results_give_the_same_series(cases: set[tuple[str, str, str]]) -> None:
    cache = ResultCache()
    for name in ("one", "two"):
        cache.see_benchmark(raw_benchmark(name=name), deleted=False)
        for size, concurrency, state in cases:
            cache.see(raw_result(name=name, fileSize=size, concurrency=concurrency, cacheState=state), deleted=False)
    found = await samples(cache)
    assert len([key for key in found if key[0] == "tierbench_file_transfer_retries"]) == 2 * len(cases)


async def test_not_before_everything_was_seen() -> None:
    status, text = await scrape(ResultCache())
    assert status == 503
    assert "still being read" in text
    assert (await scrape(ResultCache(), "/readyz"))[0] == 503
    assert (await scrape(ResultCache(), "/healthz"))[0] == 200


def test_a_loop_that_is_long_overdue_is_stuck() -> None:
    metrics = OperatorMetrics()
    metrics.expect("a", 30)
    assert not metrics.stuck()
    metrics.expect("b", -1000)
    assert metrics.stuck()
    metrics.forget("b")
    assert not metrics.stuck()
