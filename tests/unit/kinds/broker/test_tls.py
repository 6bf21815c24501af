"""TLS of clients: cases for what they vary, and certificates only for clients that present one."""

from typing import Any

import pytest

from tests.plans import plan_of
from tests.unit.kinds.broker.test_kafka import properties, server
from tests.unit.kinds.broker.test_workload import cases, instance_of, jobs, secret_keys, workload
from tierbench.workloads.plan import Case, refinement_cases

BOTH = {"handshakes": ["Full", "Resumed"], "certificates": ["None", "Required"]}
MOSQUITTO = [{"name": "mosquitto", "mosquitto": {}}]
KAFKA = [{"name": "kafka", "kafka": {}}]
EXTERNAL = [{"name": "site", "external": {"address": "broker.example.com:8883", "secretRef": {"name": "site"}}}]
SERVER = "bb-demo-r1-s1-uid-1"
KEYS = {"agent-token", "agent-pin", "payload-key", "username", "password", "ca.crt"}


def combinations(found: tuple[Case, ...]) -> list[tuple[str | None, ...]]:
    """Returns the levels of TLS in the cases of the first server."""
    own = [case for case in found if case.server == found[0].server]
    return [tuple(map(case.levels.get, ("tls", "handshake", "certificate"))) for case in own]


def test_only_cases_with_tls_vary_handshakes_and_certificates() -> None:
    found = combinations(cases(workload(tls=["None", "TLSv1.3"], tlsClients=BOTH, payload={})))
    assert found == [
        ("None", None, None),
        *(("TLSv1.3", handshake, level) for handshake in BOTH["handshakes"] for level in BOTH["certificates"]),
    ]


def test_spec_without_tls_clients_has_no_handshake_or_certificate_levels() -> None:
    assert combinations(cases(workload(tls=["TLSv1.3"], payload={}))) == [("TLSv1.3", None, None)]


def test_refinement_adds_cases_with_the_same_levels_of_tls() -> None:
    given = workload(tls=["None", "TLSv1.3"], tlsClients=BOTH, servers={"nodeClassNames": ["cloud"]}, payload={})
    planned = cases(given)
    wanted = [(case.client_class, {**case.levels, "payloadSize": "3Ki"}) for case in planned]
    further = refinement_cases(len(planned), given.server_placements(), given.factors, wanted)
    assert combinations(further) == combinations(planned)


@pytest.mark.parametrize(
    ("brokers", "scheme", "ports"),
    [(MOSQUITTO, "mqtts", {"None": 8883, "Required": 8884}), (KAFKA, "kafkas", {"None": 9093, "Required": 9096})],
    ids=["mosquitto", "kafka"],
)
def test_client_has_a_certificate_only_if_the_broker_requires_one(
    brokers: list[dict[str, Any]], scheme: str, ports: dict[str, int]
) -> None:
    given = workload(brokers=brokers, tls=["TLSv1.3"], tlsClients=BOTH, access="PodIP")
    for case in cases(given):
        job, *_ = jobs(given, case)
        plan, required = plan_of(job), case.levels["certificate"] == "Required"
        (target,) = plan["targets"]
        files = {name: target[name] for name in ("clientCertificateFile", "clientKeyFile") if name in target}
        names = {"clientCertificateFile": "client.crt", "clientKeyFile": "client.key"} if required else {}
        assert files == {field: f"/credentials/{case.number}/{name}" for field, name in names.items()}
        assert secret_keys(job) == {SERVER: {*KEYS, *({"client.crt", "client.key"} if required else ())}}
        assert plan.get("resumeSessions", False) == (case.levels["handshake"] == "Resumed")
        assert target["url"] == f"{scheme}://10.0.0.5:{ports[case.levels['certificate']]}"
    assert given.credentials(instance_of(given)).client_certificate


def test_mosquitto_requires_certificates_on_one_port_only() -> None:
    given = workload(brokers=MOSQUITTO, tls=["TLSv1.3"], tlsClients=BOTH)
    manifests = given.server(instance_of(given))
    (text,) = (item["data"]["mosquitto.conf"] for item in manifests if item["kind"] == "ConfigMap")
    _, plain, open_listener, mutual = text.split("listener ")
    assert (plain.split()[0], open_listener.split()[0], mutual.split()[0]) == ("1883", "8883", "8884")
    assert "require_certificate true\n" in mutual
    assert "cafile /credentials/ca.crt\n" in mutual
    assert "require_certificate" not in text.replace(mutual, "")
    (pod,) = (item["spec"] for item in manifests if item["kind"] == "Pod")
    keys = {key["key"] for volume in pod["volumes"] for key in volume.get("secret", {}).get("items", ())}
    assert not {key for key in keys if key.startswith("client")}
    (service,) = (item for item in manifests if item["kind"] == "Service" and item["metadata"]["name"].endswith("s1"))
    assert [port["port"] for port in service["spec"]["ports"]] == [1883, 8883, 8884]


def test_kafka_requires_certificates_and_the_account_on_one_port_only() -> None:
    given = properties(server(workload(brokers=KAFKA, tls=["TLSv1.2"], tlsClients=BOTH))[0])
    assert "KAFKAS-MUTUAL://:9096" in given["listeners"]
    assert "KAFKAS-MUTUAL:SASL_SSL" in given["listener.security.protocol.map"]
    assert [name for name in given if name.endswith("client.auth")] == ["listener.name.kafkas-mutual.ssl.client.auth"]
    assert "listener.name.kafkas-mutual.scram-sha-512.sasl.jaas.config" in given


def test_a_certificate_for_an_external_broker_is_in_the_users_secret() -> None:
    levels = {"certificates": ["Required"]}
    given = workload(brokers=EXTERNAL, servers=None, tls=["TLSv1.3"], tlsClients=levels)
    job, *_ = jobs(given)
    assert secret_keys(job)["site"] == {"username", "password", "ca.crt", "tls.crt", "tls.key"}
    assert plan_of(job)["targets"][0]["clientKeyFile"] == "/credentials/1/tls.key"
    assert not given.credentials(instance_of(given)).client_certificate
