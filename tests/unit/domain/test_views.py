"""Views of pods."""

from typing import Any

import pytest

from tierbench.domain.views import pod_view
from tierbench.workloads.workload import LABEL_ROLE, LABEL_RUN


def pod(role: str, **container: Any) -> dict[str, Any]:
    """A pod with one container that has ended once and runs again, unless `container` says otherwise."""
    labels = {LABEL_ROLE: role, LABEL_RUN: "1"}
    metadata = {"name": "p", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels}
    statuses = [{"name": "kafka", "restartCount": 1, "state": {"running": {}}, **container}]
    return {"metadata": metadata, "spec": {}, "status": {"phase": "Running", "containerStatuses": statuses}}


def test_the_first_failed_attempt_of_a_link_is_reported() -> None:
    """The client waits for the link, and the kubelet would try again forever."""
    body = pod("client", name="client", state={"waiting": {"reason": "PodInitializing"}})
    ended = {"exitCode": 1, "message": '{"reason": "LinkNotPossible", "message": "give it NET_ADMIN"}'}
    body["status"]["initContainerStatuses"] = [{"name": "link", "state": {"terminated": ended}}]
    problem = pod_view(body).problem
    assert problem is not None
    assert (problem.reason, problem.message, problem.transient) == ("LinkNotPossible", "give it NET_ADMIN", False)


def test_a_link_that_restarts_after_a_kill_is_no_problem() -> None:
    body = pod("client", name="client")
    killed = {"lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, "state": {"running": {}}}
    body["status"]["initContainerStatuses"] = [{"name": "link", "restartCount": 1, **killed}]
    assert pod_view(body).problem is None


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
def test_a_server_out_of_memory_is_reported(container: dict[str, Any]) -> None:
    problem = pod_view(pod("server", **container)).problem
    assert problem is not None
    assert (problem.reason, problem.transient) == ("OutOfMemory", False)
    assert "container kafka" in problem.message


def test_a_server_that_was_killed_for_another_reason_is_no_problem() -> None:
    killed = {"lastState": {"terminated": {"exitCode": 137, "reason": "Error"}}}
    assert pod_view(pod("server", **killed)).problem is None


def test_a_client_out_of_memory_is_no_problem_of_the_pod() -> None:
    assert pod_view(pod("client", **KILLED)).problem is None


def test_the_image_of_a_server_is_that_of_its_first_container() -> None:
    """The statuses of containers have no order."""
    body = pod("server", imageID="docker.io/apache/kafka@sha256:1")
    body["status"]["containerStatuses"].insert(0, {"name": "agent", "imageID": "agent@sha256:2"})
    assert pod_view(body).image_id == ""
    body["spec"]["containers"] = [{"name": "kafka"}, {"name": "agent"}]
    assert pod_view(body).image_id == "docker.io/apache/kafka@sha256:1"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("starting\nError: Unable to open pwfile\n", "Error: Unable to open pwfile"),
        ("", "no termination message"),
    ],
)
def test_a_crash_loop_is_reported_with_the_last_line(log: str, words: str) -> None:
    looping = {
        "restartCount": 2,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 13, "reason": "Error", "message": log}},
    }
    problem = pod_view(pod("server", **looping)).problem
    assert problem is not None
    assert problem.reason == "CrashLoop"
    assert problem.message == f"container kafka is crash-looping (exit code 13): {words}"


INJECTED = {"name": "istio-proxy", "restartCount": 0, "state": {"running": {}}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed", "message": "sealed"}}
PROXY_DONE = {"terminated": {"exitCode": 1, "reason": "Error", "message": "drained"}}


def with_sidecar(proxy: dict[str, Any], **client: Any) -> dict[str, Any]:
    """A client's pod into which a proxy was injected, first in the list."""
    raw = pod("client", name="client", **client)
    raw["status"]["containerStatuses"].insert(0, proxy)
    return raw


def test_a_client_has_ended_even_if_a_sidecar_still_runs() -> None:
    ended = pod_view(with_sidecar(INJECTED, state=DONE)).terminated
    assert ended is not None
    assert (ended.exit_code, ended.message) == (0, "sealed")


def test_a_sidecar_neither_starts_nor_ends_a_client() -> None:
    waiting = pod_view(with_sidecar(INJECTED, state={"waiting": {"reason": "PodInitializing"}}))
    assert (waiting.started, waiting.terminated) == (False, None)
    running = pod_view(with_sidecar({**INJECTED, "state": PROXY_DONE}))
    assert (running.started, running.terminated) == (True, None)


@pytest.mark.parametrize(
    "text", ['{"reason": "%s", "message": "m"}' % ("R" * 400), '{"reason": 7, "message": []}', "[" * 4000]
)
def test_an_invalid_termination_message_of_the_preparation_is_reported(text: str) -> None:
    failed = {"name": "prepare", "state": {"terminated": {"exitCode": 1, "message": text}}}
    problem = pod_view(pod("server", **failed)).problem
    assert problem is not None
    assert problem.reason == "PreparationFailed"


@pytest.mark.parametrize(
    ("code", "waiting", "fails"),
    [(1, {}, True), (255, {}, False), (137, {}, False), (137, {"reason": "CrashLoopBackOff"}, True)],
)
def test_a_preparation_that_restarts_with_its_node_has_not_failed(
    code: int, waiting: dict[str, str], fails: bool
) -> None:
    state = {"waiting": waiting} if waiting else {"running": {}}
    ended = {"terminated": {"exitCode": code, "reason": "Unknown", "message": ""}}
    problem = pod_view(pod("server", name="prepare", state=state, lastState=ended, restartCount=1)).problem
    assert (problem is not None) == fails
