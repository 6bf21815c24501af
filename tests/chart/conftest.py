from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus

import pytest

from tests.api.definitions import MERGE, defined, empty, ours, put_definitions
from tests.api.objects import changed, collection, smallest
from tests.api.server import CRDS, ApiServer, Json, RefusedError
from tests.api.waiting import wait_for
from tests.chart.helm import Helm
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark as Files

NAMESPACES = ("team-a", "team-b", "default")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/tierbench-leases/leases"
REFUSED = (
    (BenchmarkResult, smallest(BenchmarkResult, "x")),
    (Files, changed(smallest(Files, "x"), "spec.storage", {"hostPath": {"path": "/proc"}})),
)
"""Objects that no release lets a user create without its roles."""


@pytest.fixture
def cluster_helm(helm: Helm, server: ApiServer) -> Iterator[Helm]:
    """Helm with the API server. The test's releases are removed at its end."""
    with releasing(helm, server) as found:
        yield found


@contextmanager
def releasing(helm: Helm, server: ApiServer) -> Iterator[Helm]:
    """As `cluster_helm`. The definitions are those that a release bench/one has kept."""
    kept = {
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "one", "meta.helm.sh/release-namespace": "bench"},
    }
    for name in defined(server):
        server.request("PATCH", f"{CRDS}/{name}", {"metadata": kept}, MERGE)
    found = replace(helm, kubeconfig=server.kubeconfig)
    try:
        yield found
    finally:
        for name, namespace in found.releases():
            found.uninstall(name, namespace)
        put_definitions(server, ours())
        wait_for(lambda: not any(is_policed(server, namespace) for namespace in NAMESPACES), "the end of policies")
        empty(server)
        server.request("DELETE", LEASES)


def is_policed(server: ApiServer, namespace: str) -> bool:
    """Whether a present or just removed release refuses anything in the namespace."""
    return any(is_refused(server, collection(model, namespace), body) for model, body in REFUSED)


def is_refused(server: ApiServer, path: str, body: Json, headers: Json | None = None) -> bool:
    """Whether creating this object is forbidden. It is a dry run."""
    try:
        server.request("POST", f"{path}?dryRun=All", body, headers)
    except RefusedError as error:
        return error.code == HTTPStatus.FORBIDDEN
    return False
