"""On a server's node, the agent accepts only TLS, and iperf3 listens only while its client measures."""

import signal
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.cluster.processes import Process
from tests.e2e.benchmarks import Running, assert_nothing_left, network
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import pids
from tests.e2e.strike import held, strike

AGENT, IPERF3 = 8090, 5201
_LOAD_BYTES = 50 * 2**20  # more than the node moves without a load
# A shell can connect.
CONNECT = "if (exec 3<>/dev/tcp/{host}/{port}) 2>/dev/null; then echo open; else echo closed; fi"
IN_CLEAR = "exec 3<>/dev/tcp/{host}/{port}; printf 'POST /v1/open HTTP/1.0\\r\\n\\r\\n' >&3; head -1 <&3"


@pytest.mark.privileged
@pytest.mark.release
@pytest.mark.timing
def test_iperf3_listens_only_for_its_client_and_the_agent_only_on_one_address(
    kubectl: Kubectl, cluster: Cluster
) -> None:
    """The server uses the node's network, which has several addresses. Echo requests precede the load."""
    ping = {"count": 50, "intervalMilliseconds": 200}
    spec: dict[str, Any] = {"directions": ["Upload"], "durationSeconds": 5, "repetitions": 1, "ping": ping}
    kubectl.apply(network(access="HostNetwork", **spec))
    running = Running(kubectl, "networks", "networkbenchmark")
    server, foreign = cluster.node("cloud-1"), cluster.node("jetson-1")

    def output_of(script: str, port: int) -> str:
        script = script.format(host=server.address, port=port)
        return foreign.machine.output("bash", "-c", script).strip()

    running.wait_for_pod("client")
    with held(running, cluster):
        assert (output_of(CONNECT, AGENT), output_of(CONNECT, IPERF3)) == ("open", "closed")
        assert output_of(IN_CLEAR, AGENT).split()[1] == "400"
        assert listening(server.machine.output("cat", "/proc/net/tcp", "/proc/net/tcp6"), AGENT) == {
            hexadecimal(server.address)
        }

    def kill_client() -> None:
        assert output_of(CONNECT, IPERF3) == "open"
        client = running.wait_for_pod("client")["metadata"]["name"]
        for pid in pids(cluster, kubectl.namespace, client, "tierbench-client"):
            Process(pid).send(signal.SIGKILL)
        wait_for("iperf3 no longer listens", lambda: output_of(CONNECT, IPERF3) == "closed")

    strike(running, cluster, kill_client, load_bytes=_LOAD_BYTES)
    (result,) = running.results
    assert result["status"]["counts"]["completed"] == 1, result["status"]
    assert_nothing_left(running)
    assert output_of(CONNECT, AGENT) == "closed"


def listening(sockets: str, port: int) -> set[str]:
    """Returns the addresses, as the kernel writes them, on which a process listens on this port."""
    rows = (line.split() for line in sockets.splitlines())
    found = (row[1].split(":") for row in rows if len(row) > 3 and row[3] == "0A")
    return {address for address, number in found if int(number, 16) == port}


def hexadecimal(address: str) -> str:
    """Returns an IPv4 address as the kernel writes it."""
    return "".join(f"{int(byte):02X}" for byte in reversed(address.split(".")))
