"""A client does not connect to an address that the policy refuses and that only the client can resolve."""

import pytest

from tests.e2e.benchmarks import Running, assert_nothing_left, broker, network
from tests.e2e.kubectl import Kubectl

pytestmark = pytest.mark.release
ELSEWHERE = "elsewhere"


@pytest.mark.parametrize("kind", ["broker", "network"])
def test_the_client_refuses_a_name_of_the_api_server(kubectl: Kubectl, kind: str) -> None:
    name = {"type": "ExternalName", "externalName": "kubernetes.default.svc.cluster.local"}
    kubectl.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": ELSEWHERE}, "spec": name})
    external = {"address": f"{ELSEWHERE}.{kubectl.namespace}.svc.cluster.local:443"}
    if kind == "broker":
        brokers, timeouts = [{"name": "site", "external": external}], {"firstMessageSeconds": 120}
        kubectl.apply(broker("names", servers=None, brokers=brokers, timeouts=timeouts))
    else:
        kubectl.apply(network("names", servers={"external": external}))
    running = Running(kubectl, "names", f"{kind}benchmark")
    running.wait_for_phase("Failed")
    status = running.results[0]["status"]
    assert status["reason"] == "AddressRefused"
    assert "policy.refusedNetworks" in status["message"]
    assert_nothing_left(running)
