"""Releases side by side on a real API server: installed, upgraded, uninstalled."""

import pytest

from tests.api.objects import create, item, smallest
from tests.api.server import ApiServer
from tests.chart.helm import Helm, HelmError
from tests.cluster.processes import wait
from tierbench.api.file_transfer import FileTransferBenchmark
from tierbench.api.permissions import PERMISSIONS, Scope

pytestmark = pytest.mark.apiserver

FIRST = {"watchNamespaces": ["team-a"]}
SECOND = {"watchNamespaces": ["team-b"], "crds": {"install": False}}


@pytest.fixture(autouse=True)
def _teams(bare_server: ApiServer) -> None:
    for name in ("team-a", "team-b"):
        bare_server.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})


def names(server: ApiServer, path: str) -> set[str]:
    return {body["metadata"]["name"] for body in server.request("GET", path)["items"]}


def lease_roles(server: ApiServer) -> set[str]:
    return names(server, "/apis/rbac.authorization.k8s.io/v1/namespaces/tierbench-leases/roles")


def may(server: ApiServer, account: str, group: str, resource: str, verb: str, namespace: str) -> bool:
    """Whether the service account `namespace/name` may do this, as the API server judges it."""
    plural, _, subresource = resource.partition("/")
    attributes = {"group": group, "resource": plural, "subresource": subresource, "verb": verb, "namespace": namespace}
    team, _, name = account.partition("/")
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": f"system:serviceaccount:{team}:{name}", "resourceAttributes": attributes},
    }
    answer = server.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


def test_two_releases_come_and_go_without_harm_to_each_other(cluster_helm: Helm, bare_server: ApiServer) -> None:
    cluster_helm.install("one", "team-a", FIRST)
    cluster_helm.install("two", "team-b", SECOND)
    cluster_helm.upgrade("one", "team-a", FIRST | {"logLevel": "debug"})
    cluster_helm.upgrade("two", "team-b", SECOND | {"logLevel": "debug"})
    assert lease_roles(bare_server) == {"team-a:one-tierbench", "team-b:two-tierbench"}
    create(bare_server, FileTransferBenchmark, smallest(FileTransferBenchmark, "kept"))
    cluster_helm.uninstall("one", "team-a")
    assert lease_roles(bare_server) == {"team-b:two-tierbench"}
    assert "tierbench-leases" in names(bare_server, "/api/v1/namespaces")
    bare_server.request("GET", item(FileTransferBenchmark, "kept"))
    cluster_helm.uninstall("two", "team-b")
    assert lease_roles(bare_server) == set()
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    assert [name for name in names(bare_server, bindings) if "tierbench" in name] == []


def test_new_release_takes_over_what_an_old_one_kept(cluster_helm: Helm, bare_server: ApiServer) -> None:
    cluster_helm.install("old", "team-a", FIRST)
    cluster_helm.uninstall("old", "team-a")
    with pytest.raises(HelmError, match="exists and cannot be imported"):
        cluster_helm.install("new", "team-a", {})
    cluster_helm.install("new", "team-a", {}, "--take-ownership")
    assert lease_roles(bare_server) == {"team-a:new-tierbench"}
    cluster_helm.upgrade("new", "team-a", {"crds": {"keep": False}})
    create(bare_server, FileTransferBenchmark, smallest(FileTransferBenchmark, "gone"))
    cluster_helm.uninstall("new", "team-a")
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    wait(lambda: names(bare_server, definitions) == set(), "the end of the CRDs", 20)


def test_releases_that_would_run_the_same_benchmarks_are_refused(cluster_helm: Helm) -> None:
    cluster_helm.install("one", "team-a", FIRST)
    with pytest.raises(HelmError, match="release team-a:one-tierbench runs benchmarks in team-a, and this one would"):
        cluster_helm.install("two", "team-b", {"crds": {"install": False}})
    with pytest.raises(HelmError, match="another release runs the benchmarks of namespace team-a already"):
        cluster_helm.install("two", "team-b", {"watchNamespaces": ["team-b", "team-a"], "crds": {"install": False}})
    cluster_helm.upgrade("one", "team-a", {"watchNamespaces": []})
    with pytest.raises(HelmError, match="runs benchmarks in all namespaces, and this one would in team-b"):
        cluster_helm.install("two", "team-b", SECOND)


def test_service_account_may_do_what_the_table_says_and_no_more(cluster_helm: Helm, bare_server: ApiServer) -> None:
    cluster_helm.install("one", "team-a", {**FIRST, "metrics": {"authorization": True}})
    account, places = "team-a/one-tierbench", {Scope.NAMESPACED: "team-a", Scope.LEASES: "tierbench-leases"}
    for permission in PERMISSIONS:
        for resource in permission.resources:
            for verb in permission.verbs:
                call = (permission.group, resource, verb)
                assert may(bare_server, account, *call, places.get(permission.scope, "")), call
                if permission.scope not in (Scope.CLUSTER, Scope.METRICS):
                    assert not may(bare_server, account, *call, "team-b"), call
    for call in [("", "secrets", "get"), ("", "secrets", "list"), ("", "pods/exec", "create"), ("", "nodes", "patch")]:
        assert not may(bare_server, account, *call, "team-a"), call
