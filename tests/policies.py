"""Benchmarks that a policy allows or refuses. The operator and the admission policy check the same rows."""

from typing import Any, NamedTuple

from tests.api.objects import changed, smallest
from tierbench.api.benchmark import Benchmark
from tierbench.api.policy import Policy
from tierbench.kinds.broker.spec import BrokerBenchmark
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kinds.network.spec import NetworkBenchmark

Json = dict[str, Any]

NAMESPACES = {name: f"policed-{name}" for name in ("default", "strict", "lax", "barred")}
"""The namespace of each policy."""
API_SERVER = "198.18.64.1"
"""The address of the API server's Service in tests/api."""

DEFAULT: Json = {}
STRICT: Json = {
    "access": ["PodIP"],
    "nodeClassNames": {NAMESPACES["strict"]: ["user", "edge"], "*": []},
    "hostPaths": ["/mnt/ssd", "/mnt/ssd/shared", "/srv"],
    "refusedNetworks": ["10.9.0.0/16"],
    "refusedNames": ["*.internal.example.com"],
    "allowedNetworks": ["10.0.0.0/8", "2001:db8::/32"],
    "allowedNames": ["broker.example.com", "*.internal.example.com", "*.test"],
}
LAX: Json = {
    "links": True,
    "access": ["HostNetwork", "ClusterIP", "PodIP"],
    "nodeClassNames": {"other": ["user"]},
    "hostPaths": ["/etc"],
    "refusedNetworks": [],
    "refusedNames": [],
    "plainSecrets": True,
}
BARRED: Json = {"nodeClassNames": {"*": ["cloud"]}, "hostPaths": []}
POLICIES = {"default": DEFAULT, "strict": STRICT, "lax": LAX, "barred": BARRED}


class Row(NamedTuple):
    """A benchmark under a policy. `refused` is how the message starts, or empty if the policy allows the benchmark."""

    policy: str
    model: type[Benchmark]
    changes: Json
    refused: str = ""

    @property
    def body(self) -> Json:
        """The benchmark. A policy may refuse only its changes and its node class `user`."""
        body = smallest(self.model, "asked")
        changes = {"spec.access": "PodIP", "spec.servers.nodeClassNames": ["user"], **self.changes}
        for path, value in changes.items():
            body = changed(body, path, value)
        return body


def _path(path: str) -> Json:
    return {"spec.storage": {"hostPath": {"path": path}}}


def _broker(address: str, *, tls: str = "None", secret: str | None = None) -> Json:
    external = {"address": address, **({} if secret is None else {"secretRef": {"name": secret}})}
    return {
        "spec.brokers": [{"name": "own", "mosquitto": {}}, {"name": "site", "external": external}],
        "spec.tls": [tls],
    }


def _outside(address: str) -> Json:
    return {"spec.servers": {"external": {"address": address}}}


_REFUSED_BY_DEFAULT = (
    "127.0.0.1:1883",
    "127.255.1.2:1883",
    "169.254.169.254:80",
    "0.0.0.0:1",
    "100.100.100.200:80",
    "168.63.129.16:80",
    "[fd00:ec2::254]:80",
    f"{API_SERVER}:443",
    "[::1]:1883",
    "[::]:1883",
    "[fe80::1]:1883",
    "[FEBF::1]:1883",
    "[::ffff:a9fe:a9fe]:80",
    "[::ffff:a00:1]:80",
    "[1:2:3]:80",
    "localhost:1883",
    "LocalHost:1883",
    "a.localhost:1883",
    "kubernetes.default:443",
    "kubernetes.default.svc:443",
    "Kubernetes.default.svc.cluster.local:443",
)
_ALLOWED_BY_DEFAULT = (
    "broker.example.com:1883",
    "notlocalhost:1883",
    "128.0.0.1:1883",
    "169.255.0.1:1883",
    "100.100.100.201:80",
    "[fd00:ec2::253]:80",
    "198.18.64.2:443",
    "[2001:db8::1]:1883",
    "[fec0::1]:1883",
)

ROWS = [
    *(Row("default", model, {}) for model in (FileTransferBenchmark, BrokerBenchmark, NetworkBenchmark)),
    *(Row("default", FileTransferBenchmark, {"spec.access": access}) for access in ("ClusterIP", "NodePort")),
    *(
        Row("default", model, {"spec.access": "HostNetwork"}, "access: HostNetwork is not allowed: use one of [Cl")
        for model in (FileTransferBenchmark, BrokerBenchmark, NetworkBenchmark)
    ),
    Row("strict", NetworkBenchmark, {"spec.access": "ClusterIP"}, "access: ClusterIP is not allowed: use one of [P"),
    Row("lax", FileTransferBenchmark, {"spec.access": "HostNetwork"}),
    # Folders
    Row("default", FileTransferBenchmark, _path("/var/lib/tierbench")),
    Row("default", FileTransferBenchmark, _path("/var/lib/tierbench/ssd/1")),
    *(
        Row("default", FileTransferBenchmark, _path(path), f"storage.hostPath.path: {path} is not allowed")
        for path in (
            *("/etc", "/root", "/var/lib", "/var/lib/kubelet", "/var/lib/tierbench-cluster", "/var/lib/tierbench.old"),
            *("/var/lib/tierbenchx/files", "/VAR/LIB/TIERBENCH"),
        )
    ),
    Row("strict", FileTransferBenchmark, _path("/mnt/ssd/shared/1")),
    Row("strict", FileTransferBenchmark, _path("/srv")),
    Row("strict", FileTransferBenchmark, _path("/mnt"), "storage.hostPath.path: /mnt is not allowed"),
    Row("strict", FileTransferBenchmark, _path("/var/lib/tierbench"), "storage.hostPath.path: /var/lib/tierbench is"),
    Row("lax", FileTransferBenchmark, _path("/etc/tierbench")),
    Row(
        "barred",
        FileTransferBenchmark,
        {
            **_path("/var/lib/tierbench"),
            "spec.servers.nodeClassNames": ["cloud"],
            "spec.clients.nodeClassNames": ["cloud"],
        },
        "storage.hostPath.path: /var/lib/tierbench is not allowed: use one of [], ",
    ),
    # Node classes
    Row("strict", FileTransferBenchmark, {"spec.clients.nodeClassNames": ["user", "edge"]}),
    Row(
        "strict",
        FileTransferBenchmark,
        {"spec.clients.nodeClassNames": ["user", "cloud"]},
        f"the node class cloud is not allowed in the namespace {NAMESPACES['strict']}: use one of [user, edge]",
    ),
    Row("strict", NetworkBenchmark, {"spec.servers.nodeClassNames": ["cloud"]}, "the node class cloud is not allowed"),
    Row("lax", NetworkBenchmark, {"spec.servers.nodeClassNames": ["anything"]}),
    Row("barred", BrokerBenchmark, {}, f"the node class user is not allowed in the namespace {NAMESPACES['barred']}"),
    Row(
        "strict",
        BrokerBenchmark,
        {"spec.clients.subscribers": {"type": "Separate", "nodeClassName": "cloud"}},
        "the node class cloud is not allowed",
    ),
    Row(
        "strict",
        BrokerBenchmark,
        {"spec.clients.subscribers": {"type": "None"}, "spec.pacing": {"type": "AsFastAsPossible"}},
    ),
    # Addresses
    *(
        Row("default", BrokerBenchmark, _broker(to), f"the external address {to} is not allowed")
        for to in _REFUSED_BY_DEFAULT
    ),
    *(Row("default", BrokerBenchmark, _broker(to)) for to in _ALLOWED_BY_DEFAULT),
    Row("default", NetworkBenchmark, _outside("iperf.example.com:5201")),
    *(
        Row("default", NetworkBenchmark, _outside(to), f"the external address {to} is not allowed")
        for to in ("127.0.0.1:5201", "169.254.169.254:80", "[::ffff:a9fe:a9fe]:80")
    ),
    Row("lax", NetworkBenchmark, _outside("127.0.0.1:5201")),
    Row("lax", NetworkBenchmark, _outside("localhost:5201")),
    Row(
        "lax",
        NetworkBenchmark,
        _outside(f"{API_SERVER}:5201"),
        f"the external address {API_SERVER}:5201 is not allowed",
    ),
    Row("lax", NetworkBenchmark, _outside("[::ffff:7f00:1]:5201"), "the external address [::ffff:7f00:1]:5201 is not"),
    *(
        Row("strict", NetworkBenchmark, _outside(to))
        for to in ("10.1.2.3:5201", "[2001:db8::1]:5201", "Broker.example.com:5201", "a.b.test:5201")
    ),
    *(
        Row("strict", NetworkBenchmark, _outside(to), f"the external address {to} is not allowed: use one of [10.0")
        for to in ("192.0.2.1:5201", "[2001:db9::1]:5201", "example.com:5201", "test:5201", "evilbroker.example.com:1")
    ),
    *(
        Row("strict", NetworkBenchmark, _outside(to), f"the external address {to} is not allowed: it is a loopback")
        for to in ("10.9.0.1:5201", "a.internal.example.com:5201")
    ),
    # Links
    *(
        Row(
            "default",
            model,
            {"spec.links": [{"name": "lte"}]},
            "links: lte is not allowed, because it needs a container",
        )
        for model in (FileTransferBenchmark, BrokerBenchmark, NetworkBenchmark)
    ),
    Row("lax", FileTransferBenchmark, {"spec.links": [{"name": "lte", "up": {"delayMicroseconds": 9}}]}),
    # Secrets
    Row("default", BrokerBenchmark, _broker("broker.example.com:8883", tls="TLSv1.3", secret="account")),
    Row("lax", BrokerBenchmark, _broker("broker.example.com:1883", secret="account")),
    Row(
        "default",
        BrokerBenchmark,
        _broker("broker.example.com:1883", secret="account"),
        "the Secret account would be sent to an external broker without encryption",
    ),
]


def operator_message(row: Row) -> str:
    """Returns the operator's first message, or an empty string if the operator allows the benchmark."""
    policy = Policy.model_validate(POLICIES[row.policy]).with_refused_host(API_SERVER)
    return next(policy.refusals(NAMESPACES[row.policy], row.model.model_validate(row.body).spec.policy_subject), "")
