"""No room for more results: the oldest run is announced, can be exported, and goes."""

import json
import re

from tests.e2e.benchmarks import Running, file_transfer
from tests.e2e.kubectl import Kubectl, tierbench, wait_for
from tests.operator.site import Site
from tierbench.domain.eviction import size_of


def test_no_room_for_more_results(site: Site, kubectl: Kubectl) -> None:
    """The oldest run is announced, can be exported, and goes; what waited for room is measured."""
    kubectl.apply(file_transfer(repetitions=1))
    running = Running(kubectl)
    running.wait_for_phase("Complete")
    measure_again(kubectl, "second")
    running.wait_for_phase("Complete")
    wait_for("no other results", lambda: kubectl("get", "results", "-A", "-o", "name").count("\n") == 2)
    results = json.loads(kubectl("get", "results", "-o", "json", "--show-managed-fields"))["items"]
    first, second = (size_of(result) for result in sorted(results, key=lambda result: int(result["spec"]["run"])))
    wait_for("the size of these two", lambda: first + second == stored(site))
    # Too little for both, and room for the second below the mark; a trace makes a slow run the larger one.
    least, most = second / 0.8, first + second
    assert least < most, f"run 1 takes {first} bytes, run 2 {second}"
    limit = f"limits.storedBytes={(least + most) / 2000:.0f}k"
    site.release.install(limit)
    try:
        wait_for("it is announced", lambda: running.condition("EvictionPending").get("status") == "True")
        assert [eviction["run"] for eviction in running.status["evictions"]] == [1]
        measure_again(kubectl, "third")
        running.wait_for_phase("Queued")
        assert running.condition("Queued")["reason"] == "StorageFull"
        message = running.condition("EvictionPending")["message"]
        command = re.search(r"kubectl tierbench (export filetransferbenchmark/files .*) --output", message)
        assert command is not None, message
        (kept,) = json.loads(tierbench(kubectl, *command[1].split()))["items"]
        site.release.install(limit, "limits.evictionNoticeSeconds=10")
        running.wait_for_phase("Complete")
    finally:
        site.release.install()
    assert (kept["spec"]["run"], kept["status"]["phase"]) == (1, "Measured")
    assert 3 in {result["spec"]["run"] for result in running.results}
    assert kept["metadata"]["name"] not in {result["metadata"]["name"] for result in running.results}
    events = kubectl("get", "events", "--sort-by=.metadata.creationTimestamp", "-o", "jsonpath={.items[*].reason}")
    reasons = [reason for reason in events.split() if reason in {"EvictionPending", "Evicted"}]
    assert reasons[:2] == ["EvictionPending", "Evicted"]


def measure_again(kubectl: Kubectl, name: str) -> None:
    """Asks for another run."""
    kubectl("patch", "ftb", "files", "--type=merge", "-p", json.dumps({"spec": {"runPolicy": {"rerun": name}}}))


def stored(site: Site) -> int:
    """How much the operator says that results take."""
    found = re.search(r"^tierbench_stored_bytes (\S+)$", site.metrics(), re.MULTILINE)
    return 0 if found is None else int(float(found[1]))
