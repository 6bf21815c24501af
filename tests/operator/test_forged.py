"""Objects that have a benchmark's labels but are not its children change nothing, and are not changed."""

from typing import Any

import pytest

from tests.e2e.benchmarks import CHILDREN, Running, assert_every_trial_once, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.operator.site import Site
from tests.timeouts import TIMEOUT_FACTOR

LABELS = {"tierbench.io/kind": "FileTransferBenchmark", "tierbench.io/benchmark": "files"}
CLIENT = {
    "tierbench.io/role": "client",
    "tierbench.io/run": "1",
    "tierbench.io/case": "1",
    "tierbench.io/pass": "1",
    "tierbench.io/attempt": "1",
    "tierbench.io/part": "0",
}
SERVER = {"tierbench.io/role": "server", "tierbench.io/run": "1", "tierbench.io/slot": "0"}


def pod(name: str, **labels: str) -> dict[str, Any]:
    """Returns a pod that is never scheduled."""
    container = {"name": "client", "image": "nowhere.invalid/none:none"}
    spec = {"nodeSelector": {"nowhere": "at-all"}, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def service(name: str, **labels: str) -> dict[str, Any]:
    ports = [{"port": 80}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": labels},
        "spec": {"ports": ports},
    }


FORGED = (
    pod("without-a-role", **LABELS),
    pod("client", **LABELS, **CLIENT),
    pod("server", **LABELS, **SERVER),
    service("precious-agent", **LABELS, **SERVER),
)
PRECIOUS = (pod("precious"), service("precious"))


def names(kubectl: Kubectl) -> set[str]:
    found = {f"{kind} {item['metadata']['name']}" for kind in CHILDREN for item in kubectl.list(kind)}
    return found - {"configmaps kube-root-ca.crt"}


@pytest.fixture
def foreign_objects(kubectl: Kubectl) -> set[str]:
    """Creates foreign objects, and returns their kinds and names."""
    kubectl.apply(*FORGED, *PRECIOUS)
    return names(kubectl)


def test_forged_objects_change_nothing(kubectl: Kubectl, foreign_objects: set[str]) -> None:
    """A pod without a role once failed every reconcile, and a forged Service had foreign objects deleted."""
    kubectl.apply(file_transfer())
    running = Running(kubectl)
    running.wait_for_phase("Complete")
    assert_every_trial_once(running)
    wait_for("only the foreign objects are left", lambda: names(kubectl) == foreign_objects, 60)


@pytest.mark.timing
def test_forged_objects_do_not_block_a_deletion(site: Site, kubectl: Kubectl, foreign_objects: set[str]) -> None:
    running = Running(kubectl)
    with site.holding_clients(running, file_transfer(fileSizes=["64Mi"], repetitions=5), trial=2):
        wait_for("a trial is stored", lambda: any(result.get("status", {}).get("trials") for result in running.results))
        kubectl("delete", "tbf", "files", f"--timeout={60 * TIMEOUT_FACTOR:.0f}s")
    wait_for("only the foreign objects are left", lambda: names(kubectl) == foreign_objects, 60)
