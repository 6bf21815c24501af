"""A case that cannot be measured fails with a reason and what to do, and does not delay the other cases."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from tests.e2e.benchmarks import HOST_PATH, SHORT_PREFLIGHT, Running, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.operator.site import Json, Site

SHORTEST = {"schedulingSeconds": 5}
"""The shortest timeout that a spec may set, for cases that can never be scheduled."""
LIMITS = {"limits": {"cpu": "1", "memory": "512Mi"}}


def on(name: str, *others: str, **spec: Any) -> Json:
    """Returns a benchmark on the node of one class, so that benchmarks of other classes do not wait for it."""
    servers = {"nodeClassNames": [*others, name], **spec.pop("servers", {})}
    clients = {"nodeClassNames": [name], **spec.pop("clients", {})}
    return file_transfer(servers=servers, clients=clients, colocation="Allowed", **{"timeouts": SHORTEST, **spec})


WAITING = {
    "unknown class": on("user", "no-such-class"),
    "unknown storage class": on("cloud", storage={"volumeClaimTemplate": {"storageClassName": "no-such-class"}}),
    "forbidden storage": on("jetson-nano", storage=HOST_PATH),
    "forbidden link": on("user", links=[{"name": "late", "up": {"delayMicroseconds": 9000}}]),
    "no room for the client": on("cloud", repetitions=1),
    "no limits": on("jetson-nano", repetitions=1),
}
"""The benchmarks, each in its own namespace."""


@pytest.fixture(scope="module")
def waiting(site: Site) -> Iterator[Mapping[str, Running]]:
    """Benchmarks that wait for resources at the same time."""
    with ExitStack() as stack:
        security = {name: "baseline" if name.startswith("forbidden") else "privileged" for name in WAITING}
        spaces = {name: site.namespace(name.replace(" ", "_"), security[name]) for name in WAITING}
        found = {name: Running(stack.enter_context(space)) for name, space in spaces.items()}
        resource_quota(found["no room for the client"].kubectl, pods="1")
        everything = {"requests_cpu": "8", "requests_memory": "8Gi", "limits_cpu": "8", "limits_memory": "8Gi"}
        resource_quota(found["no limits"].kubectl, **everything)
        for name, body in WAITING.items():
            found[name].kubectl.apply(body)
        yield found


def resource_quota(kubectl: Kubectl, **hard: str) -> None:
    """Creates a ResourceQuota, and waits until it is in force."""
    spec = {"hard": {name.replace("_", "."): amount for name, amount in hard.items()}}
    kubectl.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tenant"}, "spec": spec})
    wait_for("the quota is in force", lambda: kubectl.get("resourcequota", "tenant").get("status", {}).get("hard"))


def only_failure(running: Running) -> tuple[str, str]:
    """Waits until a benchmark's only case has failed, and returns its reason and message."""
    running.wait_for_phase("Failed")
    assert_nothing_left(running)
    (result,) = running.results
    return result["status"]["reason"], result["status"]["message"]


def test_unknown_class_fails_only_its_cases(waiting: Mapping[str, Running]) -> None:
    running = waiting["unknown class"]
    running.wait_for_phase("Complete")
    outcomes = {item["spec"]["server"]["nodeClass"]: item["status"].get("reason", "") for item in running.results}
    assert outcomes == {"no-such-class": "NodeClassNotFound", "user": ""}
    assert running.condition("Complete")["reason"] == "SomeCasesFailed"


def test_unknown_storage_class_is_unschedulable(waiting: Mapping[str, Running]) -> None:
    reason, _ = only_failure(waiting["unknown storage class"])
    assert reason == "Unschedulable"


def test_storage_that_the_namespace_forbids_fails_the_case(waiting: Mapping[str, Running]) -> None:
    reason, message = only_failure(waiting["forbidden storage"])
    assert reason == "RefusedByApiServer"
    assert 'violates PodSecurity "baseline' in message
    assert "hostPath" in message


def test_link_that_the_namespace_forbids_fails_the_case(waiting: Mapping[str, Running]) -> None:
    reason, message = only_failure(waiting["forbidden link"])
    assert reason == "RefusedByApiServer"
    assert 'violates PodSecurity "baseline' in message
    assert 'container "link"' in message
    assert "Links need the Pod Security level privileged." in message


def test_quota_without_room_for_the_client_fails_the_case(waiting: Mapping[str, Running]) -> None:
    """The API server accepts the Job but rejects its pod. Only the Job controller gets this error."""
    reason, message = only_failure(waiting["no room for the client"])
    assert reason == "RefusedByApiServer"
    assert "exceeded quota" in message


def test_quota_on_limits_fails_a_case_without_limits(waiting: Mapping[str, Running]) -> None:
    """The message names the limits. A benchmark with limits is measured."""
    running = waiting["no limits"]
    reason, message = only_failure(running)
    assert reason == "RefusedByApiServer"
    assert "must specify limits.cpu" in message
    assert "spec.servers.resources" in message
    given = {"servers": {"resources": LIMITS}, "clients": {"resources": LIMITS}}
    body = on("jetson-nano", repetitions=1, preflight=SHORT_PREFLIGHT, **given)
    running.kubectl.apply({**body, "metadata": {"name": "given"}})
    measured = Running(running.kubectl, "given")
    measured.wait_for_phase("Complete")
    (result,) = measured.results
    assert result["status"]["phase"] == "Complete"
    assert result["spec"]["settings"]["serverLimitsMemory"] == "512Mi"
    assert result["spec"]["networks"][0]["upload"]


def test_missing_client_node_fails_the_case(kubectl: Kubectl) -> None:
    kubectl.apply(file_transfer(clients={"nodeClassNames": ["cloud"]}))
    reason, message = only_failure(Running(kubectl))
    assert reason == "NoSeparateClientNode"
    assert "colocation: Allowed" in message


def test_image_that_cannot_be_pulled_fails_the_case(site: Site, kubectl: Kubectl) -> None:
    running = Running(kubectl)
    with site.unknown_image(running) as image:
        kubectl.apply(file_transfer(timeouts=SHORTEST))
        reason, message = only_failure(running)
    assert reason == "ImagePullFailed"
    assert image in message
