"""Clusters with a node in a virtual machine. Processors may be emulated, so everything takes minutes."""

from pathlib import Path

import pytest

from tests.e2e.conftest import environment, kubectl, release

__all__ = ["environment", "kubectl", "release"]  # fixtures
FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.cluster)
