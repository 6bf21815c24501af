"""What is seen of pods."""

from typing import Any

import pytest

from tierbench.domain.views import pod_view
from tierbench.workloads.names import LABEL_ROLE, LABEL_RUN


def pod(role: str, **container: Any) -> dict[str, Any]:
    """A pod with one container that has ended once and runs again, unless `container` says otherwise."""
    labels = {LABEL_ROLE: role, LABEL_RUN: "1"}
    metadata = {"name": "p", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels}
    statuses = [{"name": "kafka", "restartCount": 1, "state": {"running": {}}, **container}]
    return {"metadata": metadata, "spec": {}, "status": {"phase": "Running", "containerStatuses": statuses}}


KILLED = {"lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
ENDED = {
    "state": {
        "terminated": {
            "exitCode": 3,
            "reason": "Error",
            "message": "Terminating due to java.lang.OutOfMemoryError: Java heap space",
        }
    }
}


@pytest.mark.parametrize("container", [KILLED, ENDED])
def test_a_server_out_of_memory_is_named(container: dict[str, Any]) -> None:
    problem = pod_view(pod("server", **container)).problem
    assert problem is not None
    assert (problem.reason, problem.transient) == ("OutOfMemory", False)
    assert "container kafka" in problem.message


def test_a_server_that_was_killed_otherwise_goes_on() -> None:
    killed = {"lastState": {"terminated": {"exitCode": 137, "reason": "Error"}}}
    assert pod_view(pod("server", **killed)).problem is None


def test_a_client_out_of_memory_is_lost_as_any_other() -> None:
    assert pod_view(pod("client", **KILLED)).problem is None


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("starting\nError: Unable to open pwfile\n", "again and again: Error: Unable to open pwfile"),
        ("", "again and again, and says nothing"),
    ],
)
def test_a_server_that_cannot_stay_is_named_with_its_last_words(log: str, words: str) -> None:
    looping = {
        "restartCount": 2,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 13, "reason": "Error", "message": log}},
    }
    problem = pod_view(pod("server", **looping)).problem
    assert problem is not None
    assert problem.reason == "CrashLoop"
    assert problem.message == f"container kafka ends with exit code 13 {words}"
