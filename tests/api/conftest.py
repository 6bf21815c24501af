from collections.abc import Iterator
from itertools import count

import pytest

from tests.api.objects import crd_path
from tests.api.server import ApiServer, Json, api_server
from tests.cluster.processes import wait
from tierbench.api.kinds import KINDS
from tierbench.generate.crd import custom_resource_definition

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def is_established(crd: Json) -> bool:
    """What is not yet looked at has `conditions: null`."""
    conditions = {condition["type"]: condition["status"] for condition in crd.get("status", {}).get("conditions") or ()}
    return conditions.get("Established") == "True"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server that knows all kinds."""
    with api_server(tmp_path_factory.mktemp("apiserver")) as running:
        for model in KINDS:
            running.request("POST", CRDS, custom_resource_definition(model))
        running.request("POST", "/api/v1/namespaces", {"metadata": {"name": "leases"}})
        wait(lambda: all(is_established(running.request("GET", crd_path(model))) for model in KINDS), "CRDs", 10)
        yield running


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    return count(1)


@pytest.fixture
def name(numbers: Iterator[int]) -> str:
    """A name that no other test uses."""
    return f"test-{next(numbers)}"
