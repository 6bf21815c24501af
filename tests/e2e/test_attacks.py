"""What a tenant tries who has the shipped edit role in one namespace, and no more: see docs/threat-model.md."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.api.objects import smallest
from tests.e2e.benchmarks import Running, broker, file_transfer, network
from tests.e2e.kubectl import Kubectl, KubectlError, wait_for
from tests.e2e.operator_release import Release
from tierbench.api.policy import Policy
from tierbench.api.result import BenchmarkResult

TENANT = "mallory"
ROLES = ("tierbench-view", "tierbench-edit")
Body = dict[str, Any]


def role_binding(role: str) -> Body:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": TENANT}],
    }


def everything_of_ours() -> Body:
    """What an administrator gives who does not look: also to write what was measured."""
    rule = {"apiGroups": ["tierbench.io"], "resources": ["*"], "verbs": ["*"]}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "everything"},
        "rules": [rule],
    }


def secret(name: str) -> Body:
    data = {"username": "admin", "password": "precious"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def external(address: str, tls: str = "TLSv1.3", account: str | None = None) -> Body:
    """A broker elsewhere, with the account of a Secret."""
    given = {"address": address, **({} if account is None else {"secretRef": {"name": account}})}
    return broker(brokers=[{"name": "theirs", "external": given}], servers=None, tls=[tls])


def stored_at(path: str) -> Body:
    return file_transfer(storage={"hostPath": {"path": path}}, access="NodePort")


def iperf3_at(address: str) -> Body:
    return network(servers={"external": {"address": address}}, ping={"count": 0})


@pytest.fixture(scope="module")
def defaults(release: Release) -> Iterator[None]:
    """The policy as the chart has it, where other tests ask for more."""
    policy = Policy()
    release.install(
        f"policy.access={{{','.join(policy.access)}}}", f"policy.plainSecrets={str(policy.plain_secrets).lower()}"
    )
    yield
    release.install()


@pytest.fixture
def tenant(kubectl: Kubectl, defaults: None) -> Iterator[Kubectl]:
    """kubectl as the tenant, in a namespace where there is a Secret that is not theirs."""
    kubectl.apply(*map(role_binding, ROLES), secret("precious"))
    yield kubectl.as_user(TENANT)


ATTACKS: dict[str, tuple[Body, str]] = {
    "the root of a node, by another name": (stored_at("/."), "is not"),
    "a node's system files": (stored_at("/etc"), "policy.hostPaths"),
    "a folder of root's, whose mode would change": (stored_at("/root"), "policy.hostPaths"),
    "a way out of the storage": (stored_at("/var/lib/tierbench/../kubelet"), "is not"),
    "a name that only begins like the storage": (stored_at("/var/lib/tierbench-of-mine"), "policy.hostPaths"),
    "the network of a node": (file_transfer(access="HostNetwork"), "policy.access"),
    "a Secret that one may not read": (external("broker.example.com:8883", account="precious"), "may not read"),
    "the cloud's metadata": (iperf3_at("169.254.169.254:80"), "policy.refusedNetworks"),
    "the metadata, as an IPv6 address": (iperf3_at("[::ffff:a9fe:a9fe]:80"), "policy.refusedNetworks"),
    "the loopback of a node": (external("127.0.0.1:1883", tls="None"), "policy.refusedNetworks"),
    "the API server, by name": (external("kubernetes.default.svc:443"), "policy.refusedNames"),
    "more cases than anybody waits for": (
        file_transfer(fileSizes=[f"{n}Ki" for n in range(1, 33)], concurrency=[*range(1, 9)], tls=["None", "TLSv1.3"],
                      cacheState=["Warm", "Cold"]),
        "cases",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "says"), ATTACKS.values(), ids=ATTACKS)
def test_is_refused_as_it_is_asked_for(tenant: Kubectl, body: Body, says: str) -> None:
    with pytest.raises(KubectlError, match=says):
        tenant.apply(body)


def test_a_secret_of_ones_own_is_not_sent_in_clear(kubectl: Kubectl, tenant: Kubectl) -> None:
    own = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["precious"], "verbs": ["get"]}
    metadata = {"name": "secrets"}
    kubectl.apply(
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": [own]},
        role_binding("secrets") | {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", **metadata}},
    )
    with pytest.raises(KubectlError, match=r"policy\.plainSecrets"):
        tenant.apply(external("broker.example.com:1883", tls="None", account="precious"))


FORGED_RESULT: Body = smallest(BenchmarkResult, "ft-files-r1-c001")
_STATUS = '{"status": {"phase": "Complete", "answer": "mine is best"}}'
WRITES: dict[str, Callable[[Kubectl], object]] = {
    "a result": lambda tenant: tenant.apply(FORGED_RESULT),
    "the status of a benchmark": lambda tenant: tenant(
        "patch", "ftb", "files", "--subresource=status", "--type=merge", "--patch", _STATUS
    ),
    "what was measured": lambda tenant: tenant(
        "patch", "benchmarkresult", "ft-files-r1-c001", "--subresource=status", "--type=merge", "--patch", _STATUS
    ),
    "a pod that passes for a client": lambda tenant: tenant("run", "client", "--image=nowhere.invalid/none:none"),
    "a Lease, to keep a node or to free one": lambda tenant: tenant(
        "--namespace", "tierbench-leases", "delete", "leases", "--all"
    ),
    "a node class": lambda tenant: tenant("label", "nodeclass", "cloud", "mine=true"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_the_role_does_not_permit(tenant: Kubectl, write: Callable[[Kubectl], object]) -> None:
    with pytest.raises(KubectlError, match=r"forbidden|cannot"):
        write(tenant)


def test_nor_does_a_role_that_permits_too_much(kubectl: Kubectl, tenant: Kubectl) -> None:
    """Results are what advice rests on: whoever has tierbench.io/* cannot write them either."""
    kubectl.apply(
        everything_of_ours(),
        role_binding("everything")
        | {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "everything"}},
    )
    tenant.apply(file_transfer(runPolicy={"suspend": True}))
    for write in ("a result", "the status of a benchmark"):
        with pytest.raises(KubectlError, match=r"writers\.extra|only .* writes"):
            WRITES[write](tenant)


def test_whose_benchmark_has_the_nodes_is_not_said_to_strangers(kubectl: Kubectl, tenant: Kubectl) -> None:
    other = kubectl.inside(f"{kubectl.namespace}-b")
    other.create_namespace()
    try:
        other.apply(file_transfer("confidential", fileSizes=["64Mi"], repetitions=30))
        Running(other, "confidential").wait_for_trial()
        tenant.apply(file_transfer())
        running = Running(kubectl)
        queued = wait_for("it waits", lambda: running.condition("Queued").get("status") == "True" and running.status)
        told = f"{queued} {tenant('describe', 'ftb', 'files')}"
        assert "confidential" not in told
        assert other.namespace not in told
    finally:
        other("delete", "namespace", other.namespace, "--wait=false")
        other("delete", "ftb", "--all", "--wait")
