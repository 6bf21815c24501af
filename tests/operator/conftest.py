"""Each test runs at two sites: a scripted control plane, and in the release tier the built-in cluster."""

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import environment, release  # noqa: F401 (fixtures of the site "cluster")
from tests.e2e.kubectl import Kubectl
from tests.operator.on_cluster import OnCluster
from tests.operator.scripted import Scripted, scripted
from tests.operator.site import Site


@pytest.fixture(scope="session")
def scripted_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scripted]:
    """The control plane that all tests of this site share."""
    with scripted(tmp_path_factory.mktemp("operator")) as site:
        yield site


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("scripted", marks=pytest.mark.apiserver),
        pytest.param("cluster", marks=[pytest.mark.release, pytest.mark.cluster]),
    ],
)
def site(request: pytest.FixtureRequest) -> Site:
    """The site where the test runs."""
    if request.param == "cluster":
        return OnCluster(request.getfixturevalue("cluster"), request.getfixturevalue("release"))
    found: Site = request.getfixturevalue("scripted_site")
    return found


@pytest.fixture
def kubectl(site: Site, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A kubectl in a namespace of its own for each test."""
    with site.namespace(request.node.originalname.removeprefix("test_")) as kubectl:
        yield kubectl
