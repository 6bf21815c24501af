"""The API server enforces the Pod Security Standards on the pods of a benchmark."""

from dataclasses import replace

import pytest

from tests.api.server import ApiServer, RefusedError
from tests.unit.domain.objects import IMAGES, benchmark, broker_benchmark, network_benchmark
from tests.unit.domain.world import World
from tests.unit.workloads.test_pods import templates
from tierbench.api.benchmark import Access, Benchmark
from tierbench.api.policy import Policy

pytestmark = pytest.mark.apiserver

LEVELS = ("restricted", "baseline")
TLS = ["None", "TLSv1.3"]
BROKERS = [{"name": "mosquitto", "mosquitto": {}}, {"name": "kafka", "kafka": {}}]
HTTP = [{"name": "nginx", "http": {}}]
ALONE = {"nodeClassNames": ["user"], "subscribers": {"type": "None"}}
CLAIM = {"volumeClaimTemplate": {"storageClassName": "fast"}}
ADMITTED: dict[str, Benchmark] = {
    "files": benchmark(storage={"emptyDir": {}}, tls=TLS, preflight={}),
    "files-on-a-claim": benchmark(storage=CLAIM, access="ClusterIP"),
    "brokers": broker_benchmark(brokers=BROKERS, tls=TLS),
    "http": broker_benchmark(brokers=HTTP, tls=TLS, clients=ALONE, pacing={"type": "Acknowledged"}),
    "paho": broker_benchmark(clients={"nodeClassNames": ["user"], "engine": "Paho"}),
    "sinetstream": broker_benchmark(clients={"nodeClassNames": ["user"], "engine": "SINETStream"}),
    "network": network_benchmark(),
    "wget": benchmark(directions=["Upload"], clients={"nodeClassNames": ["user"], "engines": ["Wget"]}),
}
REFUSED: dict[str, tuple[Benchmark, str]] = {
    "host-path": (benchmark(storage={"hostPath": {"path": "/var/lib/tierbench"}}), "hostPath"),
    "files-in-the-nodes-network": (
        benchmark(storage=CLAIM, access="HostNetwork"),
        "host namespaces (hostNetwork=true)",
    ),
    "broker-in-the-nodes-network": (broker_benchmark(access="HostNetwork"), "host namespaces (hostNetwork=true)"),
    "iperf3-in-the-nodes-network": (network_benchmark(access="HostNetwork"), "host namespaces (hostNetwork=true)"),
}


@pytest.fixture(scope="module", params=LEVELS)
def pods(request: pytest.FixtureRequest, server: ApiServer) -> str:
    """Returns the path to create pods in a namespace of this level."""
    labels = {"pod-security.kubernetes.io/enforce": request.param}
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": request.param, "labels": labels}})
    namespace = f"/api/v1/namespaces/{request.param}"
    server.request("POST", f"{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    return f"{namespace}/pods?fieldValidation=Strict&dryRun=All"


@pytest.mark.parametrize("user", [1000660000, None], ids=["named", "assigned"])
@pytest.mark.parametrize("name", ADMITTED)
def test_every_pod_is_admitted(
    server: ApiServer, pods: str, name: str, user: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = templates(World(benchmark=ADMITTED[name], images=replace(IMAGES, user=user)), monkeypatch)
    assert len(found) > 2
    for template in found:
        server.request("POST", pods, {"metadata": {"generateName": "pod-"}, "spec": template["spec"]})


def test_a_client_with_a_link_is_rejected(server: ApiServer, pods: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = benchmark(storage={"emptyDir": {}}, links=[{"name": "late", "up": {"delayMicroseconds": 9}}])
    *_, template = templates(World(benchmark=asked, policy=Policy(links=True)), monkeypatch)
    with pytest.raises(RefusedError, match="violates PodSecurity") as refused:
        server.request("POST", pods, {"metadata": {"generateName": "pod-"}, "spec": template["spec"]})
    assert 'container "link" must not include "NET_ADMIN", "NET_RAW", "SYS_NICE"' in str(refused.value)


@pytest.mark.parametrize("name", REFUSED)
def test_a_pod_with_host_access_is_rejected(
    server: ApiServer, pods: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks the pod of the server. Its clients ask for nothing special."""
    asked, message = REFUSED[name]
    template, *_ = templates(World(benchmark=asked, policy=Policy(access=tuple(Access))), monkeypatch)
    with pytest.raises(RefusedError, match="violates PodSecurity") as refused:
        server.request("POST", pods, {"metadata": {"generateName": "pod-"}, "spec": template["spec"]})
    assert message in str(refused.value)
