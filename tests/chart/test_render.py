"""What the chart refuses and renders, without a cluster."""

import json
from typing import Any

import pytest

from tests.chart.helm import Helm, HelmError, Json, of_kind
from tierbench.api.benchmark_kinds import BENCHMARKS
from tierbench.api.kinds import KINDS
from tierbench.api.permissions import PERMISSIONS, Permission, Scope
from tierbench.api.policy import Policy
from tierbench.generate.crd import custom_resource_definition

CLUSTER_WIDE: Json = {}
NAMESPACED: Json = {"watchNamespaces": ["team-a", "team-b"], "crds": {"install": False}}
FULL: Json = {
    "operator": {
        "image": "registry.example/operator:1",
        "resources": {"requests": {"cpu": 1}},
        "nodeSelector": {"role": "control"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "priorityClassName": "high",
    },
    "client": {"image": "registry.example/client:1"},
    "nginx": {
        "image": "docker.io/library/nginx:1.29",
        "alternatives": {"1.19.6": "docker.io/library/nginx:1.19.6", "debian": "registry.example/nginx:12"},
    },
    "imagePullSecrets": ["pull-a", "pull-b"],
    "policy": {"hostPaths": ["/mnt/ssd"], "nodeClasses": {"*": [], "team-a": ["cloud"]}},
    "logLevel": "debug",
    "crds": {"keep": False},
    "leases": {"namespace": "shared-leases"},
    "metrics": {"annotations": False, "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    "global": {"anything": "of a parent chart"},
}
ADMISSION = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
VARIANTS = pytest.mark.parametrize("values", [CLUSTER_WIDE, NAMESPACED, FULL], ids=["cluster", "namespaced", "full"])

WRONG_VALUES: list[tuple[Json, str]] = [
    ({"replicas": 2}, "additional properties 'replicas' not allowed"),
    ({"operator": {"imagee": "x"}}, "additional properties 'imagee' not allowed"),
    ({"watchNamespaces": "team-a"}, "got string, want array"),
    ({"watchNamespaces": ["Team_A"]}, "does not match pattern"),
    ({"watchNamespaces": ["team-a", "team-a"]}, "items at 0 and 1 are equal"),
    ({"watchNamespaces": ["tierbench-leases"]}, "keep benchmarks in another one"),
    ({"leases": {"namespace": ""}}, "minLength: got 0, want 1"),
    ({"logLevel": "verbose"}, "value must be one of 'debug', 'info', 'warning', 'error'"),
    ({"nginx": {"image": "nginx 1.29"}}, "does not match pattern"),
    ({"kafka": {"alternatives": {"4": "kafka:4"}}}, "does not match pattern"),
    ({"mosquitto": {"alternatives": {"2.0": ""}}}, "does not match pattern"),
    ({"nginx": {"alternatives": {"default": "nginx:1.29"}}}, "'not' failed"),
    ({"client": {"alternatives": {}}}, "additional properties 'alternatives' not allowed"),
    ({"operator": {"resources": {"request": {}}}}, "additional properties 'request' not allowed"),
    ({"metrics": {"serviceMonitor": {"interval": "soon"}}}, "does not match pattern"),
    ({"crds": {"install": "yes"}}, "got string, want boolean"),
    ({"policy": {"hostPath": []}}, "additional properties 'hostPath' not allowed"),
    ({"policy": {"hostPaths": ["/"]}}, "does not match pattern"),
    ({"policy": {"hostPaths": ["/srv/../etc"]}}, "does not match pattern"),
    ({"policy": {"access": []}}, "minItems: got 0, want 1"),
    ({"policy": {"access": ["Host"]}}, "value must be one of 'PodIP', 'ClusterIP', 'NodePort', 'HostNetwork'"),
    ({"policy": {"refusedNetworks": ["127.0.0.1"]}}, "does not match pattern"),
    ({"policy": {"allowedNames": ["*"]}}, "does not match pattern"),
    ({"policy": {"nodeClasses": {"Team": []}}}, "does not match pattern"),
]


def table(*scopes: Scope) -> set[tuple[str, str, str]]:
    """The permissions of these scopes, each verb on each resource."""
    return expanded([policy(permission) for permission in PERMISSIONS if permission.scope in scopes])


def policy(permission: Permission) -> Json:
    return {
        "apiGroups": [permission.group],
        "resources": permission.resources,
        "verbs": permission.verbs,
    }


def expanded(rules: list[Json]) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def roles(objects: list[Json]) -> dict[str, set[tuple[str, str, str]]]:
    """What is permitted in each namespace, and everywhere under the empty name."""
    found = of_kind(objects, "ClusterRole") + of_kind(objects, "Role")
    return {role["metadata"].get("namespace", ""): expanded(role["rules"]) for role in found}


def container(objects: list[Json]) -> Json:
    (deployment,) = of_kind(objects, "Deployment")
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    found: Json = only
    return found


def environment(objects: list[Json]) -> dict[str, Any]:
    return {variable["name"]: variable.get("value") for variable in container(objects)["env"]}


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
        Helm(helm.program, helm.home, "1.33.13").template({})


@VARIANTS
def test_operator_is_restricted_as_pod_security_defines_it(helm: Helm, values: Json) -> None:
    objects = helm.template(values)
    (deployment,) = of_kind(objects, "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 65532
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes", "initContainers"} & set(pod)
    assert container(objects)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@VARIANTS
def test_one_operator_at_a_time(helm: Helm, values: Json) -> None:
    (deployment,) = of_kind(helm.template(values), "Deployment")
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}


def test_cluster_wide_rights_are_those_of_the_table(helm: Helm) -> None:
    assert roles(helm.template(CLUSTER_WIDE)) == {
        "": table(Scope.CLUSTER, Scope.NAMESPACED),
        "tierbench-leases": table(Scope.LEASES),
    }


def test_namespaced_rights_are_those_of_the_table(helm: Helm) -> None:
    assert roles(helm.template(NAMESPACED)) == {
        "": table(Scope.CLUSTER),
        "team-a": table(Scope.NAMESPACED),
        "team-b": table(Scope.NAMESPACED),
        "tierbench-leases": table(Scope.LEASES),
    }


@VARIANTS
def test_every_role_is_bound_to_the_operator_alone(helm: Helm, values: Json) -> None:
    objects = helm.template(values)
    (deployment,) = of_kind(objects, "Deployment")
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    for kind in ("ClusterRole", "Role"):
        bindings = of_kind(objects, f"{kind}Binding")
        bound = {(binding["metadata"].get("namespace"), binding["roleRef"]["name"]) for binding in bindings}
        assert bound == {
            (role["metadata"].get("namespace"), role["metadata"]["name"]) for role in of_kind(objects, kind)
        }
        for binding in bindings:
            assert binding["roleRef"]["kind"] == kind
            assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": "bench"}]


def test_operator_is_configured_by_its_environment(helm: Helm) -> None:
    found = environment(helm.template(NAMESPACED))
    assert Policy.model_validate_json(found.pop("TIERBENCH_POLICY")) == Policy()
    assert found == {
        "POD_NAMESPACE": None,
        "TIERBENCH_WATCH_NAMESPACES": "team-a,team-b",
        "TIERBENCH_LEASE_NAMESPACE": "tierbench-leases",
        "TIERBENCH_CLIENT_IMAGE": "ghcr.io/tierbench/client:0.1.0",
        "TIERBENCH_NGINX_IMAGE": "ghcr.io/tierbench/nginx:0.1.0",
        "TIERBENCH_MOSQUITTO_IMAGE": "ghcr.io/tierbench/mosquitto:0.1.0",
        "TIERBENCH_KAFKA_IMAGE": "ghcr.io/tierbench/kafka:0.1.0",
        "TIERBENCH_PAHO_IMAGE": "ghcr.io/tierbench/paho:0.1.0",
        "TIERBENCH_NETWORK_IMAGE": "ghcr.io/tierbench/network:0.1.0",
        "TIERBENCH_IMAGE_PULL_SECRETS": "",
        "TIERBENCH_IMAGE_ALTERNATIVES": '{"kafka":{},"mosquitto":{},"nginx":{}}',
        "TIERBENCH_LOG_LEVEL": "info",
    }
    full = environment(helm.template(FULL))
    assert full["TIERBENCH_WATCH_NAMESPACES"] == ""
    assert full["TIERBENCH_LEASE_NAMESPACE"] == "shared-leases"
    assert full["TIERBENCH_CLIENT_IMAGE"] == "registry.example/client:1"
    assert full["TIERBENCH_NGINX_IMAGE"] == "docker.io/library/nginx:1.29"
    assert full["TIERBENCH_IMAGE_PULL_SECRETS"] == "pull-a,pull-b"
    assert json.loads(full["TIERBENCH_IMAGE_ALTERNATIVES"])["nginx"] == FULL["nginx"]["alternatives"]
    assert full["TIERBENCH_LOG_LEVEL"] == "debug"
    policy = Policy.model_validate_json(full["TIERBENCH_POLICY"])
    assert (policy.host_paths, policy.node_classes) == (("/mnt/ssd",), {"*": (), "team-a": ("cloud",)})


def test_pod_is_placed_as_the_values_say(helm: Helm) -> None:
    objects = helm.template(FULL)
    (deployment,) = of_kind(objects, "Deployment")
    pod, given = deployment["spec"]["template"]["spec"], FULL["operator"]
    assert {field: pod[field] for field in ("nodeSelector", "tolerations", "affinity", "priorityClassName")} == {
        field: given[field] for field in ("nodeSelector", "tolerations", "affinity", "priorityClassName")
    }
    assert pod["imagePullSecrets"] == [{"name": "pull-a"}, {"name": "pull-b"}]
    assert container(objects)["image"] == "registry.example/operator:1"
    assert container(objects)["resources"]["requests"] == {"cpu": 1, "memory": "128Mi"}


def test_definitions_are_the_generated_ones_and_kept_if_asked(helm: Helm) -> None:
    rendered = {crd["metadata"]["name"]: crd for crd in of_kind(helm.template({}), "CustomResourceDefinition")}
    assert {name: crd["spec"] for name, crd in rendered.items()} == {
        f"{model.KIND.plural}.tierbench.io": custom_resource_definition(model)["spec"] for model in KINDS
    }
    keep = {"helm.sh/resource-policy": "keep"}
    assert {name: crd["metadata"].get("annotations") for name, crd in rendered.items()} == dict.fromkeys(rendered, keep)
    for crd in of_kind(helm.template(FULL), "CustomResourceDefinition"):
        assert "annotations" not in crd["metadata"]
    assert of_kind(helm.template(NAMESPACED), "CustomResourceDefinition") == []


def test_metrics_are_found_by_annotations_or_a_service_monitor(helm: Helm) -> None:
    (service,) = of_kind(helm.template({}), "Service")
    assert service["metadata"]["annotations"] == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "8080",
        "prometheus.io/path": "/metrics",
    }
    assert of_kind(helm.template({}), "ServiceMonitor") == []
    (service,) = of_kind(helm.template(FULL), "Service")
    assert "annotations" not in service["metadata"]
    (monitor,) = of_kind(helm.template(FULL), "ServiceMonitor")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]


@VARIANTS
def test_service_and_probes_reach_the_operator(helm: Helm, values: Json) -> None:
    objects = helm.template(values)
    (service,), (deployment,) = of_kind(objects, "Service"), of_kind(objects, "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    operator = container(objects)
    assert operator["ports"] == [{"name": "http", "containerPort": 8080}]
    assert operator["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert operator["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}


def test_releases_share_no_names_of_shared_things(helm: Helm) -> None:
    first, second = helm.template({}, "a", "b-c"), helm.template({}, "a-b", "c")
    for kind in ("ClusterRole", "ClusterRoleBinding", *ADMISSION):
        assert of_kind(first, kind)[0]["metadata"]["name"] != of_kind(second, kind)[0]["metadata"]["name"]


def test_benchmarks_are_refused_where_the_release_runs_them_and_nowhere_else(helm: Helm) -> None:
    numbers = {len(of_kind(helm.template(CLUSTER_WIDE), kind)) for kind in ADMISSION}
    assert numbers == {len(BENCHMARKS)}
    for binding in of_kind(helm.template(CLUSTER_WIDE), ADMISSION[1]):
        assert "matchResources" not in binding["spec"]
    for binding in of_kind(helm.template(NAMESPACED), ADMISSION[1]):
        (expression,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert expression == {
            "key": "kubernetes.io/metadata.name",
            "operator": "In",
            "values": NAMESPACED["watchNamespaces"],
        }
    without = helm.template({"policy": {"admission": False}})
    assert not any(of_kind(without, kind) for kind in ADMISSION)


def test_notes_say_what_to_do_next(helm: Helm) -> None:
    notes = helm.notes({})
    assert "runs the benchmarks of all namespaces" in notes
    assert "kubectl -n bench rollout status deployment/files-tierbench" in notes
    assert "stay when this release is uninstalled" in notes
    notes = helm.notes(NAMESPACED)
    assert "runs the benchmarks of team-a, team-b" in notes
    assert "kubectl -n team-a get filetransferbenchmarks,results --watch" in notes
    assert "leaves the CustomResourceDefinitions to another one" in notes
