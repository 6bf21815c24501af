"""At limits.storedBytes, a run waits until a user deletes results as its condition says."""

import json
import re

import pytest

from tests.e2e.benchmarks import Running, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.operator.site import Site
from tierbench.domain.results import stored_bytes


@pytest.mark.release
def test_run_waits_for_storage_until_a_user_deletes_results(site: Site, kubectl: Kubectl) -> None:
    kubectl.apply(file_transfer(repetitions=1))
    running = Running(kubectl)
    running.wait_for_phase("Complete")
    measure_again(kubectl, "second")
    running.wait_for_phase("Complete")
    wait_for("no other results", lambda: kubectl("get", "results", "-A", "-o", "name").count("\n") == 2)
    before = names(running)
    results = json.loads(kubectl("get", "results", "-o", "json", "--show-managed-fields"))["items"]
    size = sum(map(stored_bytes, results))
    wait_for("the size of these two", lambda: size == stored(site))
    site.release.install(f"limits.storedBytes={size // 1000}k")
    try:
        measure_again(kubectl, "third")
        running.wait_for_phase("Queued")
        condition = running.condition("Queued")
        assert condition["reason"] == "StorageFull"
        assert names(running) == before
        command = re.search(r"`kubectl (delete benchmarkresults .*)`", condition["message"])
        assert command is not None, condition["message"]
        kubectl(*command[1].split())
        running.wait_for_phase("Complete")
    finally:
        site.release.install()
    assert {result["spec"]["run"] for result in running.results} == {2, 3}


def names(running: Running) -> set[str]:
    return {result["metadata"]["name"] for result in running.results}


def measure_again(kubectl: Kubectl, name: str) -> None:
    """Starts another run."""
    kubectl("patch", "tbf", "files", "--type=merge", "-p", json.dumps({"spec": {"runPolicy": {"rerun": name}}}))


def stored(site: Site) -> int:
    """Returns the bytes of stored results according to the operator's metric."""
    found = re.search(r"^tierbench_stored_bytes (\S+)$", site.metrics(), re.MULTILINE)
    return 0 if found is None else int(float(found[1]))
