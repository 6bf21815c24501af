"""What the administrator refuses is not created, and where only a client can see it, not connected to."""

from typing import Any

import pytest

from tests.e2e.benchmarks import Running, assert_nothing_left, broker, file_transfer, network
from tests.e2e.kubectl import Kubectl, KubectlError, wait_for
from tests.e2e.operator_release import Release

POLICY = "validatingadmissionpolicy"
KINDS = ("filetransferbenchmarks", "brokerbenchmarks", "networkbenchmarks")
ELSEWHERE = "elsewhere"


def test_what_is_refused_is_not_created_and_the_policies_suit_their_kinds(kubectl: Kubectl, release: Release) -> None:
    with pytest.raises(KubectlError, match=r"hostPath.path: /etc is refused here.*added to policy.hostPaths, a value"):
        kubectl.apply(file_transfer(storage={"hostPath": {"path": "/etc"}}))
    assert kubectl.list("filetransferbenchmarks") == []

    def warnings() -> list[Any]:
        names = [f"{release.kubectl.namespace}.{release.name}.{kind}" for kind in KINDS]
        status = [kubectl.get(POLICY, name).get("status", {}) for name in names]
        return [item["typeChecking"] for item in status] if all("typeChecking" in item for item in status) else []

    assert wait_for("policies are type-checked", warnings, 60) == [{}] * len(KINDS)


@pytest.mark.parametrize("kind", ["broker", "network"])
def test_a_name_that_leads_to_the_api_server_is_refused_by_the_client(kubectl: Kubectl, kind: str) -> None:
    name = {"type": "ExternalName", "externalName": "kubernetes.default.svc.cluster.local"}
    kubectl.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": ELSEWHERE}, "spec": name})
    external = {"address": f"{ELSEWHERE}.{kubectl.namespace}.svc.cluster.local:443"}
    if kind == "broker":
        kubectl.apply(broker("names", servers=None, brokers=[{"name": "site", "external": external}], readySeconds=5))
    else:
        kubectl.apply(network("names", servers={"external": external}))
    running = Running(kubectl, "names", f"{kind}benchmark")
    running.wait_for_phase("Failed")
    status = running.results[0]["status"]
    assert status["reason"] == "AddressRefused"
    assert "policy.refusedNetworks" in status["message"]
    assert_nothing_left(running)
