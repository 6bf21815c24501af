"""The cluster, the images and the operator that all tests share, and a namespace for each test.

Nodes enforce network policies, namespaces enforce the strictest Pod Security Standard, and users are assigned, as on
OpenShift. Every test shows that benchmarks run under these restrictions.
"""

import os
import re
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.e2e.benchmarks import HARDWARE, node_class
from tests.e2e.kubectl import Kubectl
from tests.e2e.operator_release import Release

USERS = {"operator": 1000650000, "workloads": 1000660000}  # two ranges of user IDs as on OpenShift
BUILT_IN = os.environ.get("CLUSTER", "built-in") == "built-in"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def environment(request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment for kubectl and helm. With CLUSTER=current it is the environment of the tests."""
    if not BUILT_IN:
        return dict(os.environ)
    cluster: Cluster = request.getfixturevalue("cluster")
    path = f"{cluster.binaries}:{os.environ['PATH']}"
    return {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PATH": path}


@pytest.fixture(scope="session")
def release(environment: dict[str, str]) -> Iterator[Release]:
    """The operator, installed from the chart."""
    kubectl = Kubectl(environment, "tierbench")
    users = tuple(f"{who}.runAsUser={user}" for who, user in USERS.items())
    release = Release("tierbench", kubectl, built_in=BUILT_IN, values=users)
    release.install()
    kubectl.apply(*(node_class(name, hw=hardware) for name, hardware in HARDWARE.items()))
    yield release
    if not os.environ.get("KEEP_RELEASE"):
        release.uninstall()


@pytest.fixture
def kubectl(release: Release, environment: dict[str, str], request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """A kubectl in a namespace for the test. It is restricted unless the test has the mark `privileged`."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    namespace = f"t-{words[:32].rstrip('-')}-{secrets.token_hex(3)}"
    kubectl = Kubectl(environment, namespace)
    kubectl.create_namespace("privileged" if request.node.get_closest_marker("privileged") else "restricted")
    yield kubectl
    kubectl("delete", "filetransferbenchmarks,brokerbenchmarks,networkbenchmarks", "--all", "--wait")
    subprocess.run(["kubectl", "delete", "namespace", namespace, "--wait=false"], env=environment, check=True)
