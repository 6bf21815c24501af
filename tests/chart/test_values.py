"""The chart refuses wrong values, and says what to write."""

import pytest

from tests.chart.helm import Helm, HelmError, Json
from tests.chart.rendered import CLUSTER_WIDE, VARIANTS

WRONG_VALUES: list[tuple[Json, str]] = [
    ({"replicas": 2}, "additional properties 'replicas' not allowed"),
    ({"operator": {"imagee": "x"}}, "additional properties 'imagee' not allowed"),
    ({"watchNamespaces": "team-a"}, "got string, want array"),
    ({"watchNamespaces": ["Team_A"]}, "does not match pattern"),
    ({"watchNamespaces": ["team-a", "team-a"]}, "items at 0 and 1 are equal"),
    ({}, "say whose benchmarks this release runs: watchNamespaces={team-a,team-b}, or allNamespaces=true"),
    ({"watchNamespaces": ["team-a"], "allNamespaces": True}, "leave one of them out"),
    ({"allNamespaces": True, "writers": None}, "there is no writers in the values, which are those of an older chart"),
    (
        {"allNamespaces": True, "operator": {"serviceAccount": {"create": False}}},
        "write the name of your account in operator.serviceAccount.name",
    ),
    ({"allNamespaces": True, "fullnameOverride": "Bench"}, "does not match pattern"),
    ({"allNamespaces": True, "collector": {"enabled": True, "address": "192.0.2.7"}}, "does not match pattern"),
    ({"logFormat": "xml"}, "value must be one of 'text', 'json'"),
    ({"watchNamespaces": ["tierbench-leases"]}, "keep benchmarks in another one"),
    ({"watchNamespaces": ["bench"]}, "their authors could act as the operator: keep benchmarks in another one"),
    ({"leases": {"namespace": ""}}, "minLength: got 0, want 1"),
    ({"logLevel": "verbose"}, "value must be one of 'debug', 'info', 'warning', 'error'"),
    ({"nginx": {"image": "nginx:1.29"}}, "got string, want object"),
    ({"nginx": {"image": {"repository": "nginx:1.29"}}}, "does not match pattern"),
    ({"nginx": {"image": {"repository": "nginx@sha256:1"}}}, "does not match pattern"),
    ({"nginx": {"image": {"tag": "1 29"}}}, "does not match pattern"),
    ({"nginx": {"image": {"tag": 1.29}}}, "got number, want string"),
    ({"nginx": {"image": {"digest": "5555"}}}, "does not match pattern"),
    ({"nginx": {"image": {"pullPolicy": "Sometimes"}}}, "value must be one of '', 'Always', 'IfNotPresent', 'Never'"),
    ({"imagePullSecrets": ["registry"]}, "got string, want object"),
    ({"kafka": {"alternatives": {"4": "kafka:4"}}}, "does not match pattern"),
    ({"mosquitto": {"alternatives": {"2.0": ""}}}, "does not match pattern"),
    ({"nginx": {"alternatives": {"default": "nginx:1.29"}}}, "'not' failed"),
    ({"client": {"alternatives": {}}}, "additional properties 'alternatives' not allowed"),
    ({"operator": {"resources": {"request": {}}}}, "additional properties 'request' not allowed"),
    ({"limits": {"case": 5}}, "additional properties 'case' not allowed"),
    ({"limits": {"cases": 0}}, "minimum: got 0, want 1"),
    ({"limits": {"storedBytes": 512}}, "got number, want string"),
    ({"limits": {"resultBytes": "much"}}, "does not match pattern"),
    ({"metrics": {"serviceMonitor": {"interval": "soon"}}}, "does not match pattern"),
    ({"networkPolicies": {"apiServerPorts": []}}, "minItems: got 0, want 1"),
    ({"networkPolicies": {"scrapers": {"namespaceSelector": {}}}}, "got object, want array"),
    ({"crds": {"enabled": "yes"}}, "got string, want boolean"),
    ({"policy": {"hostPath": []}}, "additional properties 'hostPath' not allowed"),
    ({"policy": {"hostPaths": ["/"]}}, "does not match pattern"),
    ({"policy": {"hostPaths": ["/srv/../etc"]}}, "does not match pattern"),
    ({"policy": {"access": []}}, "minItems: got 0, want 1"),
    ({"policy": {"access": ["Host"]}}, "value must be one of 'PodIP', 'ClusterIP', 'NodePort', 'HostNetwork'"),
    ({"policy": {"refusedNetworks": ["127.0.0.1"]}}, "does not match pattern"),
    ({"policy": {"allowedNames": ["*"]}}, "does not match pattern"),
    ({"policy": {"nodeClassNames": {"Team": []}}}, "does not match pattern"),
    ({"operator": {"replicaCount": 0}}, "minimum: got 0, want 1"),
    ({"operator": {"runAsUser": 0}}, "minimum: got 0, want 1"),
    ({"workloads": {"runAsUser": "root"}}, "got string, want integer"),
    (
        {"allNamespaces": True, "operator": {"runAsUser": 1000}, "workloads": {"runAsUser": 1000}},
        "write another number in one of them",
    ),
]


@VARIANTS
def test_lint_finds_nothing(helm: Helm, values: Json) -> None:
    assert "0 chart(s) failed" in helm.lint(values)


@pytest.mark.parametrize(("values", "message"), WRONG_VALUES)
def test_wrong_values_are_refused(helm: Helm, values: Json, message: str) -> None:
    with pytest.raises(HelmError) as refused:
        helm.template(values)
    assert message in str(refused.value)


def test_old_kubernetes_is_refused(helm: Helm) -> None:
    with pytest.raises(HelmError, match="chart requires kubeVersion"):
        Helm(helm.program, helm.home, "1.30.14").template(CLUSTER_WIDE)
