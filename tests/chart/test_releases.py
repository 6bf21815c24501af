"""Several releases are installed, upgraded and uninstalled on a real API server."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.api.definitions import MERGE, defined, remove_definitions
from tests.api.objects import collection, create, item, smallest
from tests.api.server import ApiServer, Json, RefusedError
from tests.api.waiting import SECONDS, wait_for
from tests.chart.helm import Helm, HelmError, of_kind
from tierbench.api.rbac import Scope, permissions
from tierbench.api.schema import resource_types
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark

pytestmark = pytest.mark.apiserver

ALL = {"allNamespaces": True}
FIRST = {"watchNamespaces": ["team-a"]}
SECOND = {"watchNamespaces": ["team-b"], "crds": {"enabled": False}}
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def names(server: ApiServer, path: str) -> set[str]:
    return {body["metadata"]["name"] for body in server.request("GET", path)["items"]}


def lease_roles(server: ApiServer) -> set[str]:
    return names(server, f"{RBAC}/namespaces/tierbench-leases/roles")


def can_list_every_kind(server: ApiServer) -> bool:
    """Lists every kind, as an operator does.

    The API server prepares the storage of a kind at its first request. Otherwise a removed CRD may stay for minutes.
    """
    try:
        for model in resource_types():
            server.request("GET", collection(model))
    except RefusedError:
        return False
    return True


def may(server: ApiServer, account: str, group: str, resource: str, verb: str, namespace: str) -> bool:
    """Whether the service account `namespace/name` may do this. The API server decides."""
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


def test_two_releases_are_installed_and_removed_independently(cluster_helm: Helm, server: ApiServer) -> None:
    cluster_helm.install("one", "bench", FIRST)
    cluster_helm.install("two", "bench", SECOND)
    cluster_helm.upgrade("one", "bench", FIRST | {"logLevel": "debug"})
    cluster_helm.upgrade("two", "bench", SECOND | {"logLevel": "debug"})
    assert lease_roles(server) == {"bench:one-tierbench", "bench:two-tierbench"}
    create(server, FileTransferBenchmark, smallest(FileTransferBenchmark, "kept"))
    cluster_helm.uninstall("one", "bench")
    assert lease_roles(server) == {"bench:two-tierbench"}
    assert "tierbench-leases" in names(server, "/api/v1/namespaces")
    server.request("GET", item(FileTransferBenchmark, "kept"))
    cluster_helm.uninstall("two", "bench")
    assert lease_roles(server) == set()
    assert [name for name in names(server, f"{RBAC}/clusterrolebindings") if "tierbench" in name] == []


def test_new_release_adopts_the_definitions_that_an_old_one_kept(
    cluster_helm: Helm, server: ApiServer, tmp_path: Path
) -> None:
    remove_definitions(server)
    cluster_helm.install("old", "bench", FIRST)
    cluster_helm.uninstall("old", "bench")
    with pytest.raises(HelmError, match="exists and cannot be imported"):
        cluster_helm.install("new", "bench", ALL)
    cluster_helm.install("new", "bench", ALL, "--take-ownership")
    assert lease_roles(server) == {"bench:new-tierbench"}
    assert {hook["kind"] for hook in cluster_helm.hooks("new", "bench")} == {"Pod"}
    cluster_helm.upgrade("new", "bench", ALL | {"crds": {"keep": False}})
    body = smallest(FileTransferBenchmark, "gone")
    body["metadata"]["finalizers"] = ["tierbench.io/cleanup"]
    create(server, FileTransferBenchmark, body)
    with removal(server, cluster_helm.hooks("new", "bench"), tmp_path) as remove:
        with remove("--seconds=0") as impatient:
            errors = impatient.communicate()[1]
            assert impatient.returncode == 1
            assert b"FileTransferBenchmark default/gone still there after 0 s. Does an operator" in errors
        with remove() as patient:
            patch = {"metadata": {"finalizers": None}}
            server.request("PATCH", item(FileTransferBenchmark, "gone"), patch, MERGE)
            assert patient.wait(SECONDS) == 0
    assert names(server, collection(FileTransferBenchmark)) == set()
    wait_for(lambda: can_list_every_kind(server), "every kind's storage")
    cluster_helm.uninstall("new", "bench")
    wait_for(lambda: not defined(server), "the end of the CRDs")


@contextmanager
def removal(server: ApiServer, hooks: list[Json], folder: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Runs the program of the pre-delete hook of a release, with the account of the hook."""
    (account,), (job,) = of_kind(hooks, "ServiceAccount"), of_kind(hooks, "Job")
    assert {hook["metadata"]["annotations"]["helm.sh/hook"] for hook in (account, job)} == {"pre-delete"}
    collections = {
        "ServiceAccount": "/api/v1/namespaces/bench/serviceaccounts",
        "ClusterRole": f"{RBAC}/clusterroles",
        "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    }
    made = [
        f"{path}/{server.request('POST', path, *of_kind(hooks, kind))['metadata']['name']}"
        for kind, path in collections.items()
    ]
    token = server.request("POST", f"{made[0]}/token", {"spec": {}})
    kubeconfig = json.loads(server.kubeconfig.read_text())
    kubeconfig["users"][0]["user"]["token"] = token["status"]["token"]
    (folder / "removal.kubeconfig").write_text(json.dumps(kubeconfig))
    environment = {**os.environ, "KUBECONFIG": str(folder / "removal.kubeconfig")}
    (container,) = job["spec"]["template"]["spec"]["containers"]

    def run(*options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, *container["command"][1:], *options]
        return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)

    yield run
    for path in made:
        server.request("DELETE", path)


def test_values_of_an_older_chart_are_refused_with_advice(cluster_helm: Helm, tmp_path: Path) -> None:
    old = tmp_path / "tierbench"
    (old / "templates").mkdir(parents=True)
    (old / "Chart.yaml").write_text("{apiVersion: v2, name: tierbench, version: 0.0.1}")
    (old / "values.yaml").write_text(yaml.dump({"operator": {"priorityClassName": ""}, "crds": {"enabled": True}}))
    kept = {"operator": {"priorityClassName": "kept"}}
    cluster_helm.run("install", "one", old, "--namespace=bench", values=kept)
    with pytest.raises(HelmError, match="upgrade with --reset-then-reuse-values in place of --reuse-values"):
        cluster_helm.upgrade("one", "bench", FIRST, "--reuse-values")
    with pytest.raises(HelmError, match="say whose benchmarks this release runs"):
        cluster_helm.upgrade("one", "bench", {}, "--reset-then-reuse-values")
    cluster_helm.upgrade("one", "bench", FIRST, "--reset-then-reuse-values")
    assert "priorityClassName: kept" in cluster_helm.run("get", "manifest", "one", "--namespace=bench")


def test_releases_that_would_run_the_same_benchmarks_are_refused(cluster_helm: Helm) -> None:
    cluster_helm.install("one", "bench", FIRST)
    with pytest.raises(HelmError, match="release bench:one-tierbench runs benchmarks in team-a, and this one would"):
        cluster_helm.install("two", "bench", ALL | {"crds": {"enabled": False}})
    with pytest.raises(HelmError, match="another release runs the benchmarks of namespace team-a already"):
        cluster_helm.install("two", "bench", {"watchNamespaces": ["team-b", "team-a"], "crds": {"enabled": False}})
    cluster_helm.upgrade("one", "bench", ALL)
    with pytest.raises(HelmError, match="runs benchmarks in all namespaces, and this one would in team-b"):
        cluster_helm.install("two", "bench", SECOND)


def test_watched_namespace_that_is_missing_is_refused_before_anything_is_installed(
    cluster_helm: Helm, server: ApiServer
) -> None:
    with pytest.raises(HelmError, match=r"there is no namespace team-z, .*kubectl create namespace team-z"):
        cluster_helm.install("one", "bench", {"watchNamespaces": ["team-a", "team-z"]})
    assert cluster_helm.releases() == []
    assert lease_roles(server) == set()


def test_namespace_with_active_benchmarks_cannot_be_left_out(cluster_helm: Helm, server: ApiServer) -> None:
    """No operator would release its nodes."""
    both = {"watchNamespaces": ["team-a", "team-b"]}
    cluster_helm.install("one", "bench", both)
    body = smallest(FileTransferBenchmark, "active")
    server.request("POST", collection(FileTransferBenchmark, "team-b"), body)
    cluster_helm.upgrade("one", "bench", both)
    with pytest.raises(
        HelmError, match="FileTransferBenchmark team-b/active is active, and this release would no longer"
    ):
        cluster_helm.upgrade("one", "bench", FIRST)
    status = f"{item(FileTransferBenchmark, 'active', 'team-b')}/status"
    operator = {"Impersonate-User": "system:serviceaccount:bench:one-tierbench", "Impersonate-Group": "system:masters"}
    server.request("PATCH", status, {"status": {"phase": "Complete"}}, MERGE | operator)
    cluster_helm.upgrade("one", "bench", FIRST)


def test_service_account_has_exactly_the_permissions_of_the_table(cluster_helm: Helm, server: ApiServer) -> None:
    cluster_helm.install("one", "bench", {**FIRST, "metrics": {"authorization": True}})
    account, places = "bench/one-tierbench", {Scope.NAMESPACED: "team-a", Scope.LEASES: "tierbench-leases"}
    for permission in permissions():
        if permission.scope is Scope.REMOVAL:
            continue
        for resource in permission.resources:
            for verb in permission.verbs:
                call = (permission.group, resource, verb)
                wait_for(partial(may, server, account, *call, places.get(permission.scope, "")), f"the right {call}")
                if permission.scope not in (Scope.CLUSTER, Scope.METRICS):
                    assert not may(server, account, *call, "team-b"), call
    for call in [("", "secrets", "get"), ("", "secrets", "list"), ("", "pods/exec", "create"), ("", "nodes", "patch")]:
        assert not may(server, account, *call, "team-a"), call
