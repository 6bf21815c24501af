"""What an administrator permits, and how much: the chart values `policy` and `limits`, and the check of a spec."""

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Annotated, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from tierbench.api.benchmark import Access, PolicySubject
from tierbench.api.model import CLASS_NAME_PATTERN, Model
from tierbench.api.quantity import QUANTITY_PATTERN, parse_size
from tierbench.api.run_policy import MAXIMUM_CASES, MAXIMUM_HISTORY, MAXIMUM_REPETITIONS

HOST_STORAGE: Final = "/var/lib/tierbench"
HOST_PATH_PATTERN: Final = r"^(/[A-Za-z0-9][A-Za-z0-9._-]*)+$"
OTHER_NAMESPACES: Final = "*"
"""The key for all namespaces that are not named."""

# Messages. Python fills in each `%s` here, and CEL does in the admission policy.
ACCESS_REFUSED: Final = (
    "access: %s is not allowed: use one of [%s], or ask an administrator to add it to the chart value policy.access"
)
NODE_CLASS_REFUSED: Final = (
    "the node class %s is not allowed in the namespace %s: use one of [%s], or ask an administrator to add it to the "
    "chart value policy.nodeClassNames"
)
HOST_PATH_REFUSED: Final = (
    "storage.hostPath.path: %s is not allowed: use one of [%s], a path below one of them, or emptyDir, or ask an "
    "administrator to add it to the chart value policy.hostPaths"
)
ADDRESS_REFUSED: Final = (
    "the external address %s is not allowed: it is a loopback or link-local address, the API server, or in the chart "
    "value policy.refusedNetworks or policy.refusedNames. Use the address of another server, or ask an administrator "
    "to change these values"
)
ADDRESS_UNLISTED: Final = (
    "the external address %s is not allowed: use one of [%s], or ask an administrator to add it to the chart value "
    "policy.allowedNetworks or policy.allowedNames"
)
UNENCRYPTED: Final = (
    "the Secret %s would be sent to an external broker without encryption, which is not allowed: set tls: [TLSv1.3], "
    "or ask an administrator to set the chart value policy.plainSecrets to true"
)

LINK_REFUSED: Final = (
    "links: %s is not allowed, because it needs a container with capabilities in the pod of each client: remove links, "
    "or ask an administrator to set the chart value policy.links to true"
)


def _cidr(text: str) -> str:
    return str(ip_network(text))


HostPrefix = Annotated[str, Field(max_length=255, pattern=HOST_PATH_PATTERN)]
Cidr = Annotated[
    str,
    Field(max_length=43, pattern=r"^([0-9]+\.[0-9]+\.[0-9]+\.[0-9]+|[0-9a-f:]*:[0-9a-f:]*)/[0-9]+$"),
    AfterValidator(_cidr),
]
HostName = Annotated[str, Field(max_length=253, pattern=r"^(\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
ClassName = Annotated[str, Field(max_length=63, pattern=CLASS_NAME_PATTERN)]
_WILDCARD: Final = "*.example.com matches every name that ends with .example.com"


class Policy(BaseModel):
    """The properties that benchmarks can ask for: the chart value `policy`.

    The operator checks each run, and deploys nothing if it asks for more.
    """

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="forbid")

    access: tuple[Access, ...] = Field(
        default=(Access.CLUSTER_IP, Access.POD_IP, Access.NODE_PORT),
        min_length=1,
        json_schema_extra={"uniqueItems": True},
        description="Network paths from clients to servers. HostNetwork is one more: server, agent and client "
        "are then in the network namespaces of their nodes.",
    )
    node_class_names: dict[str, tuple[ClassName, ...]] = Field(
        default={},
        json_schema_extra={"propertyNames": {"pattern": r"^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$", "maxLength": 63}},
        description=f"The node classes that each namespace can use, as in {{team-a: [cloud, edge]}}. "
        f'"{OTHER_NAMESPACES}" matches every namespace that is not named. A namespace without an entry can use all.',
    )
    host_paths: tuple[HostPrefix, ...] = Field(
        default=(HOST_STORAGE,),
        max_length=16,
        json_schema_extra={"uniqueItems": True},
        description="Directories of nodes that a hostPath can name, with their subdirectories. Links below them are "
        "not followed. Files are in a directory _tierbench of their own.",
    )
    keep_files: bool = Field(
        default=False,
        description="Whether files that a hostPath contains stay on the node for the next run, and after the benchmark "
        "is deleted. If false, they are removed with the server, and written again for each server.",
    )
    refused_networks: tuple[Cidr, ...] = Field(
        default=(
            "0.0.0.0/8",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "100.100.100.200/32",
            "168.63.129.16/32",
            "::/128",
            "::1/128",
            "fe80::/10",
            "fd00:ec2::254/128",
        ),
        max_length=64,
        description="Networks in which no external server can be, even by its name. The default has loopback, "
        "link-local addresses, and the metadata services of Alibaba Cloud, Azure and AWS. The Service of the API "
        "server is always refused as well.",
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
        description=f"Names that no external server can have; {_WILDCARD}.",
    )
    allowed_networks: tuple[Cidr, ...] = Field(
        default=(),
        max_length=64,
        description="Networks of external servers that are given by IP address, and to which an external Kafka can "
        "send its clients. If this or allowedNames is set, all other external servers are refused. Refused networks "
        "and names stay refused.",
    )
    allowed_names: tuple[HostName, ...] = Field(
        default=(), max_length=64, description=f"Names that external servers can have; {_WILDCARD}."
    )
    plain_secrets: bool = Field(
        default=False,
        description="Whether the account in a user's Secret can be sent to an external broker without TLS.",
    )
    links: bool = Field(
        default=False,
        description="Whether benchmarks can have links. A client's pod then has a container that runs as root with the "
        "capabilities NET_ADMIN, NET_RAW and SYS_NICE in the pod's own network. Namespaces with these benchmarks need "
        "the Pod Security level privileged.",
    )

    def refusals(self, namespace: str, policy_subject: PolicySubject) -> Iterator[str]:
        """Yields why a spec in a namespace is refused, and what to do. Yields nothing if it may run."""
        if policy_subject.access not in self.access:
            yield ACCESS_REFUSED % (policy_subject.access, ", ".join(self.access))
        classes = self.node_class_names.get(
            namespace, self.node_class_names.get(OTHER_NAMESPACES, policy_subject.node_class_names)
        )
        for name in policy_subject.node_class_names:
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
        for name in () if self.links else policy_subject.links:
            yield LINK_REFUSED % name

    def permitted_directory(self, path: str) -> tuple[str, str]:
        """Returns the permitted directory that contains `path`, and the rest of the path.

        Raises:
            ValueError: no permitted directory contains the path.
        """
        prefixes = self._prefixes(path)
        if not prefixes:
            raise ValueError(HOST_PATH_REFUSED % (path, ", ".join(self.host_paths)))
        prefix = max(prefixes, key=len)
        return prefix, path.removeprefix(prefix).removeprefix("/")

    def with_refused_host(self, host: str) -> Self:
        """Returns the policy with one more host that no external server can be."""
        if _ip(f"{host}:") is None:
            return self.model_copy(update={"refused_names": (*self.refused_names, host.lower())})
        return self.model_copy(update={"refused_networks": (*self.refused_networks, str(ip_network(host)))})

    def _prefixes(self, path: str) -> list[str]:
        """Returns the permitted directories that contain a path. An earlier API took any path: an unclean one is in
        none."""
        clean = re.fullmatch(HOST_PATH_PATTERN, path) is not None
        return [prefix for prefix in self.host_paths if clean and f"{path}/".startswith(f"{prefix}/")]

    def _is_refused(self, address: str) -> bool:
        """Returns whether an address is refused. Invalid IP addresses and IPv4 addresses mapped to IPv6 are refused,
        too."""
        bracketed = address.startswith("[")
        disguised = bracketed and not isinstance(_ip(address), IPv6Address)
        return disguised or _is_of(address, self.refused_networks, self.refused_names)


def _is_of(address: str, networks: Iterable[str], names: Iterable[str]) -> bool:
    """Returns whether the host of host:port is in a network, or has one of the names."""
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
    """The resources that a benchmark can use: the chart value `limits`.

    Beyond it, a case or a benchmark fails with a reason.
    """

    model_config = ConfigDict(extra="forbid")

    lease_seconds: int = Field(
        default=14 * 24 * 3600,
        ge=600,
        description="Maximum time for which a run can hold its nodes without a break. After that its client is "
        "stopped, the remaining cases end with what was measured, and the nodes are released.",
    )
    benchmarks_at_once: int = Field(
        default=100,
        ge=1,
        description="Maximum number of benchmarks of a namespace that can hold nodes at the same time. Others wait in "
        "the queue.",
    )
    cases: int = Field(
        default=MAXIMUM_CASES,
        ge=1,
        le=MAXIMUM_CASES,
        description="Maximum number of cases of a run. A benchmark that asks for more fails before anything is "
        "deployed.",
    )
    trials: int = Field(
        default=MAXIMUM_CASES * MAXIMUM_REPETITIONS,
        ge=1,
        le=MAXIMUM_CASES * MAXIMUM_REPETITIONS,
        description="Maximum number of trials of a run that count: cases times repetitions. A benchmark that asks for "
        "more fails before anything is deployed.",
    )
    advices: int = Field(
        default=100,
        ge=1,
        description="Maximum number of PlacementAdvices of a namespace that are answered: the oldest ones.",
    )
    history: int = Field(
        default=MAXIMUM_HISTORY,
        ge=1,
        le=MAXIMUM_HISTORY,
        description="Maximum number of runs of a benchmark that are kept, whatever runPolicy.historyLimit says.",
    )
    result_bytes: Annotated[str, Field(max_length=18, pattern=QUANTITY_PATTERN)] = Field(
        default="256Mi",
        description="Space in etcd for the results and records of all runs of a benchmark. Cases beyond it fail, and "
        "measured results are kept.",
    )
    stored_bytes: Annotated[str, Field(max_length=18, pattern=QUANTITY_PATTERN)] = Field(
        default="512Mi",
        description="Space in etcd for the results and records of all benchmarks of this release. At the limit, active "
        "runs end after their current block, and no run starts until results are deleted.",
    )
    free_disk: Annotated[str, Field(max_length=18, pattern=f"^({QUANTITY_PATTERN.strip('^$')})?$")] = Field(
        default="",
        description="Space of a node's disk that stays free when files are prepared there. If empty, 15% of the disk "
        "and 1Gi: a kubelet evicts pods when less than 15% is free.",
    )
    node_files: Annotated[str, Field(max_length=18, pattern=QUANTITY_PATTERN)] = Field(
        default="64Gi",
        description="Maximum size of all files that a benchmark has on a node. With policy.keepFiles, the files that "
        "earlier runs left in its directory count, too.",
    )

    @property
    def most_bytes(self) -> int:
        """The maximum size of the results and records of a benchmark."""
        return parse_size(self.result_bytes)

    @property
    def most_stored_bytes(self) -> int:
        """The maximum size of the results and records of all benchmarks."""
        return parse_size(self.stored_bytes)

    @property
    def most_file_bytes(self) -> int:
        """The maximum size of the files on a node."""
        return parse_size(self.node_files)

    @property
    def free_bytes(self) -> int | None:
        """The bytes of a node's disk that stay free. None leaves the choice to the preparation."""
        return parse_size(self.free_disk) if self.free_disk else None
