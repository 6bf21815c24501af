"""Metrics of results, as Prometheus reads them."""

import json
import time
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.core import Metric
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.examples import examples
from tests.unit.results.preflights import blocked, node_network
from tests.unit.results.trials import NOW, line, sample, spec
from tierbench.api.record import RecordStatus
from tierbench.api.result import BenchmarkResult, ResultSpec
from tierbench.domain.results import ResultStore
from tierbench.metrics.operator import OperatorMetrics
from tierbench.metrics.results import SampleCache, render, result_samples
from tierbench.metrics.server import application
from tierbench.results.aggregate import add_trials, conclude, fail

openmetrics_families: Callable[[str], Iterable[Metric]] = openmetrics_parser.text_string_to_metric_families
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def raw_benchmark(run: int = 1, *, complete: bool = True, name: str = "demo") -> dict[str, Any]:
    status: dict[str, Any] = {
        "observedGeneration": 1,
        "phase": "Complete" if complete else "Running",
        "run": {"number": run, "startTime": "2026-01-01T00:00:00Z"},
        "cases": {"total": 1, "finished": 1},
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
    status = conclude(wanted, add_trials(wanted, RecordStatus(), lines, 1), NOW, None)
    body = wanted.to_json() | {"run": run, "benchmark": {"kind": "FileTransferBenchmark", "name": name}}
    case = "-".join(levels.values()).lower()
    return {
        "metadata": {"name": f"ft-{name}-r{run}-{case}", "namespace": "ns"},
        "spec": body,
        "status": json.loads(json.dumps(status.to_json())),
    }


def leader() -> OperatorMetrics:
    metrics = OperatorMetrics()
    metrics.set_leader(True)
    return metrics


async def scrape(
    store: ResultStore, path: str = "/metrics", accept: str = "text/plain", metrics: OperatorMetrics | None = None
) -> tuple[int, str]:
    async with TestClient(TestServer(application(store, metrics or leader()))) as client:
        response = await client.get(path, headers={"Accept": accept})
        return response.status, await response.text()


async def samples(store: ResultStore) -> Samples:
    store.mark_filled()
    status, text = await scrape(store)
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


def filled(raw: dict[str, Any] | None = None) -> ResultStore:
    store = ResultStore()
    store.update_benchmark(raw_benchmark(), deleted=False)
    store.update_result(raw or raw_result(), deleted=False)
    store.mark_filled()
    return store


def condition(kind: str, status: str, reason: str) -> dict[str, Any]:
    when = {"lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}
    return {"type": kind, "status": status, "reason": reason, "message": "So.", **when}


async def test_prometheus_reads_metrics_of_a_result() -> None:
    found = await samples(filled(raw_result(seconds=1.5)))
    labels = {"benchmark": "demo", "server_class": "jetson", "file_size": str(2**30), "cache_state": "Unchanged"}
    assert one(found, "tierbench_file_transfer_duration_mean_seconds", **labels) == 1.5
    assert one(found, "tierbench_file_transfer_duration_seconds_bucket", le="1.0", **labels) == 0
    assert one(found, "tierbench_file_transfer_duration_seconds_bucket", le="2.0", **labels) == 2
    assert one(found, "tierbench_file_transfer_duration_seconds_count", **labels) == 2
    assert one(found, "tierbench_file_transfer_retries", **labels) == 0
    assert one(found, "tierbench_file_transfer_io_bound_trials", **labels) == 1
    assert one(found, "tierbench_file_transfer_io_bound_duration_mean_seconds", **labels) == 1.5
    assert one(found, "tierbench_result_valid", **labels) == 1
    assert one(found, "tierbench_server_io_wait_ratio", **labels) == 0.2
    assert one(found, "tierbench_server_device_read_bytes", **labels) == 2**19
    assert one(found, "tierbench_benchmark_cases", state="Valid") == 1
    assert sum(value for (name, _), value in found.items() if name == "tierbench_benchmark_cases") == 1
    assert one(found, "tierbench_benchmark_phase", phase="Complete") == 1
    assert not [name for name, _ in found if name.startswith(("tierbench_file", "tierbench_res")) and "_total" in name]


async def test_images_have_separate_series() -> None:
    store = filled(raw_result(image="default"))
    store.update_result(raw_result(seconds=2, image="1.19.6"), deleted=False)
    found = await samples(store)
    assert one(found, "tierbench_file_transfer_duration_mean_seconds", image="default") == 1
    assert one(found, "tierbench_file_transfer_duration_mean_seconds", image="1.19.6") == 2


async def test_result_without_totals_has_no_series_of_io_bound_trials() -> None:
    raw = raw_result()
    del raw["status"]["totals"]
    found = await samples(filled(raw))
    assert "tierbench_file_transfer_io_bound_trials" not in {name for name, _ in found}


async def test_openmetrics_has_the_same_samples() -> None:
    store = filled()
    store.update_result(raw_result(name="demo", cacheState="Warm"), deleted=False)
    _, text = await scrape(store)
    _, openmetrics = await scrape(store, accept="application/openmetrics-text; version=1.0.0")
    assert openmetrics.endswith("# EOF\n")
    plain = {family.name: family for family in text_string_to_metric_families(text)}
    families = [family for family in openmetrics_families(openmetrics) if family.name.startswith("tierbench_file")]
    assert len(families) > 5
    for family in families:
        assert (family.type, family.documentation) == (plain[family.name].type, plain[family.name].documentation)
        assert [(s.name, s.labels, s.value) for s in family.samples] == [
            (s.name, s.labels, s.value) for s in plain[family.name].samples
        ]


async def test_states_of_cases_add_up() -> None:
    raw = raw_benchmark(complete=False)
    raw["status"]["cases"] = {"total": 10, "finished": 7, "failed": 1, "invalid": 2}
    store = filled()
    store.update_benchmark(raw, deleted=False)
    found = await samples(store)
    states = ("Valid", "Invalid", "Failed", "Due")
    assert [one(found, "tierbench_benchmark_cases", state=state) for state in states] == [4, 2, 1, 3]


async def test_a_failed_case_has_no_time() -> None:
    raw = raw_result()
    failed = fail(ResultSpec.model_validate(raw["spec"]), RecordStatus(), NOW, "NoReadyNode", "none")
    store = filled(raw | {"status": failed.to_json()})
    found = await samples(store)
    assert one(found, "tierbench_result_measured") == 0
    assert not [name for name, _ in found if "duration_mean" in name or name == "tierbench_result_valid"]
    assert not [name for name, _ in found if "last_success" in name]


async def test_the_last_success_stays_while_the_next_run_is_active_or_fails() -> None:
    store = filled()
    assert one(await samples(store), "tierbench_benchmark_last_success_timestamp_seconds") == NOW.timestamp()
    store.update_benchmark(raw_benchmark(2, complete=False), deleted=False)
    assert one(await samples(store), "tierbench_benchmark_last_success_timestamp_seconds") == NOW.timestamp()
    store.update_benchmark(raw_benchmark(2), deleted=False)
    assert one(await samples(store), "tierbench_benchmark_last_success_timestamp_seconds") == NOW.timestamp()


async def test_missing_nodes_share_one_series() -> None:
    store = filled()
    for number in (1, 2):
        raw = raw_result()
        raw["metadata"]["name"] += f"-{number}"
        raw["spec"]["server"]["node"] = ""
        store.update_result(raw, deleted=False)
    found = await samples(store)
    assert one(found, "tierbench_result_measured", server_node="") == 1


async def test_an_invalid_result_does_not_affect_the_others(caplog: pytest.LogCaptureFixture) -> None:
    store, raw = filled(), raw_result(cacheState="Cold")
    histogram = raw["status"]["histograms"]["durationNanoseconds"] | {"counts": [1, 1]}
    for change in (
        {"spec": raw["spec"] | {"levels": {"fileSize": "much"}}},
        {"spec": raw["spec"] | {"run": "first"}},
        {"status": raw["status"] | {"histograms": {"durationNanoseconds": histogram}}},
    ):
        caplog.clear()
        store.update_result(raw | change, deleted=False)
        assert one(await samples(store), "tierbench_file_transfer_retries") == 0
        assert caplog.text.count("ignoring invalid object") == 1


def test_a_scrape_reads_only_results_that_are_new() -> None:
    store, cache = filled(), SampleCache()
    store.update_result(raw_result(cacheState="Cold"), deleted=False)
    before = cache.read(store.newest_runs())
    changed = raw_result(cacheState="Cold", seconds=3)
    changed["metadata"]["resourceVersion"] = "9"
    store.update_result(changed, deleted=False)
    after = cache.read(store.newest_runs())
    assert [one in before for one in after] == [False, True, False]
    store.update_result(changed, deleted=True)
    assert len(cache.read(store.newest_runs())) == 2


async def test_the_order_of_buckets_changes_no_count() -> None:
    raw = raw_result()
    raw["status"]["histograms"]["durationNanoseconds"] |= {"exponents": [3, -2, 1], "counts": [1, 2, 4]}
    found = await samples(filled(raw))
    counts = [one(found, "tierbench_file_transfer_duration_seconds_bucket", le=le) for le in ("0.125", "0.25", "2.0")]
    assert counts == [0, 2, 6]


async def test_only_factors_of_the_kind_are_labels() -> None:
    raw = raw_result()
    raw["spec"]["levels"] |= {"broker": "kafka", "le": "1", 'a"b': "c"}
    assert one(await samples(filled(raw)), "tierbench_file_transfer_duration_seconds_bucket", le="1.0") == 2
    assert "kafka" not in result_samples(BenchmarkResult.model_validate(raw)).labels


async def test_an_unfinished_result_has_no_series() -> None:
    raw = raw_result()
    raw["status"]["phase"] = "Running"
    assert not [name for name, _ in await samples(filled(raw)) if name.startswith("tierbench_result")]


@given(
    st.lists(
        st.integers(1, 2**42) | st.sampled_from([7_812_500 * 2**power for power in range(19)]), min_size=1, max_size=20
    )
)
async def test_bucket_counts_are_exact(nanoseconds: list[int]) -> None:
    wanted = spec(trials=len(nanoseconds), warmup=0)
    lines = [line(number, nanoseconds=value) for number, value in enumerate(nanoseconds, 1)]
    status = conclude(wanted, add_trials(wanted, RecordStatus(), lines, 1), NOW, None)
    raw = raw_result()
    found = await samples(filled(raw | {"status": status.to_json()}))
    for exponent in range(-7, 12):
        count = one(found, "tierbench_file_transfer_duration_seconds_bucket", le=str(2.0**exponent))
        assert count == sum(Fraction(value, 10**9) <= Fraction(2) ** exponent for value in nanoseconds)
    assert one(found, "tierbench_file_transfer_duration_seconds_bucket", le="+Inf") == len(nanoseconds)


async def test_only_the_newest_complete_run_counts() -> None:
    store = ResultStore()
    store.update_benchmark(raw_benchmark(2, complete=False), deleted=False)
    store.update_result(raw_result(1, seconds=1), deleted=False)
    store.update_result(raw_result(2, seconds=2), deleted=False)
    assert one(await samples(store), "tierbench_file_transfer_duration_mean_seconds") == 1
    store.update_benchmark(raw_benchmark(2), deleted=False)
    assert one(await samples(store), "tierbench_file_transfer_duration_mean_seconds") == 2


async def test_deleting_a_benchmark_ends_its_series() -> None:
    store = ResultStore()
    store.update_benchmark(raw_benchmark(), deleted=False)
    store.update_result(raw_result(), deleted=False)
    store.update_result(raw_result(), deleted=True)
    store.update_benchmark(raw_benchmark(), deleted=True)
    assert not [key for key in await samples(store) if dict(key[1]).get("benchmark")]


@examples(0.4)
@given(
    st.sets(
        st.tuples(st.sampled_from(["1Mi", "1Gi", "1G"]), st.sampled_from(["1", "4"]), st.sampled_from(["Cold", "Warm"]))
    )
)
async def test_no_two_results_give_the_same_series(cases: set[tuple[str, str, str]]) -> None:
    store = ResultStore()
    for name in ("one", "two"):
        store.update_benchmark(raw_benchmark(name=name), deleted=False)
        for size, concurrency, state in cases:
            store.update_result(
                raw_result(name=name, fileSize=size, concurrency=concurrency, cacheState=state), deleted=False
            )
    found = await samples(store)
    assert len([key for key in found if key[0] == "tierbench_file_transfer_retries"]) == 2 * len(cases)


async def test_operator_is_not_ready_before_all_results_are_read() -> None:
    status, text = await scrape(ResultStore())
    assert status == 503
    assert "still reading" in text
    assert (await scrape(ResultStore(), "/readyz"))[0] == 503
    assert (await scrape(ResultStore(), "/healthz"))[0] == 200


async def test_a_waiting_operator_is_alive_and_reports_why_it_waits() -> None:
    metrics = OperatorMetrics()
    metrics.waits_for = "Another operator watches the same namespaces."
    found = await scrape(ResultStore(), "/readyz", metrics=metrics)
    assert found == (503, "Another operator watches the same namespaces.\n")
    assert (await scrape(ResultStore(), "/healthz", metrics=metrics))[0] == 200


async def test_a_standby_is_ready_and_exposes_no_results() -> None:
    """Otherwise, Prometheus would have each result twice."""
    metrics, store = OperatorMetrics(), filled()
    assert await scrape(store, "/readyz", metrics=metrics) == (503, "The leader is not known yet.\n")
    metrics.leader = "tierbench-7d9f-x2x4z"
    assert await scrape(store, "/readyz", metrics=metrics) == (200, "standby; the leader is tierbench-7d9f-x2x4z\n")
    _, text = await scrape(store, metrics=metrics)
    assert "tierbench_leader 0.0" in text
    assert "process_cpu_seconds_total" in text
    assert "tierbench_result_measured" not in text
    metrics.set_leader(True)
    _, text = await scrape(store, metrics=metrics)
    assert "tierbench_leader 1.0" in text
    assert "tierbench_result_measured" in text


async def test_a_standby_is_not_ready_before_all_results_are_read() -> None:
    assert (await scrape(ResultStore(), "/readyz", metrics=OperatorMetrics()))[0] == 503


def test_a_benchmark_long_past_its_deadline_is_overdue() -> None:
    metrics = OperatorMetrics()
    metrics.set_deadline("a", 30)
    assert not metrics.overdue()
    metrics.set_deadline(("FileTransferBenchmark", "ns", "b"), -1000)
    assert metrics.overdue() == ("FileTransferBenchmark/ns/b",)
    metrics.forget(("FileTransferBenchmark", "ns", "b"))
    assert not metrics.overdue()


def test_a_task_that_takes_too_long_is_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = OperatorMetrics()
    with metrics.track("advisor"):
        assert not metrics.overdue()
        now = time.monotonic() + 1000
        monkeypatch.setattr(time, "monotonic", lambda: now)
        assert metrics.overdue() == ("advisor",)
    assert not metrics.overdue()


@pytest.mark.parametrize(("status", "value"), [("True", 1), ("False", 0)])
async def test_known_conditions_are_exposed(status: str, value: int) -> None:
    raw, store = raw_benchmark(), filled()
    raw["status"]["conditions"] = [
        condition("Regressed", status, "So"),
        condition("Passed", status, "Running"),
        condition("Complete", status, "So"),
    ]
    store.update_benchmark(raw, deleted=False)
    found = await samples(store)
    assert one(found, "tierbench_benchmark_regressed", benchmark="demo", benchmark_namespace="ns") == value
    assert not [name for name, _ in found if name == "tierbench_benchmark_passed"]


def test_each_pair_of_nodes_has_the_known_series_of_its_preflight() -> None:
    held = raw_benchmark()
    held["status"]["run"]["networks"] = [node_network().to_json(), blocked().to_json()]
    store = filled(raw_result(fileSize="1Gi"))
    store.update_result(raw_result(fileSize="2Gi"), deleted=False)
    store.update_benchmark(held, deleted=False)
    found = {
        sample.name: (sample.labels["server_node"], sample.labels["client_node"], sample.value)
        for family in text_string_to_metric_families("".join(render(SampleCache().read(store.newest_runs()))))
        for sample in family.samples
        if sample.name.startswith("tierbench_preflight")
    }
    assert found == {
        "tierbench_preflight_upload_bits_per_second": ("cloud-1", "user-1", 90e6),
        "tierbench_preflight_download_bits_per_second": ("cloud-1", "user-1", 80e6),
        "tierbench_preflight_ping_mean_seconds": ("cloud-1", "user-1", 0.0005),
        "tierbench_preflight_ping_lost_ratio": ("cloud-1", "user-1", 0.1),
    }
