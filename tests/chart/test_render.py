"""What the chart refuses and renders, without a cluster."""

import json
from typing import Any

import pytest

from images.naming import reference
from tests.chart.helm import Helm, HelmError, Json, of_kind
from tierbench.api.model import GROUP
from tierbench.api.policy import Policy, Quotas
from tierbench.api.rbac import Permission, Scope, UserRole, permissions, user_grants
from tierbench.api.schema import resource_types
from tierbench.generate.schemas import custom_resource_definition
from tierbench.kinds.registry import BENCHMARKS, kinds

DIGEST = f"sha256:{'5' * 64}"
CLUSTER_WIDE: Json = {"allNamespaces": True}
NAMESPACED: Json = {"watchNamespaces": ["team-a", "team-b"], "crds": {"enabled": False}}
FULL: Json = {
    "allNamespaces": True,
    "fullnameOverride": "bench-operator",
    "commonLabels": {"cost-center": "42"},
    "operator": {
        "image": {"repository": "registry.example:5000/operator", "tag": "1", "pullPolicy": "Always"},
        "serviceAccount": {"name": "bench-account", "annotations": {"cloud.example/role": "none"}},
        "resources": {"requests": {"cpu": 1}},
        "nodeSelector": {"role": "control"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
        ],
        "priorityClassName": "high",
        "podLabels": {"team": "platform"},
        "podAnnotations": {"sidecar.example/inject": "false"},
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    },
    "workloads": {"priorityClassName": "low"},
    "client": {"image": {"repository": "registry.example/client", "tag": "1", "digest": DIGEST}},
    "nginx": {
        "image": {"repository": "docker.io/library/nginx", "tag": "1.29", "pullPolicy": "IfNotPresent"},
        "alternatives": {"1.19.6": "docker.io/library/nginx:1.19.6", "debian": "registry.example/nginx:12"},
    },
    "imagePullSecrets": [{"name": "pull-a"}, {"name": "pull-b"}],
    "policy": {"hostPaths": ["/mnt/ssd"], "nodeClassNames": {"*": [], "team-a": ["cloud"]}},
    "logLevel": "debug",
    "limits": {"cases": 50, "leaseSeconds": 86400, "storedBytes": "1Gi", "freeDisk": "5Gi"},
    "logFormat": "json",
    "writers": {"extra": ["system:serviceaccount:velero:velero"]},
    "crds": {"keep": False},
    "leases": {"namespace": "shared-leases"},
    "metrics": {"scrapeAnnotations": True, "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    "global": {
        "imageRegistry": "mirror.example:5000/hub",
        "imagePullSecrets": [{"name": "pull-global"}, {"name": "pull-a"}],
        "anything": "of a parent chart",
    },
}
ADMISSION = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
COLLECTING: Json = CLUSTER_WIDE | {"collector": {"enabled": True, "serviceType": "NodePort"}}
VARIANTS = pytest.mark.parametrize("values", [CLUSTER_WIDE, NAMESPACED, FULL], ids=["cluster", "namespaced", "full"])

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


def table(*scopes: Scope) -> set[tuple[str, str, str]]:
    """The permissions of these scopes, each verb on each resource."""
    return expanded([policy(permission) for permission in permissions() if permission.scope in scopes])


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
    """What the operator may do in each namespace, and everywhere under the empty name."""
    found = [role for role in of_kind(objects, "ClusterRole") if "tierbench.io/watch-namespaces" in annotations(role)]
    found += of_kind(objects, "Role")
    return {role["metadata"].get("namespace", ""): expanded(role["rules"]) for role in found}


def for_users(objects: list[Json]) -> list[Json]:
    """The roles that Kubernetes adds to its own."""
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    return [
        role for role in of_kind(objects, "ClusterRole") if any(prefix in key for key in role["metadata"]["labels"])
    ]


def annotations(body: Json) -> Json:
    found: Json = body["metadata"].get("annotations", {})
    return found


def container(objects: list[Json]) -> Json:
    (deployment,) = of_kind(objects, "Deployment")
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    found: Json = only
    return found


def environment(objects: list[Json]) -> dict[str, Any]:
    return {variable["name"]: variable.get("value") for variable in container(objects)["env"]}


def judges(objects: list[Json], kind: str) -> list[Json]:
    """The admission policies of benchmarks and of metadata, or their bindings."""
    plurals = {"metadata", *(model.KIND.plural for model in BENCHMARKS.values())}
    return [body for body in of_kind(objects, kind) if body["metadata"]["name"].rpartition(".")[2] in plurals]


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


@VARIANTS
def test_operator_is_restricted_as_pod_security_defines_it(helm: Helm, values: Json) -> None:
    objects = helm.template(values)
    (deployment,) = of_kind(objects, "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["runAsGroup"] == 65531
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes", "initContainers"} & set(pod)
    assert container(objects)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_test_of_a_release_is_restricted_too_and_asks_its_service(helm: Helm) -> None:
    objects = helm.template(CLUSTER_WIDE)
    (pod,), (service,) = of_kind(objects, "Pod"), of_kind(objects, "Service")
    (only,) = pod["spec"]["containers"]
    assert {key: only["securityContext"][key] for key in ("runAsNonRoot", "capabilities", "seccompProfile")} == {
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert f"https://{service['metadata']['name']}:8080/readyz" in only["command"][-1]
    assert pod["spec"]["automountServiceAccountToken"] is False


def test_users_are_those_of_the_values(helm: Helm) -> None:
    objects = helm.template(
        {**CLUSTER_WIDE, "operator": {"runAsUser": 1000650000}, "workloads": {"runAsUser": 1000660000}}
    )
    (deployment,) = of_kind(objects, "Deployment")
    context = deployment["spec"]["template"]["spec"]["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"]) == (1000650000, 1000650000)
    assert environment(objects)["TIERBENCH_WORKLOADS_USER"] == "1000660000"


def test_users_are_the_platforms_to_assign_where_none_are_named(helm: Helm) -> None:
    objects = helm.template({**CLUSTER_WIDE, "operator": {"runAsUser": None}, "workloads": {"runAsUser": None}})
    (deployment,) = of_kind(objects, "Deployment")
    context = deployment["spec"]["template"]["spec"]["securityContext"]
    assert context == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert environment(objects)["TIERBENCH_WORKLOADS_USER"] == ""


def test_operator_prefers_the_control_plane_tolerates_its_taint_and_can_run_elsewhere(helm: Helm) -> None:
    """Whatever the value of the label: empty with kubeadm, true with K3s."""
    (deployment,) = of_kind(helm.template(CLUSTER_WIDE), "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    control_plane = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}
    (preferred,) = pod["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["preference"] == {"matchExpressions": [control_plane]}
    assert pod["tolerations"] == [control_plane | {"effect": "NoSchedule"}]
    assert "nodeSelector" not in pod


@VARIANTS
def test_one_operator_at_a_time(helm: Helm, values: Json) -> None:
    (deployment,) = of_kind(helm.template(values), "Deployment")
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert of_kind(helm.template(values), "PodDisruptionBudget") == []


def test_two_operators_are_spread_replaced_one_by_one_and_never_drained_at_once(helm: Helm) -> None:
    objects = helm.template({**CLUSTER_WIDE, "operator": {"replicaCount": 2, "podDisruptionBudget": {"enabled": True}}})
    (deployment,), (budget,) = of_kind(objects, "Deployment"), of_kind(objects, "PodDisruptionBudget")
    labels = deployment["spec"]["selector"]["matchLabels"]
    (spread,) = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == ("kubernetes.io/hostname", "ScheduleAnyway")
    assert spread["labelSelector"] == {"matchLabels": labels}
    assert budget["spec"] == {"maxUnavailable": 1, "selector": {"matchLabels": labels}}


def test_custom_spread_replaces_the_default(helm: Helm) -> None:
    values = {"replicaCount": 2, "topologySpreadConstraints": FULL["operator"]["topologySpreadConstraints"]}
    (deployment,) = of_kind(helm.template({**CLUSTER_WIDE, "operator": values}), "Deployment")
    assert deployment["spec"]["template"]["spec"]["topologySpreadConstraints"] == values["topologySpreadConstraints"]


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


@pytest.mark.parametrize("values", [CLUSTER_WIDE, NAMESPACED, FULL, COLLECTING])
def test_every_role_is_bound_to_the_operator_alone(helm: Helm, values: Json) -> None:
    objects = helm.template(values)
    (deployment,) = of_kind(objects, "Deployment")
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    for kind in ("ClusterRole", "Role"):
        bindings = of_kind(objects, f"{kind}Binding")
        bound = {(binding["metadata"].get("namespace"), binding["roleRef"]["name"]) for binding in bindings}
        assert bound == {
            (role["metadata"].get("namespace"), role["metadata"]["name"])
            for role in of_kind(objects, kind)
            if role not in for_users(objects) and not role["metadata"]["name"].endswith(":metrics-reader")
        }
        for binding in bindings:
            assert binding["roleRef"]["kind"] == kind
            assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": "bench"}]


def test_every_object_has_the_common_labels(helm: Helm) -> None:
    for item in helm.template(FULL):
        assert item["metadata"]["labels"]["cost-center"] == "42", item["metadata"]["name"]


def test_the_account_is_the_one_that_the_values_name(helm: Helm) -> None:
    objects = helm.template(FULL)
    (account,) = of_kind(objects, "ServiceAccount")
    assert (account["metadata"]["name"], annotations(account)) == ("bench-account", {"cloud.example/role": "none"})
    yours = {"create": False, "name": "yours"}
    objects = helm.template(CLUSTER_WIDE | {"operator": {"serviceAccount": yours}})
    assert of_kind(objects, "ServiceAccount") == []
    (deployment,) = of_kind(objects, "Deployment")
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == "yours"
    (policy,) = (
        item for item in of_kind(objects, "ValidatingAdmissionPolicy") if item["metadata"]["name"].endswith(".writers")
    )
    assert '["system:serviceaccount:bench:yours"]' in policy["spec"]["matchConditions"][0]["expression"]


def test_users_get_what_the_table_says_and_one_release_brings_it(helm: Helm) -> None:
    found = {role["metadata"]["name"]: role for role in for_users(helm.template(CLUSTER_WIDE))}
    assert set(found) == {f"tierbench-{role}" for role in UserRole}
    for role in UserRole:
        body = found[f"tierbench-{role}"]
        assert body["metadata"]["labels"][f"rbac.authorization.k8s.io/aggregate-to-{role}"] == "true"
        assert expanded(body["rules"]) == {
            (GROUP, resource, verb)
            for grant in user_grants()
            if grant.role is role
            for resource in grant.resources
            for verb in grant.verbs
        }
    assert for_users(helm.template(NAMESPACED)) == []


def test_one_release_makes_the_namespace_of_the_leases(helm: Helm) -> None:
    (made,) = of_kind(helm.template(CLUSTER_WIDE), "Namespace")
    assert made["metadata"]["name"] == "tierbench-leases"
    assert of_kind(helm.template(CLUSTER_WIDE | {"leases": {"create": False}}), "Namespace") == []


def test_applied_template_has_no_hook_that_removes_benchmarks(helm: Helm) -> None:
    objects = helm.template(FULL)
    assert [body["metadata"]["name"] for body in objects if annotations(body).get("helm.sh/hook")] == [
        "bench-operator-test"
    ]


def test_operator_is_configured_by_its_environment(helm: Helm) -> None:
    found = environment(helm.template(NAMESPACED))
    assert Quotas.model_validate_json(found.pop("TIERBENCH_LIMITS")) == Quotas()
    assert Policy.model_validate_json(found.pop("TIERBENCH_POLICY")) == Policy()
    assert found == {
        "POD_NAME": None,
        "POD_NAMESPACE": None,
        "TIERBENCH_RELEASE": "bench/files-tierbench",
        "TIERBENCH_WATCH_NAMESPACES": "team-a,team-b",
        "TIERBENCH_LEASE_NAMESPACE": "tierbench-leases",
        "TIERBENCH_CLIENT_IMAGE": reference("client"),
        "TIERBENCH_NGINX_IMAGE": reference("nginx"),
        "TIERBENCH_MOSQUITTO_IMAGE": reference("mosquitto"),
        "TIERBENCH_KAFKA_IMAGE": reference("kafka"),
        "TIERBENCH_PAHO_IMAGE": reference("paho"),
        "TIERBENCH_SINETSTREAM_IMAGE": reference("sinetstream"),
        "TIERBENCH_TRANSFER_IMAGE": reference("transfer"),
        "TIERBENCH_NETWORK_IMAGE": reference("network"),
        "TIERBENCH_IMAGE_PULL_POLICIES": "{}",
        "TIERBENCH_IMAGE_PULL_SECRETS": "",
        "TIERBENCH_IMAGE_ALTERNATIVES": '{"kafka":{},"mosquitto":{},"nginx":{}}',
        "TIERBENCH_PRIORITY_CLASS": "",
        "TIERBENCH_WORKLOADS_USER": "65530",
        "TIERBENCH_METRICS_AUTHORIZATION": "true",
        "TIERBENCH_NETWORK_POLICIES": "true",
        "TIERBENCH_PROBE_PORT": "8081",
        "TIERBENCH_LOG_LEVEL": "info",
        "TIERBENCH_LOG_FORMAT": "text",
    }
    full = environment(helm.template(FULL))
    assert full["TIERBENCH_WATCH_NAMESPACES"] == ""
    assert full["TIERBENCH_LEASE_NAMESPACE"] == "shared-leases"
    assert full["TIERBENCH_CLIENT_IMAGE"] == f"registry.example/client@{DIGEST}"
    assert full["TIERBENCH_NGINX_IMAGE"] == "docker.io/library/nginx:1.29"
    nginx = ("docker.io/library/nginx:1.29", *FULL["nginx"]["alternatives"].values())
    assert json.loads(full["TIERBENCH_IMAGE_PULL_POLICIES"]) == dict.fromkeys(nginx, "IfNotPresent")
    assert full["TIERBENCH_IMAGE_PULL_SECRETS"] == "pull-global,pull-a,pull-b"
    assert json.loads(full["TIERBENCH_IMAGE_ALTERNATIVES"])["nginx"] == FULL["nginx"]["alternatives"]
    assert full["TIERBENCH_LOG_LEVEL"] == "debug"
    assert Quotas.model_validate_json(full["TIERBENCH_LIMITS"]) == Quotas.model_validate(FULL["limits"])
    assert full["TIERBENCH_PRIORITY_CLASS"] == "low"
    policy = Policy.model_validate_json(full["TIERBENCH_POLICY"])
    assert (policy.host_paths, policy.node_class_names) == (("/mnt/ssd",), {"*": (), "team-a": ("cloud",)})
    assert full["TIERBENCH_LOG_FORMAT"] == "json"
    assert full["TIERBENCH_RELEASE"] == "bench/bench-operator"
    assert full["TIERBENCH_KAFKA_IMAGE"] == reference("kafka", "mirror.example:5000/hub")
    assert full["HTTPS_PROXY"] == "http://proxy:3128"


def test_check_pods_are_started_as_clients_are(helm: Helm) -> None:
    assert clients(helm.template(NAMESPACED)) == {
        "image": reference("client"),
        "programs": {name: reference(name) for kind in kinds() for name in kind.images},
        "pullPolicies": {},
        "pullSecrets": [],
        "user": 65530,
        "priorityClass": "",
        "collector": "",
        "networkPolicies": True,
    }
    objects = helm.template({**FULL, "collector": {"enabled": True}, "workloads": {"runAsUser": None}})
    found = clients(objects)
    assert found["image"] == f"registry.example/client@{DIGEST}"
    assert found["programs"]["nginx"] == "docker.io/library/nginx:1.29"
    assert found["pullPolicies"] == json.loads(environment(objects)["TIERBENCH_IMAGE_PULL_POLICIES"])
    assert found["pullSecrets"] == ["pull-global", "pull-a", "pull-b"]
    assert found["collector"] == environment(objects)["TIERBENCH_COLLECTOR_URL"]
    assert "user" not in found


def clients(objects: list[Json]) -> Json:
    """How `kubectl tierbench doctor` starts its pods."""
    (text,) = [
        found["tierbench.io/clients"]
        for role in of_kind(objects, "ClusterRole")
        if "tierbench.io/clients" in (found := annotations(role))
    ]
    settings: Json = json.loads(text)
    return settings


def test_pod_is_placed_as_the_values_say(helm: Helm) -> None:
    objects = helm.template(FULL)
    (deployment,) = of_kind(objects, "Deployment")
    template, given = deployment["spec"]["template"], FULL["operator"]
    pod, fields = template["spec"], ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")
    assert {field: pod[field] for field in fields} == {field: given[field] for field in fields}
    assert pod["priorityClassName"] == "high"
    assert template["metadata"]["labels"]["team"] == "platform"
    assert template["metadata"]["annotations"] == given["podAnnotations"]
    assert container(objects)["imagePullPolicy"] == "Always"
    assert pod["imagePullSecrets"] == [{"name": "pull-global"}, {"name": "pull-a"}, {"name": "pull-b"}]
    assert container(objects)["image"] == "registry.example:5000/operator:1"
    assert container(objects)["resources"]["requests"] == {"cpu": 1, "memory": "128Mi"}


def test_definitions_are_the_generated_ones_and_kept_if_asked(helm: Helm) -> None:
    rendered = {
        crd["metadata"]["name"]: crd for crd in of_kind(helm.template(CLUSTER_WIDE), "CustomResourceDefinition")
    }
    assert {name: crd["spec"] for name, crd in rendered.items()} == {
        f"{model.KIND.plural}.tierbench.io": custom_resource_definition(model)["spec"] for model in resource_types()
    }
    keep = {"helm.sh/resource-policy": "keep"}
    assert {name: crd["metadata"].get("annotations") for name, crd in rendered.items()} == dict.fromkeys(rendered, keep)
    for crd in of_kind(helm.template(FULL), "CustomResourceDefinition"):
        assert "annotations" not in crd["metadata"]
    assert of_kind(helm.template(NAMESPACED), "CustomResourceDefinition") == []


def test_metrics_are_found_by_annotations_or_a_service_monitor(helm: Helm) -> None:
    (service,) = of_kind(helm.template(CLUSTER_WIDE), "Service")
    assert service["metadata"]["annotations"] == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "8080",
        "prometheus.io/scheme": "https",
        "prometheus.io/path": "/metrics",
    }
    assert of_kind(helm.template(CLUSTER_WIDE), "ServiceMonitor") == []
    (service,) = of_kind(helm.template(FULL), "Service")
    assert "annotations" not in service["metadata"], "Prometheus would scrape twice"
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
    ports = {port["name"]: port["containerPort"] for port in operator["ports"]}
    assert ports == {"http": 8080, "probes": 8081}
    assert {"name": "TIERBENCH_PROBE_PORT", "value": "8081"} in operator["env"]
    assert [port["port"] for port in service["spec"]["ports"]] == [8080], "only the kubelet needs the other one"
    assert operator["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "probes"}
    for probe in ("startupProbe", "readinessProbe"):
        assert operator[probe]["httpGet"] == {"path": "/readyz", "port": "probes"}


def test_releases_share_no_names_of_shared_things(helm: Helm) -> None:
    first, second = helm.template(CLUSTER_WIDE, "a", "b-c"), helm.template(CLUSTER_WIDE, "a-b", "c")
    for kind in ("ClusterRoleBinding", *ADMISSION):
        assert of_kind(first, kind)[0]["metadata"]["name"] != of_kind(second, kind)[0]["metadata"]["name"]


def test_benchmarks_are_refused_where_the_release_runs_them_and_nowhere_else(helm: Helm) -> None:
    assert {len(judges(helm.template(CLUSTER_WIDE), kind)) for kind in ADMISSION} == {len(BENCHMARKS) + 1}
    for binding in judges(helm.template(CLUSTER_WIDE), ADMISSION[1]):
        assert "matchResources" not in binding["spec"]
    for binding in judges(helm.template(NAMESPACED), ADMISSION[1]):
        (expression,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert expression == {
            "key": "kubernetes.io/metadata.name",
            "operator": "In",
            "values": NAMESPACED["watchNamespaces"],
        }
    without = helm.template(CLUSTER_WIDE | {"policy": {"admission": False}})
    assert not any(judges(without, kind) for kind in ADMISSION)


def test_notes_say_what_to_do_next(helm: Helm) -> None:
    notes = helm.notes(CLUSTER_WIDE)
    assert "runs the benchmarks of all namespaces" in notes
    assert "kubectl -n bench rollout status deployment/files-tierbench" in notes
    assert "kubectl tierbench init -n NAMESPACE --apply" in notes
    assert "`helm uninstall` keeps the CustomResourceDefinitions" in notes
    notes = helm.notes(NAMESPACED)
    assert "runs the benchmarks of team-a, team-b" in notes
    assert "kubectl tierbench init -n team-a --apply" in notes
    assert "Another release installs the CustomResourceDefinitions" in notes
