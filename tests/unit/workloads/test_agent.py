"""The agent next to a server listens only at its pod's address, over TLS. Each mounts only its own keys."""

from typing import Any

import pytest

from tests.unit.kinds.broker import test_workload as test_broker
from tests.unit.kinds.file_transfer import test_workload as test_file_transfer
from tests.unit.kinds.file_transfer.test_workload import INSTANCE
from tests.unit.kinds.network import test_workload as test_network
from tierbench.api.benchmark import Access
from tierbench.workloads.manifests import agent_url
from tierbench.workloads.workload import Manifest, RunningServer

AGENT = {"agent-token", "agent-key"}
CERTIFICATE = {"tls.crt", "tls.key"}
MUTUAL = {"certificates": ["Required"]}
MOSQUITTO = [{"name": "m", "mosquitto": {}}]
KAFKA = [{"name": "k", "kafka": {}}]


def broker_pod(**spec: Any) -> Manifest:
    given = test_broker.workload(**spec)
    return given.server(test_broker.instance_of(given))[-1]


PODS: list[tuple[Manifest, str, set[str]]] = [
    (test_file_transfer.workload().server(INSTANCE)[-1], "nginx", set()),
    (test_file_transfer.workload(tls=["None", "TLSv1.3"]).server(INSTANCE)[-1], "nginx", CERTIFICATE),
    (broker_pod(brokers=MOSQUITTO), "mosquitto", {"mosquitto-passwords"}),
    (broker_pod(brokers=MOSQUITTO, tls=["TLSv1.2"]), "mosquitto", {"mosquitto-passwords", *CERTIFICATE}),
    (broker_pod(brokers=KAFKA, tls=["TLSv1.2"], tlsClients=MUTUAL), "kafka", {*CERTIFICATE, "ca.crt"}),
    (broker_pod(brokers=KAFKA), "kafka", set()),
    (broker_pod(brokers=KAFKA, tls=["TLSv1.2"]), "kafka", CERTIFICATE),
    (test_network.server()["Pod"][0], "iperf3-1", set()),
]


def keys(pod: Manifest, name: str) -> set[str]:
    """Returns the keys of Secrets that a container mounts."""
    (container,) = (item for item in pod["spec"]["containers"] if item["name"] == name)
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    secrets = [volume for volume in pod["spec"]["volumes"] if "secret" in volume and volume["name"] in mounted]
    return {item["key"] for volume in secrets for item in volume["secret"]["items"]}


@pytest.mark.parametrize(("pod", "server", "expected"), PODS)
def test_server_and_agent_each_mount_only_their_own_keys(pod: Manifest, server: str, expected: set[str]) -> None:
    assert keys(pod, server) == expected
    assert keys(pod, "agent") == AGENT


@pytest.mark.parametrize("pod", [pod for pod, _, _ in PODS])
def test_agent_listens_only_at_the_address_of_its_pod_and_is_probed_there(pod: Manifest) -> None:
    (agent,) = (item for item in pod["spec"]["containers"] if item["name"] == "agent")
    assert agent["env"] == [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    assert agent["args"][1:5] == ["--address", "$(POD_IP)", "--port", "8090"]
    assert agent["readinessProbe"]["httpGet"] == {"path": "/healthz", "port": 8090, "scheme": "HTTPS"}


def test_iperf3_is_behind_a_gate_that_no_probe_opens() -> None:
    (iperf3, agent) = test_network.server()["Pod"][0]["spec"]["containers"]
    gate, server = iperf3["command"][:5], iperf3["command"][5:]
    assert gate == ["tierbench-client", "gate", "--socket", "/gates/0", "--"]
    assert server == ["iperf3", "--server", "--forceflush", "--bind", "$(POD_IP)", "--port", "5201"]
    assert agent["args"][-2:] == ["--gates", "/gates"]
    assert iperf3["startupProbe"]["exec"] == {"command": ["test", "-S", "/gates/0"]}
    assert "readinessProbe" not in iperf3


@pytest.mark.parametrize(
    ("access", "place"),
    [
        (Access.POD_IP, "[fd00::1]:8090"),
        (Access.HOST_NETWORK, "[fd00::2]:8090"),
        (Access.NODE_PORT, "[fd00::3]:8090"),
        (Access.CLUSTER_IP, "[fd00::3]:8090"),
    ],
)
def test_agent_url_follows_the_access(access: Access, place: str) -> None:
    """No port of a node leads to it. An IPv6 address expected brackets."""
    server = RunningServer(INSTANCE, "fd00::1", "fd00::2", {}, {"spec": {"clusterIP": "fd00::3"}})
    assert agent_url(access, server) == f"https://{place}"
