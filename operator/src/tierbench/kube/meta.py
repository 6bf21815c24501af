"""Types, names and timestamps of the Kubernetes API, the clock of its server, and waiting."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

Raw = Mapping[str, Any]
"""An object as the API server sends it."""

Name = tuple[str, str]
"""Namespace and name of an object. The namespace is empty for a cluster-scoped object."""

_ROUNDING: Final = timedelta(seconds=2)
"""An answer gives its time in whole seconds, and takes a while to arrive."""


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


def parse_time(text: str) -> datetime:
    """Parses a timestamp of the API server."""
    return datetime.fromisoformat(text).astimezone(UTC)


def is_owned_by(raw: Raw, uid: str) -> bool:
    """Returns whether an object has an owner with this UID."""
    return any(owner["uid"] == uid for owner in raw["metadata"].get("ownerReferences", ()))


def format_time(time: datetime) -> str:
    """Formats a time as metav1.Time, in whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(time: datetime) -> str:
    """Formats a time as metav1.MicroTime, which Leases use."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Clock:
    """This machine's clock, corrected by the Date headers of the API server."""

    def __init__(self) -> None:
        self._behind = timedelta(0)

    def adjust(self, date: str | None) -> None:
        """Corrects the clock by the Date header of an answer (RFC 9110, 6.6.1), if it has one."""
        try:
            served = parsedate_to_datetime(date or "")
        except ValueError:
            return
        behind = served.astimezone(UTC) - datetime.now(UTC)
        if abs(behind - self._behind) > _ROUNDING:
            self._behind = behind if abs(behind) > _ROUNDING else timedelta(0)

    def now(self) -> datetime:
        """Returns the API server's time."""
        return datetime.now(UTC) + self._behind


async def wait_for_event(event: asyncio.Event, seconds: float | None) -> bool:
    """Waits until an event is set, at most for this duration. Returns whether it is set.

    asyncio.wait_for would lose a cancellation that comes together with the event, up to Python 3.11.
    """
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
