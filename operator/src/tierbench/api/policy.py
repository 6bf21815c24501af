"""What an administrator permits, and how much: the chart's values `policy` and `limits`, and the check of a spec."""

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Annotated, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from tierbench.api.benchmark import Access, PolicySubject
from tierbench.api.model import CLASS_NAME_PATTERN, Model
from tierbench.api.quantity import QUANTITY_PATTERN, parse_size
from tierbench.api.run_policy import MAXIMUM_CASES, MAXIMUM_HISTORY

HOST_STORAGE: Final = "/var/lib/tierbench"
HOST_PATH_PATTERN: Final = r"^(/[A-Za-z0-9][A-Za-z0-9._-]*)+$"
EVERY_OTHER: Final = "*"
"""Stands for the namespaces that are not named."""

# Messages: each `%s` is given by Python here, and by CEL in the admission policy.
ACCESS_REFUSED: Final = (
    "access: %s is refused here: write one of [%s], or have it added to policy.access, a value of the chart"
)
NODE_CLASS_REFUSED: Final = (
    "the node class %s is refused here in the namespace %s: write one of [%s], or have it added to policy.nodeClasses, "
    "a value of the chart"
)
HOST_PATH_REFUSED: Final = (
    "storage.hostPath.path: %s is refused here: write one of [%s], a path below it, or emptyDir instead, or have it "
    "added to policy.hostPaths, a value of the chart"
)
ADDRESS_REFUSED: Final = (
    "the external address %s is refused here, as are loopback, link-local and the API server: write that of another "
    "server, or have it taken out of policy.refusedNetworks or policy.refusedNames, values of the chart"
)
ADDRESS_UNLISTED: Final = (
    "the external address %s is refused here: write one of [%s], or have it added to policy.allowedNetworks or "
    "policy.allowedNames, values of the chart"
)
UNENCRYPTED: Final = (
    "the Secret %s would be sent to an external broker without encryption, which is refused here: write "
    "tls: [TLSv1.3], or have policy.plainSecrets set to true, a value of the chart"
)


def _network(text: str) -> str:
    return str(ip_network(text))


HostPrefix = Annotated[str, Field(max_length=255, pattern=HOST_PATH_PATTERN)]
Network = Annotated[
    str,
    Field(max_length=43, pattern=r"^([0-9]+\.[0-9]+\.[0-9]+\.[0-9]+|[0-9a-f:]*:[0-9a-f:]*)/[0-9]+$"),
    AfterValidator(_network),
]
HostName = Annotated[str, Field(max_length=253, pattern=r"^(\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
ClassName = Annotated[str, Field(max_length=63, pattern=CLASS_NAME_PATTERN)]
_WILDCARD: Final = "*.example.com stands for every name that ends with .example.com"


class Policy(BaseModel):
    """What benchmarks may ask for. The operator holds each run to it, and deploys nothing of one that asks for more."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="forbid")

    access: tuple[Access, ...] = Field(
        default=(Access.CLUSTER_IP, Access.POD_IP, Access.NODE_PORT),
        min_length=1,
        json_schema_extra={"uniqueItems": True},
        description="Paths from clients to servers. HostNetwork is another: the server then listens in the network "
        "namespace of its node.",
    )
    node_classes: dict[str, tuple[ClassName, ...]] = Field(
        default={},
        json_schema_extra={"propertyNames": {"pattern": r"^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$", "maxLength": 63}},
        description="The node classes of each namespace, as in {team-a: [cloud, edge]}; "
        f'"{EVERY_OTHER}" stands for every namespace that is not named. One for which there is nothing may have all.',
    )
    host_paths: tuple[HostPrefix, ...] = Field(
        default=(HOST_STORAGE,),
        max_length=16,
        json_schema_extra={"uniqueItems": True},
        description="Folders of nodes that a hostPath may be, or lie below. Links in a path below these are not "
        "followed, and files are in a folder _tierbench of their own.",
    )
    refused_networks: tuple[Network, ...] = Field(
        default=("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "::/128", "::1/128", "fe80::/10"),
        max_length=64,
        description="Networks in which no external server may be, nor what its name leads to. The API server's Service "
        "is always refused as well.",
    )
    refused_names: tuple[HostName, ...] = Field(
        default=(
            "localhost",
            "*.localhost",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ),
        max_length=64,
        description=f"Names that no external server may have; {_WILDCARD}.",
    )
    allowed_networks: tuple[Network, ...] = Field(
        default=(),
        max_length=64,
        description="If these or allowedNames are given, no other external server is allowed, and what is refused "
        "stays refused. These are for servers that are given by their IP address.",
    )
    allowed_names: tuple[HostName, ...] = Field(
        default=(), max_length=64, description=f"Names that external servers may have; {_WILDCARD}."
    )
    plain_secrets: bool = Field(
        default=False,
        description="Whether the account of a user's Secret may be sent to an external broker without TLS.",
    )

    def refusals(self, namespace: str, policy_subject: PolicySubject) -> Iterator[str]:
        """Why a benchmark of a namespace is refused, and what to do; nothing if it may run."""
        if policy_subject.access not in self.access:
            yield ACCESS_REFUSED % (policy_subject.access, ", ".join(self.access))
        classes = self.node_classes.get(namespace, self.node_classes.get(EVERY_OTHER, policy_subject.node_classes))
        for name in policy_subject.node_classes:
            if name not in classes:
                yield NODE_CLASS_REFUSED % (name, namespace, ", ".join(classes))
        for path in policy_subject.host_paths:
            if not self._prefixes(path):
                yield HOST_PATH_REFUSED % (path, ", ".join(self.host_paths))
        for address in policy_subject.addresses:
            if self._is_refused(address):
                yield ADDRESS_REFUSED % address
        allowed = (*self.allowed_networks, *self.allowed_names)
        for address in policy_subject.addresses:
            if allowed and not _is_of(address, self.allowed_networks, self.allowed_names):
                yield ADDRESS_UNLISTED % (address, ", ".join(allowed))
        for name in () if self.plain_secrets else policy_subject.plain_secrets:
            yield UNENCRYPTED % name

    def host_folder(self, path: str) -> tuple[str, str]:
        """The folder that the administrator has named, and what `path` is in it.

        Raises:
            ValueError: no such folder holds it.
        """
        prefixes = self._prefixes(path)
        if not prefixes:
            raise ValueError(HOST_PATH_REFUSED % (path, ", ".join(self.host_paths)))
        prefix = max(prefixes, key=len)
        return prefix, path.removeprefix(prefix).removeprefix("/")

    def refusing(self, host: str) -> Self:
        """The same, but for one more host that no external server may be."""
        if _ip(f"{host}:") is None:
            return self.model_copy(update={"refused_names": (*self.refused_names, host.lower())})
        return self.model_copy(update={"refused_networks": (*self.refused_networks, str(ip_network(host)))})

    def _prefixes(self, path: str) -> list[str]:
        """An older version of the API took any path: one that is not clean is below nothing."""
        clean = re.fullmatch(HOST_PATH_PATTERN, path) is not None
        return [prefix for prefix in self.host_paths if clean and f"{path}/".startswith(f"{prefix}/")]

    def _is_refused(self, address: str) -> bool:
        """So is what looks like an IP address and is none, or an IPv4 address in IPv6's clothes."""
        bracketed = address.startswith("[")
        disguised = bracketed and not isinstance(_ip(address), IPv6Address)
        return disguised or _is_of(address, self.refused_networks, self.refused_names)


def _is_of(address: str, networks: Iterable[str], names: Iterable[str]) -> bool:
    """Whether the host of host:port is in a network, or has a name."""
    host, literal = _host(address), _ip(address)
    if literal is not None:
        return any(literal in ip_network(network) for network in networks)
    return any(host == name or (name.startswith("*.") and host.endswith(name[1:])) for name in names)


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]").lower()


def _ip(address: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(_host(address))
    except ValueError:
        return None
    return None if isinstance(found, IPv6Address) and found.ipv4_mapped is not None else found


class Quotas(Model):
    """What a benchmark may take. Beyond it a case fails, or a benchmark, with a reason and the name of the value."""

    model_config = ConfigDict(extra="forbid")

    lease_seconds: int = Field(
        default=14 * 24 * 3600,
        ge=600,
        description="How long a run may hold its nodes in one go. Then its client is ended, the cases that are left "
        "end with what was measured, and the nodes are given back.",
    )
    benchmarks_at_once: int = Field(
        default=100,
        ge=1,
        description="How many benchmarks of a namespace may hold nodes at once. Others wait in the queue.",
    )
    cases: int = Field(
        default=MAXIMUM_CASES,
        ge=1,
        le=MAXIMUM_CASES,
        description="How many cases a run may have. A benchmark that asks for more fails before anything is deployed.",
    )
    history: int = Field(
        default=MAXIMUM_HISTORY,
        ge=1,
        le=MAXIMUM_HISTORY,
        description="How many runs of a benchmark are kept, whatever runPolicy.history says.",
    )
    result_bytes: Annotated[str, Field(max_length=18, pattern=QUANTITY_PATTERN)] = Field(
        default="256Mi",
        description="How much the results and traces of a benchmark may take in etcd, those of all runs together. "
        "Cases beyond it fail; what was measured is kept.",
    )
    stored_bytes: Annotated[str, Field(max_length=18, pattern=QUANTITY_PATTERN)] = Field(
        default="512Mi",
        description="How much the results and traces of all benchmarks of this release may take in etcd. From 80 % of "
        "it on a warning announces that the oldest runs which have ended will go. At the limit they do, and no run "
        "begins before there is room.",
    )
    eviction_notice_seconds: int = Field(
        default=24 * 3600,
        ge=10,
        description="How long before a run goes for limits.storedBytes it is announced at the least.",
    )
    free_disk: Annotated[str, Field(max_length=18, pattern=f"^({QUANTITY_PATTERN.strip('^$')})?$")] = Field(
        default="",
        description="How much of a node's disk stays free when files are prepared there; if empty, the lesser of 5 % "
        "of it and 256Mi.",
    )

    @property
    def most_bytes(self) -> int:
        """Of the results and traces of a benchmark."""
        return parse_size(self.result_bytes)

    @property
    def most_stored_bytes(self) -> int:
        """Of the results and traces of all benchmarks."""
        return parse_size(self.stored_bytes)

    @property
    def free_bytes(self) -> int | None:
        """Of a node's disk; None leaves it to the preparation."""
        return parse_size(self.free_disk) if self.free_disk else None
