"""Resource types and names of the Kubernetes API."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

Raw = Mapping[str, Any]
"""An object as the API server sends it."""

Name = tuple[str, str]
"""Namespace and name of an object. The namespace is empty for a cluster-scoped object."""


@dataclass(frozen=True)
class ResourceType:
    """The path prefix and the plural name under which the API server serves one type."""

    api: str
    plural: str

    @property
    def group_and_version(self) -> tuple[str, str]:
        """The API group, which is empty for core types, and the version."""
        group, _, version = self.api.partition("/")[2].rpartition("/")
        return group, version

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """Returns the path of a collection, an object or a subresource."""
        parts = [self.api, *(["namespaces", namespace] if namespace else []), self.plural]
        return "/".join(["", *parts, *([name] if name else []), *([subresource] if subresource else [])])


NODES: Final = ResourceType("api/v1", "nodes")
PODS: Final = ResourceType("api/v1", "pods")
SERVICES: Final = ResourceType("api/v1", "services")
CONFIG_MAPS: Final = ResourceType("api/v1", "configmaps")
SECRETS: Final = ResourceType("api/v1", "secrets")
VOLUME_CLAIMS: Final = ResourceType("api/v1", "persistentvolumeclaims")
NETWORK_POLICIES: Final = ResourceType("apis/networking.k8s.io/v1", "networkpolicies")
EVENTS: Final = ResourceType("api/v1", "events")
JOBS: Final = ResourceType("apis/batch/v1", "jobs")
CLUSTER_ROLES: Final = ResourceType("apis/rbac.authorization.k8s.io/v1", "clusterroles")
LEASES: Final = ResourceType("apis/coordination.k8s.io/v1", "leases")


def type_of(api_version: str, kind: str) -> ResourceType:
    """Returns the resource type of a kind with a regular English plural."""
    singular = kind.lower()
    plural = f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"
    return ResourceType(f"{'apis' if '/' in api_version else 'api'}/{api_version}", plural)


def selector(labels: Mapping[str, str]) -> str:
    """Returns the labelSelector parameter that matches all of these labels."""
    return ",".join(f"{key}={value}" for key, value in labels.items())


def name_of(raw: Raw) -> Name:
    """Returns the namespace and the name of an object."""
    metadata = raw["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
