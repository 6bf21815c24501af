"""Objects that bear a benchmark's labels and are not its own change nothing, and are left alone."""

from typing import Any

import pytest

from tests.e2e.benchmarks import CHILDREN, Running, assert_every_trial_once, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.operator.site import Site
from tests.timeouts import TIMEOUT_FACTOR

OF_THE_BENCHMARK = {"tierbench.io/kind": "FileTransferBenchmark", "tierbench.io/benchmark": "files"}
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
    """One that is never scheduled: what it is taken for is what matters."""
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
    pod("without-a-role", **OF_THE_BENCHMARK),
    pod("client", **OF_THE_BENCHMARK, **CLIENT),
    pod("server", **OF_THE_BENCHMARK, **SERVER),
    service("precious-agent", **OF_THE_BENCHMARK, **SERVER),
)
PRECIOUS = (pod("precious"), service("precious"))


def names(kubectl: Kubectl) -> set[str]:
    found = {f"{kind} {item['metadata']['name']}" for kind in CHILDREN for item in kubectl.list(kind)}
    return found - {"configmaps kube-root-ca.crt"}


@pytest.fixture
def strangers(kubectl: Kubectl) -> set[str]:
    """Kinds and names of what was there before."""
    kubectl.apply(*FORGED, *PRECIOUS)
    return names(kubectl)


def test_forged_objects_change_nothing_and_are_named(kubectl: Kubectl, strangers: set[str]) -> None:
    """One without a role made every pass a KeyError; a Service had others' objects deleted."""
    kubectl.apply(file_transfer())
    running = Running(kubectl)
    running.wait_for_phase("Complete")
    assert_every_trial_once(running)
    running.wait_for_story("ForeignObject", "Pod without-a-role")
    wait_for("only what was there before is there", lambda: names(kubectl) == strangers, 60)


@pytest.mark.timing
def test_forged_objects_do_not_hold_up_a_deletion(site: Site, kubectl: Kubectl, strangers: set[str]) -> None:
    running = Running(kubectl)
    with site.standing(running, file_transfer(fileSizes=["64Mi"], repetitions=5), trial=2):
        wait_for("a trial is kept", lambda: any(result.get("status", {}).get("trials") for result in running.results))
        kubectl("delete", "ftb", "files", f"--timeout={60 * TIMEOUT_FACTOR:.0f}s")
    wait_for("only what was there before is there", lambda: names(kubectl) == strangers, 60)
