"""Values of three releases, and what tests read of their rendered objects."""

from typing import Any

import pytest

from tests.chart.helm import Json, of_kind
from tierbench.api.rbac import Permission, Scope, permissions
from tierbench.kinds.registry import BENCHMARKS

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
COLLECTING: Json = CLUSTER_WIDE | {"collector": {"enabled": True, "serviceType": "NodePort"}}
VARIANTS = pytest.mark.parametrize("values", [CLUSTER_WIDE, NAMESPACED, FULL], ids=["cluster", "namespaced", "full"])


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


def table(*scopes: Scope) -> set[tuple[str, str, str]]:
    """Returns group, resource and verb of each permission of these scopes."""
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


def admission_objects(objects: list[Json], kind: str) -> list[Json]:
    """Returns the admission policies of benchmarks and of metadata, or their bindings."""
    plurals = {"metadata", *(model.KIND.plural for model in BENCHMARKS.values())}
    return [body for body in of_kind(objects, kind) if body["metadata"]["name"].rpartition(".")[2] in plurals]
