"""The preflight is the workload of a NetworkBenchmark, with a few differences."""

from dataclasses import replace
from typing import Any

import pytest

from tests.plans import Plan, plan_in
from tests.unit.domain.objects import IMAGES, OWNER, benchmark, broker_benchmark, network_benchmark
from tierbench.api.benchmark import Benchmark, ClientPlacement
from tierbench.api.node_class import NodeClassSpec
from tierbench.api.policy import Policy
from tierbench.kinds.network.workload import NetworkWorkload
from tierbench.kinds.registry import workload_of
from tierbench.workloads.plan import Case, ScheduledTrial, ServerPlacement
from tierbench.workloads.workload import ClientInstance, ClientPart, RunningServer, ServerInstance, Target, Workload

SLOT = ServerPlacement("cloud", 0)
CLASS = NodeClassSpec.model_validate({"nodeSelector": {"matchLabels": {"hw": "cloud"}}})


def preflight(asked: Benchmark) -> tuple[Workload, ...]:
    return workload_of(replace(OWNER, kind=asked.KIND.kind), asked.spec, IMAGES, Policy()).preflight()


def job(workload: Workload) -> dict[str, Any]:
    """Returns the pod's spec of the client's Job."""
    levels = {factor.name: factor.levels[0] for factor in workload.factors(SLOT)}
    instance = ClientInstance("job", 1, 9, 1, ClientPart(0, "user"), "u1", CLASS, (ScheduledTrial(9, 1),), 60)
    service = {"metadata": {"name": "server", "namespace": "default"}, "spec": {"clusterIP": "10.0.0.1"}}
    ports = [{"name": "iperf3-1", "nodePort": 30001}]
    server = RunningServer(
        ServerInstance("server", "server-uid-1", 1, 0, SLOT, "c1", CLASS),
        "10.1.0.1",
        "192.0.2.1",
        {**service, "spec": {**service["spec"], "ports": ports}},
        service,
    )
    manifest = workload.client(instance, [Target(Case(9, SLOT, ClientPlacement("user"), levels), server, 60)])
    pod: dict[str, Any] = manifest["spec"]["template"]["spec"]
    return pod


def plan(workload: Workload) -> Plan:
    return plan_in(job(workload)["containers"][0]["args"])


@pytest.mark.parametrize("asked", [benchmark(), broker_benchmark(), network_benchmark()], ids=lambda one: one.KIND.kind)
def test_benchmark_has_no_preflight_by_default(asked: Benchmark) -> None:
    assert preflight(asked) == ()


@pytest.mark.parametrize("make", [benchmark, broker_benchmark])
def test_preflight_uploads_with_echo_requests_then_downloads_without(make: Any) -> None:
    up, down = preflight(make(preflight={"durationSeconds": 2, "ping": {"count": 7, "intervalMilliseconds": 20}}))
    assert isinstance(up, NetworkWorkload)
    same = {"kind": "Network", "warmupTrials": 0, "durationSeconds": 2, "traceIntervalMilliseconds": 0, "parts": 1}
    for measured, direction in ((up, "Upload"), (down, "Download")):
        assert plan(measured).items() >= {**same, "direction": direction}.items()
        assert plan(measured)["schedule"] == [{"case": 9, "trial": 1}]
    assert plan(up)["ping"].items() >= {"count": 7, "intervalMilliseconds": 20}.items()
    assert plan(down)["ping"]["count"] == 0
    assert [workload.server_placements() for workload in (up, down)] == [
        (ServerPlacement("cloud", 0), ServerPlacement("jetson", 0))
    ] * 2
    assert "sysctls" in job(up)["securityContext"]
    assert "sysctls" not in job(down)["securityContext"], "a download without ping needs no sysctl"


@pytest.mark.parametrize(
    ("access", "address"),
    [("PodIP", "10.1.0.1:5201"), ("NodePort", "192.0.2.1:30001"), ("HostNetwork", "192.0.2.1:5201")],
)
def test_preflight_uses_the_access_of_the_service(access: str, address: str) -> None:
    for workload in preflight(benchmark(preflight={}, access=access)):
        assert plan(workload)["targets"][0]["server"] == address


def test_preflight_has_time_for_load_ping_and_a_busy_server() -> None:
    up, down = preflight(
        benchmark(preflight={"durationSeconds": 60, "ping": {"count": 100, "intervalMilliseconds": 1000}})
    )
    assert up.deadline_seconds(1) >= 60 + 100 + 90
    assert down.deadline_seconds(1) >= 60 + 90
