from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.api.server import ApiServer, api_server
from tests.chart.helm import Helm
from tests.cluster import binaries

TEAMS = ("team-a", "team-b")


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm without a cluster."""
    kubernetes = binaries.asked()
    return Helm(binaries.build(kubernetes) / "helm", tmp_path_factory.mktemp("helm"), binaries.version(kubernetes))


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server with a namespace for each team. CRDs stay on it once a release has brought them."""
    yield from _with_teams(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def bare_server(tmp_path: Path) -> Iterator[ApiServer]:
    """The same, for one test alone."""
    yield from _with_teams(tmp_path)


@pytest.fixture
def cluster_helm(helm: Helm, shared_server: ApiServer) -> Iterator[Helm]:
    """Helm with the shared API server; no release outlives the test."""
    found = replace(helm, kubeconfig=shared_server.kubeconfig)
    yield found
    for name, namespace in found.releases():
        found.uninstall(name, namespace)


@pytest.fixture
def bare_helm(helm: Helm, bare_server: ApiServer) -> Helm:
    """Helm with an API server for one test alone."""
    return replace(helm, kubeconfig=bare_server.kubeconfig)


def _with_teams(folder: Path) -> Iterator[ApiServer]:
    with api_server(folder) as running:
        for name in TEAMS:
            running.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        yield running
