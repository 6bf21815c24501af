"""Deployment of a BrokerBenchmark: least rights, explicit settings, and only what each client needs."""

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.plans import plan_of
from tests.unit.domain.objects import IMAGES, OWNER, broker_benchmark
from tests.unit.kinds.file_transfer.test_workload import CLASS
from tierbench.kinds.broker.workload import BrokerWorkload, share
from tierbench.workloads.plan import Case, ScheduledTrial, plan
from tierbench.workloads.workload import ClientInstance, Manifest, NodeSize, Role, RunningServer, ServerInstance, Target

EXTERNAL = [{"name": "site", "external": {"address": "broker.example.com:8883", "secretRef": {"name": "site"}}}]


OWN_MESSAGES = {
    "messages": [
        {"name": "sensor", "configMapRef": {"name": "sensor-messages"}},
        {"name": "camera", "configMapRef": {"name": "frames"}},
    ]
}


def workload(**spec: Any) -> BrokerWorkload:
    return BrokerWorkload(OWNER, broker_benchmark(**spec).spec, IMAGES)


def instance_of(given: BrokerWorkload) -> ServerInstance:
    return ServerInstance("bb-demo-r1-s1", "bb-demo-r1-s1-uid-1", 1, 0, given.server_placements()[0], "j1", CLASS)


def cases(given: BrokerWorkload) -> tuple[Case, ...]:
    return plan(given.spec, given.server_placements(), given.factors)


def jobs(given: BrokerWorkload, case: Case | None = None) -> list[Manifest]:
    case = case or cases(given)[0]
    running = RunningServer(
        instance_of(given),
        "10.0.0.5",
        "192.0.2.7",
        {"metadata": {"name": "bb-demo-r1-s1", "namespace": "default"}},
        {"spec": {"clusterIP": "10.96.0.9"}},
    )
    schedule = (ScheduledTrial(case.number, 2), ScheduledTrial(case.number, 3))
    instances = [
        ClientInstance(f"job-{part.index}", 1, case.number, 2, part, "u1", CLASS, schedule, 600)
        for part in given.parts(case)
    ]
    return [given.client(instance, [Target(case, running, 60)]) for instance in instances]


def secret_keys(job: Manifest) -> dict[str, set[str]]:
    (volume,) = job["spec"]["template"]["spec"]["volumes"]
    sources = [source["secret"] for source in volume["projected"]["sources"]]
    return {source["name"]: {item["key"] for item in source["items"]} for source in sources}


def test_broker_runs_the_requested_image() -> None:
    brokers = [{"name": "m", "mosquitto": {"images": ["1.6.9"]}}, {"name": "k", "kafka": {}}]
    given = workload(brokers=brokers, servers={"nodeClassNames": ["cloud"]})
    pods = [
        given.server(replace(instance_of(given), placement=placement))[-1]["spec"]
        for placement in given.server_placements()
    ]
    assert [pod["containers"][0]["image"] for pod in pods] == ["kafka:1", "mosquitto:1.6.9"]
    assert {pod["initContainers"][0]["image"] for pod in pods if pod.get("initContainers")} == {"kafka:1"}


@pytest.mark.parametrize("spec", [{}, {"brokers": EXTERNAL, "servers": None, "tls": ["TLSv1.3"]}])
def test_every_container_has_the_least_rights(spec: dict[str, Any]) -> None:
    given = workload(**spec)
    pods = [item["spec"] for item in given.server(instance_of(given)) if item["kind"] == "Pod"]
    pods += [job["spec"]["template"]["spec"] for job in jobs(given)]
    for pod in pods:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_mosquitto_has_explicit_settings() -> None:
    broker = {"name": "mosquitto", "mosquitto": {"persistence": True, "messageSizeLimit": 500}}
    given = workload(brokers=[broker], tls=["TLSv1.3"])
    config_map = next(item for item in given.server(instance_of(given)) if item["kind"] == "ConfigMap")
    lines = config_map["data"]["mosquitto.conf"].splitlines()
    assert {"allow_anonymous false", "set_tcp_nodelay true", "max_queued_messages 0", "persistence true"} <= set(lines)
    assert "message_size_limit 500" in lines
    assert lines.index("listener 1883") < lines.index("listener 8883")
    (authorities,) = [line.removeprefix("capath ") for line in lines if line.startswith("capath ")]
    assert {line for line in lines if line.startswith("certfile ")} == {f"certfile {authorities}/tls.crt"}
    assert not any(line.startswith("cafile ") for line in lines)
    facts = given.service(given.server_placements()[0], NodeSize())
    assert facts is not None
    assert all(f"{name} {value}" in lines for name, value in facts.settings.items())


def test_mosquitto_opens_no_symbolic_link_for_its_passwords() -> None:
    given = workload()
    pod = next(item for item in given.server(instance_of(given)) if item["kind"] == "Pod")
    config_map = next(item for item in given.server(instance_of(given)) if item["kind"] == "ConfigMap")
    mounts = {mount["mountPath"]: mount for mount in pod["spec"]["containers"][0]["volumeMounts"]}
    (file,) = re.findall("^password_file (.*)$", config_map["data"]["mosquitto.conf"], re.MULTILINE)
    assert mounts[file] == {
        "name": "credentials",
        "mountPath": file,
        "subPath": "mosquitto-passwords",
        "readOnly": True,
    }


def test_without_tls_there_is_no_second_listener() -> None:
    given = workload()
    config_map = next(item for item in given.server(instance_of(given)) if item["kind"] == "ConfigMap")
    assert "8883" not in config_map["data"]["mosquitto.conf"]


def test_clients_get_no_private_key() -> None:
    given = workload(tls=["None", "TLSv1.3"])
    plain, secured = (jobs(given, case)[0] for case in cases(given)[:2])
    keys = {"agent-token", "agent-pin", "payload-key", "username", "password"}
    assert secret_keys(plain) == {"bb-demo-r1-s1-uid-1": keys}
    assert secret_keys(secured) == {"bb-demo-r1-s1-uid-1": {*keys, "ca.crt"}}
    assert plan_of(secured)["serverName"] == "server.tierbench.internal"


def test_only_the_secret_of_the_user_may_lack_keys() -> None:
    """Kubernetes starts no pod with an item of a Secret that does not exist, unless it is optional."""
    (job, _) = jobs(workload(brokers=EXTERNAL, servers=None, tls=["TLSv1.3"]))
    (volume,) = job["spec"]["template"]["spec"]["volumes"]
    sources = [source["secret"] for source in volume["projected"]["sources"]]
    assert [(each["name"], each.get("optional", False)) for each in sources] == [
        ("bb-demo-r1-s1-uid-1", False),
        ("site", True),
    ]


def test_client_of_an_external_broker_uses_its_address_and_the_users_account() -> None:
    given = workload(brokers=EXTERNAL, servers=None, tls=["TLSv1.3"])
    (job, _) = jobs(given)
    assert secret_keys(job) == {
        "bb-demo-r1-s1-uid-1": {"agent-token", "agent-pin", "payload-key"},
        "site": {"username", "password", "ca.crt"},
    }
    assert plan_of(job)["targets"][0]["url"] == "mqtts://broker.example.com:8883"
    assert plan_of(job)["serverName"] == ""
    assert plan_of(job)["refusedNetworks"] == list(given.policy.refused_networks)
    assert plan_of(jobs(workload())[0])["refusedNetworks"] == []
    assert [item["kind"] for item in given.server(instance_of(given))] == ["Service", "Pod"]


@pytest.mark.parametrize("engine", ["Native", "Paho", "SINETStream"])
def test_own_messages_are_mounted_and_are_contents_without_a_size(engine: str) -> None:
    clients = {
        "nodeClassNames": ["user"],
        "engine": engine,
        "subscribers": {"type": "Separate", "nodeClassName": "user"},
    }
    given, config_maps = (
        workload(payload=OWN_MESSAGES, clients=clients),
        {"sensor": "sensor-messages", "camera": "frames"},
    )
    assert {case.levels["content"] for case in cases(given)} == set(config_maps)
    for case in cases(given):
        config_map = config_maps[case.levels["content"]]
        assert "payloadSize" not in case.levels
        assert given.load(case).duration() > 0
        for job in jobs(given, case):
            pod, path = job["spec"]["template"]["spec"], f"/messages/{config_map}"
            (container,) = pod["containers"]
            assert plan_of(job)["contentFolder"] == path
            assert {"name": "messages", "mountPath": path, "readOnly": True} in container["volumeMounts"]
            mounted = {"name": config_map, "optional": True, "defaultMode": 0o440}
            assert {"name": "messages", "configMap": mounted} in pod["volumes"]


@pytest.mark.parametrize(
    ("pacing", "in_flight", "interval"),
    [
        ({"type": "ClosedLoop", "inFlight": 3}, 3, 0),
        ({"type": "Acknowledged"}, 1, 0),
        ({"type": "AsFastAsPossible"}, 0, 0),
        ({"type": "OpenLoop", "intervalMilliseconds": 300}, 0, 300_000_000),
        ({"type": "OpenLoop", "messagesPerSecond": 600}, 0, 1_666_667),
    ],
)
def test_the_pace_reaches_the_engine(pacing: dict[str, Any], in_flight: int, interval: int) -> None:
    given = plan_of(jobs(workload(pacing=pacing))[0])["pacing"]
    assert given == {"type": pacing["type"], "inFlight": in_flight, "intervalNanoseconds": interval}


@pytest.mark.parametrize("connections", ["EachTrial", "Kept", "EachMessage"])
def test_connections_of_the_spec_reach_the_client(connections: str) -> None:
    (job,) = jobs(workload(clients={"nodeClassNames": ["user"], "connections": connections}))
    assert plan_of(job)["connections"] == connections


def test_versions_of_mqtt_apply_only_to_mqtt() -> None:
    brokers = [{"name": "mosquitto", "mosquitto": {}}, {"name": "kafka", "kafka": {}}]
    given = workload(brokers=brokers, mqttClients={"versions": ["3.1.1", "5"]})
    found = {
        (case.levels["broker"], case.levels.get("mqttVersion"), str(plan_of(jobs(given, case)[0]).get("mqtt")))
        for case in cases(given)
    }
    versions = {("mosquitto", version, str({"version": version})) for version in ("3.1.1", "5")}
    assert found == {*versions, ("kafka", None, "None")}


def test_pairs_are_divided_without_gap_or_overlap() -> None:
    for pairs in range(1, 40):
        for pods in range(1, pairs + 1):
            shares = [share(pairs, pods, index) for index in range(pods)]
            assert [pair for first, number in shares for pair in range(first, first + number)] == list(range(pairs))
            assert max(number for _, number in shares) - min(number for _, number in shares) <= 1


def test_separate_subscribers_have_the_pairs_of_their_publishers() -> None:
    apart = {"nodeClassNames": ["user"], "pods": 2, "subscribers": {"type": "Separate", "nodeClassName": "jetson"}}
    given = workload(clients=apart, pairs=[3])
    parts = given.parts(cases(given)[0])
    assert [(part.role, part.node_class) for part in parts] == [
        (Role.SENDER, "user"),
        (Role.SENDER, "user"),
        (Role.ECHO, "jetson"),
        (Role.ECHO, "jetson"),
    ]
    plans = [plan_of(job) for job in jobs(given)]
    assert [(one["role"], one["firstPair"], one["pairs"]) for one in plans] == [
        ("Publisher", 0, 2),
        ("Publisher", 2, 1),
        ("Echo", 0, 2),
        ("Echo", 2, 1),
    ]
    assert {(one["barrier"], one["parts"]) for one in plans} == {("r1-c1-a2", 4)}


def test_client_runs_the_image_of_the_requested_engine() -> None:
    images = {
        engine: jobs(workload(clients={"nodeClassNames": ["user"], "engine": engine}))[0]["spec"]["template"]["spec"][
            "containers"
        ][0]["image"]
        for engine in ("Native", "Paho", "SINETStream")
    }
    assert images == {"Native": "client:1", "Paho": "paho:1", "SINETStream": "sinetstream:1"}


LIGHT = {
    "pacing": {"type": "ClosedLoop", "inFlight": 1},
    "pairs": [1],
    "clients": {"nodeClassNames": ["user"], "pods": 1},
}


@pytest.mark.parametrize(
    ("spec", "tuning"),
    [
        ({}, "Light"),
        ({"pairs": [1, 4]}, "Light"),
        ({"pairs": [1, 5]}, "Heavy"),
        ({"pairs": [8], "clients": {"nodeClassNames": ["user"], "pods": 2}}, "Light"),
        ({"payload": {"sizes": ["1Ki", "16Ki"]}}, "Light"),
        ({"payload": {"sizes": ["1Ki", "17Ki"]}}, "Heavy"),
        ({"payload": OWN_MESSAGES}, "Heavy"),
        ({"compression": ["None", "Gzip"]}, "Heavy"),
        ({"brokers": [{"name": "kafka", "kafka": {}}], "kafkaClients": {"codecs": ["None", "Lz4"]}}, "Heavy"),
        ({"pacing": {"type": "AsFastAsPossible"}}, "Heavy"),
        ({"pacing": {"type": "OpenLoop", "messagesPerSecond": 5000}}, "Light"),
        ({"pacing": {"type": "OpenLoop", "messagesPerSecond": 5000}, "pairs": [1, 2]}, "Heavy"),
        ({"pacing": {"type": "OpenLoop", "intervalMilliseconds": 1}, "pairs": [5]}, "Light"),
        ({"pacing": {"type": "OpenLoop", "intervalMilliseconds": 1}, "pairs": [6]}, "Heavy"),
    ],
)
def test_one_heavy_case_makes_all_cases_heavy(spec: dict[str, Any], tuning: str) -> None:
    """So tuning never differs between levels."""
    given = workload(**{**LIGHT, **spec})
    assert {plan_of(jobs(given, case)[0])["tuning"] for case in cases(given)} == {tuning}


def test_ipv6_addresses_are_in_brackets() -> None:
    given = workload(access="PodIP")
    running = RunningServer(
        instance_of(given), "fd00::5", "fd00:1::7", {"metadata": {"name": "s"}}, {"spec": {"clusterIP": "fd00:2::9"}}
    )
    case = cases(given)[0]
    instance = ClientInstance("job", 1, 1, 2, given.parts(case)[0], "u1", CLASS, (ScheduledTrial(1, 2),), 600)
    (target,) = plan_of(given.client(instance, [Target(case, running, 60)]))["targets"]
    assert (target["url"], target["agent"]["url"]) == ("mqtt://[fd00::5]:1883", "https://[fd00::5]:8090")


def test_publishers_without_subscribers_have_the_role_alone_in_every_pod() -> None:
    clients = {"nodeClassNames": ["user"], "pods": 2, "subscribers": {"type": "None"}}
    given = [
        plan_of(job)
        for job in jobs(workload(clients=clients, pairs=[3], pacing={"type": "Acknowledged", "inFlight": 2}))
    ]
    assert [(each["role"], each["parts"], each["pacing"]["inFlight"]) for each in given] == [("Alone", 2, 2)] * 2


@pytest.mark.parametrize(("in_flight", "tuning"), [(4, "Light"), (5, "Heavy")])
def test_acknowledged_pacing_is_tuned_like_a_closed_loop(in_flight: int, tuning: str) -> None:
    job, *_ = jobs(workload(pairs=[2], pacing={"type": "Acknowledged", "inFlight": in_flight}))
    assert (plan_of(job)["role"], plan_of(job)["tuning"]) == ("Both", tuning)
