from collections.abc import Iterator
from itertools import count

import pytest

from tests.api.definitions import empty
from tests.api.server import ApiServer


@pytest.fixture(scope="module", autouse=True)
def _remove_objects(server: ApiServer) -> Iterator[None]:
    """Removes all objects after the tests of a module, because an operator sees all objects."""
    yield
    empty(server)


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    return count(1)


@pytest.fixture
def name(numbers: Iterator[int]) -> str:
    """A name that no other test uses."""
    return f"test-{next(numbers)}"


@pytest.fixture
def namespace(server: ApiServer, name: str) -> str:
    """A namespace that no other test uses."""
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name
