"""A real Prometheus that scrapes the operator and answers the queries that people ask."""

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.benchmarks import Running, broker, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import Release
from tests.ports import free_ports


@pytest.fixture
def prometheus(release: Release, tmp_path: Path) -> Iterator[str]:
    """The URL of a Prometheus whose one target is the operator."""
    address = release.kubectl.get("pod", release.pod)["status"]["podIP"]
    scrape = {"job_name": "tierbench", "scrape_interval": "1s", "static_configs": [{"targets": [f"{address}:8080"]}]}
    configuration = tmp_path / "prometheus.yml"
    configuration.write_text(yaml.safe_dump({"scrape_configs": [scrape]}))
    (port,) = free_ports(1)
    flags = [f"--config.file={configuration}", f"--storage.tsdb.path={tmp_path}/data"]
    process = subprocess.Popen(["prometheus", *flags, f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"])
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait()


def query(prometheus: str, expression: str) -> list[dict[str, Any]]:
    """The samples that an instant query gives; none while Prometheus starts."""
    parameters = urllib.parse.urlencode({"query": expression})
    try:
        with urllib.request.urlopen(f"{prometheus}/api/v1/query?{parameters}", timeout=5) as response:
            found: list[dict[str, Any]] = json.load(response)["data"]["result"]
            return found
    except OSError:
        return []


def test_queries_over_a_real_run(kubectl: Kubectl, prometheus: str) -> None:
    both = {"nodeClasses": ["cloud", "jetson-nano"]}
    kubectl.apply(file_transfer(servers=both, fileSizes=["1Mi", "16Mi"]), broker(servers=both))
    Running(kubectl).wait_for_phase("Complete")
    Running(kubectl, "brokers", "brokerbenchmark").wait_for_phase("Complete")
    mine = f'benchmark_namespace="{kubectl.namespace}"'

    def answered(expression: str, series: int) -> list[dict[str, Any]]:
        return wait_for(
            f"{series} series of {expression}",
            lambda: found if len(found := query(prometheus, expression)) == series else None,
            30,
        )

    mean = f"tierbench_file_transfer_duration_mean_seconds{{{mine}}}"
    by_class = answered(f"avg by (server_class) ({mean})", 2)
    assert {sample["metric"]["server_class"] for sample in by_class} == {"cloud", "jetson-nano"}
    assert all(0 < float(sample["value"][1]) < 10 for sample in by_class)
    answered(f"sum by (server_class) (tierbench_file_transfer_retries{{{mine}}})", 2)
    answered(f"tierbench_file_transfer_io_bound_trials{{{mine}}}", 4)
    bucket = f"tierbench_file_transfer_duration_seconds_bucket{{{mine}}}"
    answered(f"histogram_quantile(0.5, sum by (le, server_class) ({bucket}))", 2)
    answered(f'tierbench_benchmark_phase{{{mine},phase="Complete"}} == 1', 2)
    received = answered(f"tierbench_broker_messages_received{{{mine}}}", 2)
    assert {sample["value"][1] for sample in received} == {"100"}
    trips = f"tierbench_broker_round_trip_seconds_bucket{{{mine}}}"
    for sample in answered(f"histogram_quantile(0.9, sum by (le, server_class) ({trips}))", 2):
        assert 0 < float(sample["value"][1]) < 1

    kubectl("delete", "ftb", "files", "--wait")
    wait_for("no series of a deleted benchmark", lambda: not query(prometheus, mean), 30)
