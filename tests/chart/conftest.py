from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.api.server import ApiServer, api_server
from tests.chart.helm import Helm
from tests.cluster import binaries


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm without a cluster."""
    kubernetes = binaries.asked()
    return Helm(binaries.build(kubernetes) / "helm", tmp_path_factory.mktemp("helm"), binaries.version(kubernetes))


@pytest.fixture
def bare_server(tmp_path: Path) -> Iterator[ApiServer]:
    """An API server that knows nothing of tierbench."""
    with api_server(tmp_path) as running:
        yield running


@pytest.fixture
def cluster_helm(helm: Helm, bare_server: ApiServer) -> Helm:
    """Helm with that API server."""
    return replace(helm, kubeconfig=bare_server.kubeconfig)
