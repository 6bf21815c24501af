"""What the chart renders, without a cluster."""

import json

from images.naming import reference
from tests.chart.helm import Helm, Json, of_kind
from tests.chart.rendered import (
    CLUSTER_WIDE,
    DIGEST,
    FULL,
    NAMESPACED,
    VARIANTS,
    admission_objects,
    annotations,
    container,
    environment,
)
from tierbench.api.policy import Policy, Quotas
from tierbench.api.schema import resource_types
from tierbench.generate.schemas import custom_resource_definition
from tierbench.kinds.registry import BENCHMARKS, kinds

ADMISSION = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")


@VARIANTS
def test_operator_meets_the_restricted_pod_security_standard(helm: Helm, values: Json) -> None:
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


def test_helm_test_pod_is_restricted_and_asks_the_service(helm: Helm) -> None:
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


def test_users_come_from_the_values(helm: Helm) -> None:
    objects = helm.template(
        {**CLUSTER_WIDE, "operator": {"runAsUser": 1000650000}, "workloads": {"runAsUser": 1000660000}}
    )
    (deployment,) = of_kind(objects, "Deployment")
    context = deployment["spec"]["template"]["spec"]["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"]) == (1000650000, 1000650000)
    assert environment(objects)["TIERBENCH_WORKLOADS_USER"] == "1000660000"


def test_platform_assigns_users_if_the_values_name_none(helm: Helm) -> None:
    objects = helm.template({**CLUSTER_WIDE, "operator": {"runAsUser": None}, "workloads": {"runAsUser": None}})
    (deployment,) = of_kind(objects, "Deployment")
    context = deployment["spec"]["template"]["spec"]["securityContext"]
    assert context == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert environment(objects)["TIERBENCH_WORKLOADS_USER"] == ""


def test_operator_prefers_the_control_plane(helm: Helm) -> None:
    """The label has any value: it is empty with kubeadm, and true with K3s."""
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


def test_two_operators_are_spread_and_replaced_one_by_one(helm: Helm) -> None:
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


def test_every_object_has_the_common_labels(helm: Helm) -> None:
    for item in helm.template(FULL):
        assert item["metadata"]["labels"]["cost-center"] == "42", item["metadata"]["name"]


def test_account_is_named_by_the_values(helm: Helm) -> None:
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


def test_one_release_creates_the_namespace_of_the_leases(helm: Helm) -> None:
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


def test_check_pods_have_the_settings_of_clients(helm: Helm) -> None:
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
    """Returns the settings of the pods of `kubectl tierbench doctor`."""
    (text,) = [
        found["tierbench.io/clients"]
        for role in of_kind(objects, "ClusterRole")
        if "tierbench.io/clients" in (found := annotations(role))
    ]
    settings: Json = json.loads(text)
    return settings


def test_values_place_the_pod(helm: Helm) -> None:
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


def test_definitions_are_the_generated_ones_and_are_kept_on_request(helm: Helm) -> None:
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


def test_prometheus_finds_metrics_by_annotations_or_a_service_monitor(helm: Helm) -> None:
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


def test_cluster_scoped_objects_of_two_releases_have_different_names(helm: Helm) -> None:
    first, second = helm.template(CLUSTER_WIDE, "a", "b-c"), helm.template(CLUSTER_WIDE, "a-b", "c")
    for kind in ("ClusterRoleBinding", *ADMISSION):
        assert of_kind(first, kind)[0]["metadata"]["name"] != of_kind(second, kind)[0]["metadata"]["name"]


def test_admission_policies_apply_to_the_watched_namespaces(helm: Helm) -> None:
    assert {len(admission_objects(helm.template(CLUSTER_WIDE), kind)) for kind in ADMISSION} == {len(BENCHMARKS) + 1}
    for binding in admission_objects(helm.template(CLUSTER_WIDE), ADMISSION[1]):
        assert "matchResources" not in binding["spec"]
    for binding in admission_objects(helm.template(NAMESPACED), ADMISSION[1]):
        (expression,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert expression == {
            "key": "kubernetes.io/metadata.name",
            "operator": "In",
            "values": NAMESPACED["watchNamespaces"],
        }
    without = helm.template(CLUSTER_WIDE | {"policy": {"admission": False}})
    assert not any(admission_objects(without, kind) for kind in ADMISSION)


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
