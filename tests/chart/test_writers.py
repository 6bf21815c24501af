"""Tenants with the chart's roles have limited permissions on a real API server: see docs/explanation/threat-model.md.

Only the operator's account can write results, whatever roles permit.
"""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.api.definitions import MERGE
from tests.api.objects import changed, smallest
from tests.api.server import ApiServer, Json, RefusedError
from tests.api.waiting import wait_for
from tests.chart.conftest import LEASES, is_policed, is_refused, releasing
from tests.chart.helm import Helm
from tierbench.api.model import API_VERSION, Resource
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.record import BenchmarkRecord
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.broker.spec import BrokerBenchmark
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark

pytestmark = pytest.mark.apiserver

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CARELESS = {
    "metadata": {"name": "careless"},
    "rules": [{"apiGroups": ["tierbench.io"], "resources": ["*"], "verbs": ["*"]}],
}
ROLES = ("tierbench-view", "tierbench-edit")
OPERATOR = {
    team: f"system:serviceaccount:bench:{name}-tierbench" for team, name in (("team-a", "one"), ("team-b", "two"))
}
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
FORBIDDEN = 403


@pytest.fixture(scope="module", autouse=True)
def two(helm: Helm, server: ApiServer) -> Iterator[Helm]:
    """Two releases, a tenant with the roles of the chart in team-a, and users with too many permissions."""
    with releasing(helm, server) as found:
        found.install("one", "bench", {"watchNamespaces": ["team-a"]})
        found.install("two", "bench", {"watchNamespaces": ["team-b"], "crds": {"enabled": False}})
        made = [f"{RBAC}/clusterroles/careless", bind(server, "", "careless", "careless", "backup", COLLECTOR)]
        server.request("POST", f"{RBAC}/clusterroles", CARELESS)
        made += [bind(server, "namespaces/team-a/", role, "tenant") for role in ROLES]
        for team in OPERATOR:
            wait_for(partial(is_policed, server, team), "the policy holds")
        for model, user in ((FileTransferBenchmark, "tenant"), (NodeClass, "careless"), (NodeClass, "backup")):
            wait_for(partial(may_ask, server, user, model), f"the rights of {user}")
        yield found
        for where in made:
            server.request("DELETE", where)


def bind(server: ApiServer, scope: str, role: str, *users: str) -> str:
    """Binds a ClusterRole to users. Returns the path of the binding."""
    group = "rbac.authorization.k8s.io"
    plural = f"{RBAC}/{scope}{'rolebindings' if scope else 'clusterrolebindings'}"
    binding = {
        "metadata": {"name": role},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "apiGroup": group, "name": name} for name in users],
    }
    server.request("POST", plural, binding)
    return f"{plural}/{role}"


def path(model: type[Resource], team: str, name: str = "") -> str:
    scope = f"/namespaces/{team}" if model.KIND.namespaced else ""
    return f"/apis/{API_VERSION}{scope}/{model.KIND.plural}" + (f"/{name}" if name else "")


def may_ask(server: ApiServer, user: str, model: type[Resource]) -> bool:
    return not is_refused(server, path(model, "team-a"), smallest(model, "x"), {"Impersonate-User": user})


class User:
    """Sends requests as a user."""

    def __init__(self, server: ApiServer, name: str, group: str = "") -> None:
        self._server = server
        self._headers = {"Impersonate-User": name, **({"Impersonate-Group": group} if group else {})}

    def request(self, method: str, where: str, body: Json | None = None) -> Json:
        return self._server.request(method, where, body, self._headers | (MERGE if method == "PATCH" else {}))

    def create(self, model: type[Resource], team: str, name: str, **metadata: object) -> None:
        body = smallest(model, name)
        body["metadata"].update(metadata)
        self.request("POST", path(model, team), body)

    def merge(self, where: str, change: Json) -> None:
        self.request("PATCH", where, change)

    def delete(self, model: type[Resource], team: str, name: str) -> None:
        self.request("DELETE", path(model, team, name))

    def may_not_create(self, team: str, name: str) -> bool:
        try:
            self.create(BenchmarkResult, team, name)
        except RefusedError as error:
            assert error.code == FORBIDDEN
            return True
        self.delete(BenchmarkResult, team, name)
        return False


def refused(request: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(RefusedError) as error:
        request(*arguments)
    assert error.value.code == FORBIDDEN
    return str(error.value)


def test_tenant_may_use_what_the_policy_of_the_release_permits(server: ApiServer) -> None:
    """tests/policies.py has a row for everything that the policy refuses."""
    tenant, where = User(server, "tenant"), f"{path(FileTransferBenchmark, 'team-a')}?dryRun=All"
    body = smallest(FileTransferBenchmark, "asked")
    tenant.request("POST", where, body)
    folder = changed(body, "spec.storage", {"hostPath": {"path": "/root"}})
    assert "add it to the chart value policy.hostPaths" in refused(tenant.request, "POST", where, folder)
    external = {"address": "broker.example.com:8883", "secretRef": {"name": "of-others"}}
    body = changed(smallest(BrokerBenchmark, "asked"), "spec.brokers", [{"name": "site", "external": external}])
    body = changed(body, "spec.tls", ["TLSv1.3"])
    where = f"{path(BrokerBenchmark, 'team-a')}?dryRun=All"
    assert "you may not read all of the Secrets [of-others]" in refused(tenant.request, "POST", where, body)


STATUS: Json = {"status": {"phase": "Complete", "answer": "mine is best"}}
POD: Json = {"metadata": {"name": "client"}, "spec": {"containers": [{"name": "client", "image": "none"}]}}
WRITES: dict[str, tuple[str, str, Json]] = {
    "a result": ("POST", path(BenchmarkResult, "team-a"), smallest(BenchmarkResult, "forged")),
    "the status of a benchmark": ("PATCH", f"{path(FileTransferBenchmark, 'team-a', 'asked')}/status", STATUS),
    "what was measured": ("PATCH", f"{path(BenchmarkResult, 'team-a', 'measured')}/status", STATUS),
    "a pod that passes for a client": ("POST", "/api/v1/namespaces/team-a/pods", POD),
    "Leases, to keep nodes or to free them": ("DELETE", LEASES, {}),
    "a node class": ("PATCH", path(NodeClass, "", "cloud"), {"metadata": {"labels": {"mine": "true"}}}),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_tenant_may_not_write(server: ApiServer, write: tuple[str, str, Json]) -> None:
    assert 'User "tenant" cannot' in refused(User(server, "tenant").request, *write)


def test_only_the_operator_writes_results(server: ApiServer) -> None:
    careless = User(server, "careless")
    assert all(careless.may_not_create(team, "forged") for team in OPERATOR)
    operator = User(server, OPERATOR["team-a"])
    operator.create(BenchmarkResult, "team-a", "measured", finalizers=["foregroundDeletion"])
    operator.create(BenchmarkRecord, "team-a", "measured")
    status: Json = {"status": {"conditions": []}}
    for model in (FileTransferBenchmark, PlacementAdvice):
        careless.create(model, "team-a", "asked")
        message = refused(careless.merge, f"{path(model, 'team-a', 'asked')}/status", status)
        assert f"only {OPERATOR['team-a']} writes results, traces and statuses here" in message
        assert "name it in the value writers.extra of release bench/one" in message
    measured = path(BenchmarkResult, "team-a", "measured")
    for where in (f"{measured}/status", f"{path(BenchmarkRecord, 'team-a', 'measured')}/status"):
        refused(careless.merge, where, {"status": {}})
    relabelled = {"metadata": {"labels": {"tierbench.io/benchmark": "another"}}}
    refused(careless.merge, measured, relabelled)
    refused(User(server, "admin", "system:masters").merge, measured, relabelled)
    refused(User(server, OPERATOR["team-b"]).create, BenchmarkResult, "team-a", "of-another")
    collector = User(server, COLLECTOR, "system:serviceaccounts:kube-system")
    refused(collector.merge, f"{measured}/status", {"status": {}})
    refused(collector.create, BenchmarkResult, "team-a", "collected")
    careless.delete(BenchmarkResult, "team-a", "measured")
    collector.merge(measured, {"metadata": {"finalizers": None}})
    careless.delete(BenchmarkRecord, "team-a", "measured")
    assert not careless.may_not_create("default", "unwatched"), (
        "no release speaks for a namespace that it does not watch"
    )


def test_values_name_users_who_restore_backups(two: Helm, server: ApiServer) -> None:
    backup = User(server, "backup")
    assert backup.may_not_create("team-a", "restored")
    two.upgrade("one", "bench", {"watchNamespaces": ["team-a"], "writers": {"extra": ["backup"]}})
    wait_for(lambda: not backup.may_not_create("team-a", "restored"), "the policy knows the new writer")
    assert User(server, "careless").may_not_create("team-a", "forged")


def test_only_operators_write_the_status_of_node_classes(server: ApiServer) -> None:
    careless = User(server, "careless")
    careless.create(NodeClass, "", "cloud")
    status = f"{path(NodeClass, '', 'cloud')}/status"
    resolved = {"status": {"nodes": 1, "readyNodes": 1}}
    refused(careless.merge, status, resolved)
    for operator in OPERATOR.values():
        User(server, operator).merge(status, resolved)
    careless.delete(NodeClass, "", "cloud")
