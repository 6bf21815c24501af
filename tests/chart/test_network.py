"""NetworkPolicies of a release, and permissions to read /metrics."""

from dataclasses import replace

from tests.chart.helm import Helm, Json, of_kind
from tests.chart.rendered import CLUSTER_WIDE, environment, expanded, table
from tests.network_policies import Peer, permitted
from tierbench.api.rbac import Scope

HTTP = {"http": 8080}
PROMETHEUS = Peer("10.0.0.2", "monitoring")
STRANGER = Peer("10.0.0.3", "default")
API_SERVER = Peer("192.0.2.1")
RESOLVER = Peer("10.0.9.9", "kube-system", {"k8s-app": "kube-dns"})
OPEN: Json = CLUSTER_WIDE | {"metrics": {"authorization": False}}
COLLECTING: Json = CLUSTER_WIDE | {"collector": {"enabled": True}}
MONITORED: Json = CLUSTER_WIDE | {"metrics": {"serviceMonitor": {"enabled": True}}}


def operator_of(objects: list[Json]) -> Peer:
    (deployment,) = of_kind(objects, "Deployment")
    return Peer("10.0.0.1", "bench", deployment["spec"]["template"]["metadata"]["labels"], HTTP)


def test_policy_admits_the_http_port_and_egress_to_dns_and_the_api_server(helm: Helm) -> None:
    objects = helm.template(CLUSTER_WIDE)
    policies, operator = of_kind(objects, "NetworkPolicy"), operator_of(objects)
    assert permitted(policies, STRANGER, operator, 8080)
    assert not permitted(policies, STRANGER, operator, 8081), "the kubelet's probes need no policy"
    assert not permitted(policies, STRANGER, operator, 9090)
    for port in (443, 6443):
        assert permitted(policies, operator, API_SERVER, port)
    for protocol in ("UDP", "TCP"):
        assert permitted(policies, operator, RESOLVER, 53, protocol)
    assert not permitted(policies, operator, Peer("169.254.169.254"), 80)


def test_values_name_scrapers_and_ports_of_the_api_server(helm: Helm) -> None:
    monitoring = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    objects = helm.template(CLUSTER_WIDE | {"networkPolicies": {"scrapers": [monitoring], "apiServerPorts": [7443]}})
    policies, operator = of_kind(objects, "NetworkPolicy"), operator_of(objects)
    assert permitted(policies, PROMETHEUS, operator, 8080)
    assert not permitted(policies, STRANGER, operator, 8080)
    (test,) = [pod for pod in of_kind(objects, "Pod") if "helm.sh/hook" in pod["metadata"]["annotations"]]
    assert permitted(policies, Peer("10.0.0.4", "bench", test["metadata"]["labels"]), operator, 8080)
    assert permitted(policies, operator, API_SERVER, 7443)
    assert not permitted(policies, operator, API_SERVER, 6443)


def test_enabled_collector_is_open_to_clients_and_reads_only_its_own_secret(helm: Helm) -> None:
    objects = helm.template(COLLECTING)
    policies, operator = of_kind(objects, "NetworkPolicy"), operator_of(objects)
    operator = replace(operator, ports={**HTTP, "collector": 8443})
    assert permitted(policies, STRANGER, operator, 8443)
    assert not permitted(of_kind(helm.template(CLUSTER_WIDE), "NetworkPolicy"), STRANGER, operator, 8443)
    (secret,) = of_kind(objects, "Secret")
    assert "data" not in secret, "helm would replace the key"
    (role,) = (role for role in of_kind(objects, "Role") if role["metadata"]["name"] == secret["metadata"]["name"])
    names = [role["metadata"]["name"]]
    assert role["metadata"]["namespace"] == secret["metadata"]["namespace"] == "bench"
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": names, "verbs": ["get", "update"]}
    assert role["rules"] == [rule]
    found = environment(objects)
    assert found["TIERBENCH_COLLECTOR_SECRET"] == secret["metadata"]["name"]
    assert found["TIERBENCH_COLLECTOR_URL"] == f"https://{secret['metadata']['name']}.bench.svc:8443"
    elsewhere = environment(helm.template(COLLECTING | {"collector": {"enabled": True, "address": "192.0.2.7:30443"}}))
    assert elsewhere["TIERBENCH_COLLECTOR_URL"] == "https://192.0.2.7:30443"


def test_policies_can_be_switched_off(helm: Helm) -> None:
    objects = helm.template(CLUSTER_WIDE | {"networkPolicies": {"operator": False, "benchmarks": False}})
    assert of_kind(objects, "NetworkPolicy") == []
    assert environment(objects)["TIERBENCH_NETWORK_POLICIES"] == "false"


def test_metrics_need_a_permission_by_default(helm: Helm) -> None:
    """Tokens are sent encrypted. The operator may create token and access reviews, and nothing else is added."""
    plain, objects = helm.template(OPEN), helm.template(CLUSTER_WIDE)
    assert environment(objects)["TIERBENCH_METRICS_AUTHORIZATION"] == "true"
    (monitor,) = of_kind(helm.template(MONITORED), "ServiceMonitor")
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["scheme"] == "https"
    assert endpoint["tlsConfig"] == {"insecureSkipVerify": True}
    assert endpoint["bearerTokenFile"].endswith("/serviceaccount/token")
    (service,) = of_kind(objects, "Service")
    assert service["metadata"]["annotations"]["prometheus.io/scheme"] == "https"
    before = {role["metadata"]["name"] for role in of_kind(plain, "ClusterRole")}
    added = {role["metadata"]["name"]: role["rules"] for role in of_kind(objects, "ClusterRole")}
    added = {name: rules for name, rules in added.items() if name not in before}
    assert expanded(added.pop("bench:files-tierbench:metrics")) == table(Scope.METRICS)
    assert added == {"bench:files-tierbench:metrics-reader": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]}
