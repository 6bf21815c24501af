"""Who may write what is measured, on a real API server: whatever roles permit, the operator's account alone."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.api.objects import smallest
from tests.api.server import ApiServer, Json, RefusedError
from tests.chart.helm import Helm
from tests.cluster.processes import wait
from tierbench.api.file_transfer import FileTransferBenchmark
from tierbench.api.model import API_VERSION, Resource
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.result import BenchmarkResult
from tierbench.api.trace import BenchmarkTrace

pytestmark = pytest.mark.apiserver

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CARELESS = {
    "metadata": {"name": "careless"},
    "rules": [{"apiGroups": ["tierbench.io"], "resources": ["*"], "verbs": ["*"]}],
}
OPERATOR = {
    team: f"system:serviceaccount:{team}:{name}-tierbench" for team, name in (("team-a", "one"), ("team-b", "two"))
}
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
FORBIDDEN = 403


@pytest.fixture(autouse=True)
def _releases(cluster_helm: Helm, shared_server: ApiServer) -> Iterator[None]:
    """Two releases, and users who were given more than they should have."""
    cluster_helm.install("one", "team-a", {"watchNamespaces": ["team-a"]})
    cluster_helm.install("two", "team-b", {"watchNamespaces": ["team-b"], "crds": {"install": False}})
    user = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io"}
    subjects = [{**user, "name": name} for name in ("tenant", "backup", COLLECTOR)]
    binding = {
        "metadata": {"name": "careless"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "careless"},
        "subjects": subjects,
    }
    shared_server.request("POST", f"{RBAC}/clusterroles", CARELESS)
    shared_server.request("POST", f"{RBAC}/clusterrolebindings", binding)
    yield
    for plural in ("clusterroles", "clusterrolebindings"):
        shared_server.request("DELETE", f"{RBAC}/{plural}/careless")


def path(model: type[Resource], team: str, name: str = "") -> str:
    scope = f"/namespaces/{team}" if model.KIND.namespaced else ""
    return f"/apis/{API_VERSION}{scope}/{model.KIND.plural}" + (f"/{name}" if name else "")


class User:
    """Requests as somebody."""

    def __init__(self, server: ApiServer, name: str, group: str = "") -> None:
        self._server = server
        self._headers = {"Impersonate-User": name, **({"Impersonate-Group": group} if group else {})}

    def create(self, model: type[Resource], team: str, name: str, **metadata: object) -> Json:
        body = smallest(model, name)
        body["metadata"].update(metadata)
        return self._server.request("POST", path(model, team), body, self._headers)

    def merge(self, where: str, change: Json) -> Json:
        headers = {**self._headers, "Content-Type": "application/merge-patch+json"}
        return self._server.request("PATCH", where, change, headers)

    def delete(self, model: type[Resource], team: str, name: str) -> None:
        self._server.request("DELETE", path(model, team, name), None, self._headers)

    def may_not_create(self, team: str, name: str) -> bool:
        try:
            self.create(BenchmarkResult, team, name)
        except RefusedError as error:
            assert error.code == FORBIDDEN
            return True
        self.delete(BenchmarkResult, team, name)
        return False


def refused(request: Callable[..., object], *arguments: object, **more: object) -> str:
    with pytest.raises(RefusedError) as error:
        request(*arguments, **more)
    assert error.value.code == FORBIDDEN
    return str(error.value)


def test_only_the_operator_writes_what_was_measured(cluster_helm: Helm, shared_server: ApiServer) -> None:
    tenant = User(shared_server, "tenant")
    for team in OPERATOR:
        wait(partial(tenant.may_not_create, team, "forged"), "the policy holds", 30)
    operator = User(shared_server, OPERATOR["team-a"])
    operator.create(BenchmarkResult, "team-a", "measured", finalizers=["foregroundDeletion"])
    operator.create(BenchmarkTrace, "team-a", "measured")
    status: Json = {"status": {"conditions": []}}
    for model in (FileTransferBenchmark, PlacementAdvice):
        tenant.create(model, "team-a", "asked")
        said = refused(tenant.merge, f"{path(model, 'team-a', 'asked')}/status", status)
        assert f"only {OPERATOR['team-a']} writes results, traces and statuses here" in said
        assert "name it in the value writers.extra of release team-a/one" in said
    measured = path(BenchmarkResult, "team-a", "measured")
    for where in (f"{measured}/status", f"{path(BenchmarkTrace, 'team-a', 'measured')}/status"):
        refused(tenant.merge, where, {"status": {}})
    relabelled = {"metadata": {"labels": {"tierbench.io/benchmark": "another"}}}
    refused(tenant.merge, measured, relabelled)
    refused(User(shared_server, "admin", "system:masters").merge, measured, relabelled)
    refused(User(shared_server, OPERATOR["team-b"]).create, BenchmarkResult, "team-a", "of-another")
    collector = User(shared_server, COLLECTOR, "system:serviceaccounts:kube-system")
    refused(collector.merge, f"{measured}/status", {"status": {}})
    refused(collector.create, BenchmarkResult, "team-a", "collected")
    tenant.delete(BenchmarkResult, "team-a", "measured")
    collector.merge(measured, {"metadata": {"finalizers": None}})
    tenant.delete(BenchmarkTrace, "team-a", "measured")
    assert not tenant.may_not_create("default", "unwatched"), "no release speaks for a namespace that it does not watch"


def test_whoever_restores_is_named_in_the_values(cluster_helm: Helm, shared_server: ApiServer) -> None:
    backup = User(shared_server, "backup")
    wait(lambda: backup.may_not_create("team-a", "restored"), "the policy holds", 30)
    cluster_helm.upgrade("one", "team-a", {"watchNamespaces": ["team-a"], "writers": {"extra": ["backup"]}})
    wait(lambda: not backup.may_not_create("team-a", "restored"), "the policy knows the new writer", 30)
    assert User(shared_server, "tenant").may_not_create("team-a", "forged")


def test_each_operator_says_what_node_classes_resolve_to_and_no_user(shared_server: ApiServer) -> None:
    tenant = User(shared_server, "tenant")
    tenant.create(NodeClass, "", "cloud")
    status = f"{path(NodeClass, '', 'cloud')}/status"
    resolved = {"status": {"nodes": 1, "readyNodes": 1}}

    def holds() -> bool:
        try:
            tenant.merge(status, resolved)
        except RefusedError:
            return True
        return False

    wait(holds, "the policy holds", 30)
    for operator in OPERATOR.values():
        User(shared_server, operator).merge(status, resolved)
    tenant.delete(NodeClass, "", "cloud")
