"""Deployment of a NetworkBenchmark: least rights, one port for TCP and UDP, and a ping target that answers."""

from typing import Any

import pytest

from tests.plans import plan_of
from tests.unit.domain.objects import IMAGES, OWNER, network_benchmark
from tests.unit.kinds.file_transfer.test_workload import CLASS
from tierbench.kinds.network.workload import NetworkWorkload
from tierbench.workloads.plan import ScheduledTrial, plan
from tierbench.workloads.workload import ClientInstance, Manifest, NodeSize, Role, RunningServer, ServerInstance, Target

NODE_PORTS = {
    "metadata": {"name": "nb-demo-r1-s1", "namespace": "default"},
    "spec": {"ports": [{"name": "iperf3-1", "nodePort": 30123}, {"name": "iperf3-1-udp", "nodePort": 30123}]},
}
EXTERNAL = {"external": {"address": "iperf.example.com:5201"}}


def workload(**spec: Any) -> NetworkWorkload:
    return NetworkWorkload(OWNER, network_benchmark(**spec).spec, IMAGES)


def instance_of(given: NetworkWorkload) -> ServerInstance:
    return ServerInstance("nb-demo-r1-s1", "nb-demo-r1-s1-uid-1", 1, 0, given.server_placements()[0], "j1", CLASS)


def server(**spec: Any) -> dict[str, list[Manifest]]:
    given = workload(**spec)
    found: dict[str, list[Manifest]] = {}
    for manifest in given.server(instance_of(given)):
        found.setdefault(manifest["kind"], []).append(manifest)
    return found


def jobs(**spec: Any) -> list[Manifest]:
    given = workload(**spec)
    case = plan(given.spec, given.server_placements(), given.factors)[0]
    instance, services = instance_of(given), {} if case.server.external else NODE_PORTS
    running = RunningServer(instance, "10.0.0.5", "192.0.2.7", services, {"spec": {"clusterIP": "10.96.0.9"}})
    schedule = (ScheduledTrial(case.number, 2), ScheduledTrial(case.number, 3))
    instances = [
        ClientInstance(f"job-{part.index}", 1, case.number, 2, part, "u1", CLASS, schedule, 600)
        for part in given.parts(case)
    ]
    return [given.client(instance, [Target(case, running, 60)]) for instance in instances]


def job(**spec: Any) -> Manifest:
    (only,) = jobs(**spec)
    return only


def pods(**spec: Any) -> list[Manifest]:
    return [server(**spec)["Pod"][0]["spec"], job(**spec)["spec"]["template"]["spec"]]


def test_every_container_has_the_least_rights_and_writes_only_to_memory() -> None:
    for pod in pods():
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert {volume["emptyDir"]["medium"] for volume in pod["volumes"] if "emptyDir" in volume} == {"Memory"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_sysctl_for_ping_is_set_only_if_needed_and_allowed() -> None:
    allowed = [{"name": "net.ipv4.ping_group_range", "value": "0 2147483647"}]
    assert job()["spec"]["template"]["spec"]["securityContext"]["sysctls"] == allowed
    for without in (job(ping={"count": 0}), job(access="HostNetwork")):  # the API server refuses sysctls of a node
        assert "sysctls" not in without["spec"]["template"]["spec"]["securityContext"]


@pytest.mark.parametrize(
    ("access", "address", "ping"),
    [
        ("PodIP", "10.0.0.5:5201", "10.0.0.5"),
        ("ClusterIP", "nb-demo-r1-s1.default.svc:5201", "10.0.0.5"),
        ("NodePort", "192.0.2.7:30123", "192.0.2.7"),
        ("HostNetwork", "192.0.2.7:5201", "192.0.2.7"),
    ],
)
def test_load_and_ping_use_addresses_that_answer(access: str, address: str, ping: str) -> None:
    (target,) = plan_of(job(access=access))["targets"]
    assert (target["server"], target["pingHost"]) == (address, ping)


def test_one_port_carries_tcp_and_udp() -> None:
    """iperf3 talks TCP to the port that it sends UDP to."""
    (service,) = (item for item in server(access="NodePort")["Service"] if item["spec"]["type"] == "NodePort")
    assert [(port["port"], port["protocol"]) for port in service["spec"]["ports"]] == [(5201, "TCP"), (5201, "UDP")]
    assert len({port["name"] for port in service["spec"]["ports"]}) == 2
    assert len(server()["Service"]) == 1


def test_the_levels_reach_the_engine() -> None:
    udp = {"kilobitsPerSecond": 20_000}
    given = plan_of(
        job(protocols=["UDP"], directions=["Bidirectional"], streams=[4], udp=udp, durationSeconds=7, warmupTrials=1)
    )
    expected = {
        "protocol": "UDP", "direction": "Bidirectional", "streams": 4, "kilobitsPerSecond": 20000, "warmupTrials": 1,
        "durationSeconds": 7, "schedule": [{"case": 1, "trial": 2}, {"case": 1, "trial": 3}],
    }  # fmt: skip
    assert {name: given[name] for name in expected} == expected
    assert given["ping"]["count"] == 10


def test_ping_under_load_reaches_the_engine() -> None:
    assert plan_of(job(ping={"underLoad": True}))["ping"]["underLoad"] is True
    assert plan_of(job())["ping"]["underLoad"] is False
    assert workload(ping={"underLoad": True}).spec.parameters["pingUnderLoad"] == "True"
    assert "pingUnderLoad" not in workload().spec.parameters


def test_simultaneous_clients_have_a_port_each_and_one_barrier() -> None:
    clients = {"nodeClassNames": ["user", "jetson"], "modes": ["Simultaneous"], "nodesPerClass": 2}
    given = workload(clients=clients)
    (case, *_) = plan(given.spec, given.server_placements(), given.factors)
    assert len(plan(given.spec, given.server_placements(), given.factors)) == 4
    parts = [(part.node_class, part.role) for part in given.parts(case)]
    assert parts == [(name, Role.SHARE) for name in ("jetson", "jetson", "user", "user")]
    plans = [plan_of(one) for one in jobs(clients=clients)]
    assert [one["targets"][0]["server"] for one in plans] == [f"10.0.0.5:{port}" for port in range(5201, 5205)]
    assert [(one["part"], one["parts"]) for one in plans] == [(part, 4) for part in range(4)]
    assert {one["barrier"] for one in plans} == {"r1-c1-a2"}
    containers = server(clients=clients)["Pod"][0]["spec"]["containers"]
    assert [one["command"][-1] for one in containers[:-1]] == ["5201", "5202", "5203", "5204"]
    gates = [one["command"][one["command"].index("--socket") + 1] for one in containers[:-1]]
    assert gates == [f"{containers[-1]['args'][-1]}/{part}" for part in range(4)]
    assert containers[-1]["args"][containers[-1]["args"].index("--ports") + 1] == "5201,5202,5203,5204"


@pytest.mark.parametrize("access", ["PodIP", "NodePort"])
def test_client_of_an_external_server_gets_its_address_and_no_agent(access: str) -> None:
    given = workload(servers=EXTERNAL)
    external = plan_of(job(servers=EXTERNAL, access=access))
    assert external["targets"] == [{"case": 1, "deadlineSeconds": 60, "server": "iperf.example.com:5201"}]
    assert external["refusedNetworks"] == list(given.policy.refused_networks)
    assert plan_of(job(access=access))["refusedNetworks"] == []
    assert [item["kind"] for item in given.server(instance_of(given))] == ["Service", "Pod"]
    (container,) = server(servers=EXTERNAL)["Pod"][0]["spec"]["containers"]
    assert container["name"] == "agent"
    facts = given.service(given.server_placements()[0], NodeSize())
    assert facts is not None
    assert (facts.name, facts.image) == ("iperf3", "")


def test_an_external_server_is_measured_next_to_those_of_the_cluster() -> None:
    given = workload(servers={"nodeClassNames": ["cloud"], **EXTERNAL})
    assert [(placement.node_class, placement.external) for placement in given.server_placements()] == [
        ("cloud", False),
        ("external", True),
    ]
    assert plan_of(job(servers={"nodeClassNames": ["cloud"], **EXTERNAL}))["targets"][0]["server"] == "10.0.0.5:5201"


def test_congestion_control_is_a_factor_only_if_requested() -> None:
    asked: dict[str, Any] = {"tcp": {"congestionControl": ["cubic", "bbr"]}, "directions": ["Upload"]}
    given = workload(**asked)
    cases = plan(given.spec, given.server_placements(), given.factors)
    assert [case.levels["congestionControl"] for case in cases] == ["bbr", "cubic"] * 2
    assert plan_of(job(**asked))["congestionControl"] == "bbr"
    assert plan_of(job())["congestionControl"] == ""
    assert (
        "congestionControl" not in plan(workload().spec, workload().server_placements(), workload().factors)[0].levels
    )


def test_clients_alone_and_all_at_once_are_separate_cases() -> None:
    clients = {"nodeClassNames": ["user", "jetson"], "nodesPerClass": 2, "modes": ["Alone", "Simultaneous"]}
    given = workload(clients=clients, servers={"nodeClassNames": ["cloud"]}, directions=["Upload"])
    cases = plan(given.spec, given.server_placements(), given.factors)
    alone = [("jetson", "Alone", 1), ("jetson 2", "Alone", 1), ("user", "Alone", 1), ("user 2", "Alone", 1)]
    found = [(str(case.client), case.levels["clientMode"], len(given.parts(case))) for case in cases]
    assert found == [*alone, ("jetson", "Simultaneous", 4)]
    assert len(server(clients=clients)["Pod"][0]["spec"]["containers"]) == 5


def test_clients_measure_alone_by_default() -> None:
    given = workload(clients={"nodeClassNames": ["user", "jetson"]})
    cases = plan(given.spec, given.server_placements(), given.factors)
    assert [case.client_class for case in cases[:4]] == ["jetson", "jetson", "user", "user"]
    assert {case.levels["clientMode"] for case in cases} == {"Alone"}
    assert len(server()["Pod"][0]["spec"]["containers"]) == 2
