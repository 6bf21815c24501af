"""nginx as an HTTP server, and external servers: their deployment, and what clients get."""

from typing import Any

from tests.plans import plan_of
from tests.unit.kinds.broker.test_workload import cases, instance_of, jobs, secret_keys, workload
from tests.unit.kinds.broker.trials import line, measured, spec
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.broker.sinetstream import configuration
from tierbench.kinds.broker.workload import BrokerWorkload
from tierbench.workloads.workload import NodeSize

ALONE: dict[str, Any] = {
    "clients": {"nodeClassNames": ["user"], "subscribers": {"type": "None"}},
    "pacing": {"type": "Acknowledged"},
}
SITE = {
    "address": "ingest.example.com:443",
    "protocol": "HTTP",
    "path": "/readings?key=1",
    "secretRef": {"name": "site"},
}


def http(**spec: Any) -> BrokerWorkload:
    return workload(brokers=[{"name": "web", "http": {"images": ["1.19.6"]}}], **ALONE, **spec)


def test_nginx_is_deployed_with_room_for_the_largest_message() -> None:
    given = http(payload={"sizes": ["100", "1Mi"]}, tls=["None", "TLSv1.3"])
    config_map, *_, pod = given.server(instance_of(given))
    text = config_map["data"]["nginx.conf"]
    facts = given.service(given.server_placements()[0], NodeSize())
    assert facts is not None
    assert (facts.name, facts.image) == ("web", "nginx:1.19.6")
    assert facts.settings.pop("protocol") == "HTTP"
    assert all(f"  {name} {value};\n" in text for name, value in facts.settings.items())
    assert 2**20 < int(facts.settings["client_body_buffer_size"]) == int(facts.settings["client_max_body_size"]) < 2**21
    assert "listen 8443 ssl;" in text
    (server, agent) = pod["spec"]["containers"]
    assert (server["name"], server["image"]) == ("nginx", "nginx:1.19.6")
    assert {"/etc/tierbench", "/tmp"} <= {mount["mountPath"] for mount in server["volumeMounts"]}
    assert agent["args"][agent["args"].index("--process") + 1] == "nginx"


def test_without_tls_nginx_has_no_certificate() -> None:
    given = http()
    texts = [item["data"] for item in given.server(instance_of(given)) if item["kind"] == "ConfigMap"]
    assert [("ssl" in text, "[::]" in text) for text in texts[0].values()] == [(False, True), (False, False)]


def test_clients_of_nginx_get_no_account_and_expect_one_name() -> None:
    given = http(tls=["None", "TLSv1.2"])
    plain, secured = (jobs(given, case)[0] for case in cases(given)[:2])
    keys = {"agent-token", "agent-pin", "payload-key"}
    assert secret_keys(plain) == {"bb-demo-r1-s1-uid-1": keys}
    assert secret_keys(secured) == {"bb-demo-r1-s1-uid-1": {*keys, "ca.crt"}}
    for job, url in (
        (plain, "http://bb-demo-r1-s1.default.svc:8080"),
        (secured, "https://bb-demo-r1-s1.default.svc:8443"),
    ):
        plan = plan_of(job)
        assert plan["targets"][0]["url"] == url
        assert (plan["serverName"], plan["role"]) == ("server.tierbench.internal", "Alone")
        assert plan["targets"][0]["usernameFile"] == ""


def test_client_of_an_external_server_gets_its_path_and_account() -> None:
    given = workload(brokers=[{"name": "site", "external": SITE}], servers=None, tls=["TLSv1.3"], **ALONE)
    (job, *_) = jobs(given)
    assert plan_of(job)["targets"][0]["url"] == "https://ingest.example.com:443/readings?key=1"
    assert plan_of(job)["serverName"] == ""
    assert secret_keys(job)["site"] == {"username", "password", "ca.crt"}
    other = workload(brokers=[{"name": "site", "external": {**SITE, "path": "/"}}], servers=None, **ALONE)
    facts = [each.service(each.server_placements()[0], NodeSize()) for each in (given, other)]
    assert facts[0] != facts[1]


def test_external_server_without_an_account_needs_no_secret() -> None:
    site = {"address": "ingest.example.com:80", "protocol": "HTTP"}
    given = workload(brokers=[{"name": "site", "external": site}], servers=None, **ALONE)
    (job, *_) = jobs(given)
    assert plan_of(job)["targets"][0]["url"] == "http://ingest.example.com:80"
    assert secret_keys(job).keys() == {"bb-demo-r1-s1-uid-1"}


def test_factors_of_other_protocols_do_not_apply_to_nginx() -> None:
    given = workload(
        brokers=[{"name": "web", "http": {}}, {"name": "kafka", "kafka": {}}, {"name": "mosquitto", "mosquitto": {}}],
        kafkaClients={"partitions": [1, 2]},
        mqttClients={"versions": ["3.1.1", "5"]},
        payload={"sizes": ["1Ki"]},
        servers={"nodeClassNames": ["cloud"]},
        **ALONE,
    )
    assert [case.levels["broker"] for case in cases(given)] == ["kafka", "kafka", "mosquitto", "mosquitto", "web"]


def test_sinetstream_has_no_configuration_for_http() -> None:
    status = measured(line(1)).to_json()
    for protocol, opening in (({"protocol": "HTTP"}, "# SINETStream has no HTTP"), ({}, "# .sinetstream_config.yml")):
        service = {"name": "web", "settings": protocol}
        body = {"metadata": {"name": "a"}, "spec": {**spec(1).to_json(), "service": service}, "status": status}
        assert configuration("sensors", {}, [BenchmarkResult.model_validate(body)]).startswith(opening)
