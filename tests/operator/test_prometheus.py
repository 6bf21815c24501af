"""A real Prometheus scrapes the operator, and answers the queries of the dashboards and documents."""

import json
import math
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dashboards import dashboards
from tests.e2e.benchmarks import SHORT_PREFLIGHT, Running, broker, file_transfer, network
from tests.e2e.kubectl import Kubectl, wait_for
from tests.operator.site import Site
from tests.ports import free_ports

TLS = ["None", "TLSv1.3"]
UNUSED_LABELS = {
    "certificate",
    "client_access_network",
    "congestion_control",
    "groups",
    "handshake",
    "image",
    "link",
    "mqtt_version",
}
"""Labels that no result of these tests has."""


@pytest.fixture
def prometheus(site: Site, tmp_path: Path) -> Iterator[str]:
    """Starts a Prometheus whose only target is the operator, and yields its URL."""
    targets = [{"targets": [site.metrics_address()]}]
    scrape = {"job_name": "tierbench", "scrape_interval": "1s", "static_configs": targets}
    configuration = tmp_path / "prometheus.yml"
    configuration.write_text(yaml.safe_dump({"scrape_configs": [scrape]}))
    (port,) = free_ports(1)
    flags = [f"--config.file={configuration}", f"--storage.tsdb.path={tmp_path}/data"]
    process = subprocess.Popen(["prometheus", *flags, f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"])
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait()


def ask(prometheus: str, path: str, **parameters: str) -> Any:
    """Returns the data of a response of Prometheus' API."""
    with urllib.request.urlopen(
        f"{prometheus}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=5
    ) as answer:
        return json.load(answer)["data"]


def query(prometheus: str, expression: str) -> list[dict[str, Any]]:
    """Returns the samples of an instant query, or none while Prometheus starts."""
    try:
        found: list[dict[str, Any]] = ask(prometheus, "query", query=expression)["result"]
    except OSError:
        return []
    return found


def numbers(prometheus: str, expression: str) -> list[float]:
    """Returns the finite values of an instant query."""
    values = [float(sample["value"][1]) for sample in query(prometheus, expression)]
    return [value for value in values if math.isfinite(value)]


def assert_panels_and_variables_have_data(prometheus: str, namespace: str) -> None:
    """Asserts that every query of every panel returns numbers, and that every variable has values."""
    for dashboard in dashboards():
        found = query(prometheus, dashboard.shown(dashboard.varying, namespace=namespace)) if dashboard.varying else []
        by = [sample["metric"]["label"] for sample in found]
        assert "tls" in by or dashboard.name not in {"brokers", "file-transfers"}
        for title, target in dashboard.targets:
            expression = dashboard.shown(target["expr"], by, namespace=namespace)
            wait_for(f"{dashboard.name}, {title}: {expression}", partial(numbers, prometheus, expression), 30)
        for name, (series, label) in dashboard.label_queries.items():
            if label in UNUSED_LABELS:
                continue
            matching = {"match[]": dashboard.shown(series, namespace=namespace)}
            assert ask(prometheus, f"label/{label}/values", **matching), f"{dashboard.name}: no values for {name}"


def test_prometheus_answers_the_queries_of_dashboards_and_documents(
    site: Site, kubectl: Kubectl, prometheus: str
) -> None:
    both = {"nodeClassNames": ["cloud", "jetson-nano"]}
    policy = {"constraints": {"maxRetries": 1000}}
    files = file_transfer(servers=both, fileSizes=["1Mi", "128Mi"], cacheState=["Cold"], tls=TLS, runPolicy=policy)
    networks = network(
        clients={"nodeClassNames": ["user", "jetson-nano"], "modes": ["Simultaneous"]},
        protocols=["TCP", "UDP"],
        directions=["Bidirectional"],
        udp={"kilobitsPerSecond": 1000},
        ping={"count": 5, "intervalMilliseconds": 10, "underLoad": True},
        durationSeconds=5,
        repetitions=3,
        trim={"lowest": 1, "highest": 1},
    )
    kafka = broker(
        "kafka",
        brokers=[{"name": "kafka", "kafka": {}}],
        pairs=[2],
        compression=["None", "Gzip"],
        encryption=["None", "AES128GCM"],
        preflight=SHORT_PREFLIGHT,
    )
    slow = {"type": "OpenLoop", "messagesPerSecond": 40}  # long enough for the ticks of the nodes' processors
    kubectl.apply(files, broker(servers=both, tls=TLS, pacing=slow), kafka, networks)
    Running(kubectl).wait_for_phase("Complete")
    Running(kubectl, "brokers", "brokerbenchmark").wait_for_phase("Complete")
    Running(kubectl, "kafka", "brokerbenchmark").wait_for_phase("Complete")
    Running(kubectl, "networks", "networkbenchmark").wait_for_phase("Complete")
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
    answered(f"tierbench_file_transfer_io_bound_trials{{{mine}}}", 8)
    bucket = f"tierbench_file_transfer_duration_seconds_bucket{{{mine}}}"
    answered(f"histogram_quantile(0.5, sum by (le, server_class) ({bucket}))", 2)
    answered(f'tierbench_benchmark_phase{{{mine},phase="Complete"}} == 1', 4)
    received = answered(f"tierbench_broker_messages_received{{{mine}}}", 8)
    results = [result["status"]["counts"] for result in kubectl.list("benchmarkresults")]
    expected = sorted(counts["messages"]["received"] for counts in results if "messages" in counts)
    assert sorted(float(sample["value"][1]) for sample in received) == expected
    trips = f"tierbench_broker_round_trip_seconds_bucket{{{mine}}}"
    for sample in answered(f"histogram_quantile(0.9, sum by (le, server_class) ({trips}))", 2):
        assert 0 < float(sample["value"][1]) < 1
    # Rates of an idle operator are empty, so one benchmark keeps running.
    with site.holding_clients(Running(kubectl, "busy"), file_transfer("busy")):
        assert_panels_and_variables_have_data(prometheus, kubectl.namespace)
        kubectl("delete", "tbf", "files", "busy", "--wait")
    wait_for("no series of a deleted benchmark", lambda: not query(prometheus, mean), 30)
