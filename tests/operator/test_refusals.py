"""What cannot be measured is refused with a reason and a way out, and does not hold up the rest."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from tests.e2e.benchmarks import HOST_PATH, SHORT_PREFLIGHT, Running, assert_nothing_left, file_transfer
from tests.e2e.kubectl import Kubectl, wait_for
from tests.operator.site import Json, Site

IN_VAIN = {"schedulingSeconds": 5}
"""For what cannot be had: the least that a spec may name."""
LIMITS = {"limits": {"cpu": "1", "memory": "512Mi"}}


def on(name: str, *others: str, **spec: Any) -> Json:
    """A benchmark on the node of one class alone: those of other classes are not in its way."""
    servers = {"nodeClasses": [*others, name], **spec.pop("servers", {})}
    clients = {"nodeClasses": [name], **spec.pop("clients", {})}
    return file_transfer(servers=servers, clients=clients, colocation="Allowed", **{"timeouts": IN_VAIN, **spec})


WAITING = {
    "unknown class": on("user", "no-such-class"),
    "unknown storage class": on("cloud", storage={"persistentVolumeClaim": {"storageClassName": "no-such-class"}}),
    "forbidden storage": on("jetson-nano", storage=HOST_PATH),
    "no room for the client": on("cloud", repetitions=1),
    "no limits": on("jetson-nano", repetitions=1),
}
"""Benchmarks that wait for a while, each in a namespace of its own."""


@pytest.fixture(scope="module")
def waiting(site: Site) -> Iterator[Mapping[str, Running]]:
    """They wait side by side."""
    with ExitStack() as stack:
        security = {name: "baseline" if name == "forbidden storage" else "privileged" for name in WAITING}
        spaces = {name: site.namespace(name.replace(" ", "_"), security[name]) for name in WAITING}
        found = {name: Running(stack.enter_context(space)) for name, space in spaces.items()}
        resource_quota(found["no room for the client"].kubectl, pods="1")
        everything = {"requests_cpu": "8", "requests_memory": "8Gi", "limits_cpu": "8", "limits_memory": "8Gi"}
        resource_quota(found["no limits"].kubectl, **everything)
        for name, body in WAITING.items():
            found[name].kubectl.apply(body)
        yield found


def resource_quota(kubectl: Kubectl, **hard: str) -> None:
    """A ResourceQuota, in force."""
    spec = {"hard": {name.replace("_", "."): amount for name, amount in hard.items()}}
    kubectl.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tenant"}, "spec": spec})
    wait_for("the quota is in force", lambda: kubectl.get("resourcequota", "tenant").get("status", {}).get("hard"))


def only_failure(running: Running) -> tuple[str, str]:
    """Why the only case of a benchmark failed."""
    running.wait_for_phase("Failed")
    assert_nothing_left(running)
    (result,) = running.results
    return result["status"]["reason"], result["status"]["message"]


def test_unknown_class_fails_its_cases_and_no_others(waiting: Mapping[str, Running]) -> None:
    running = waiting["unknown class"]
    running.wait_for_phase("Complete")
    outcomes = {item["spec"]["server"]["nodeClass"]: item["status"].get("reason", "") for item in running.results}
    assert outcomes == {"no-such-class": "NodeClassNotFound", "user": ""}
    assert running.condition("Complete")["reason"] == "SomeCasesFailed"


def test_unknown_storage_class(waiting: Mapping[str, Running]) -> None:
    reason, _ = only_failure(waiting["unknown storage class"])
    assert reason == "Unschedulable"


def test_a_namespace_that_forbids_what_the_spec_asks_for(waiting: Mapping[str, Running]) -> None:
    reason, message = only_failure(waiting["forbidden storage"])
    assert reason == "RefusedByApiServer"
    assert 'violates PodSecurity "baseline' in message
    assert "hostPath" in message


def test_a_quota_that_has_no_room_for_the_client(waiting: Mapping[str, Running]) -> None:
    """The Job is taken, and its pod is not: that is said to the Job controller alone."""
    reason, message = only_failure(waiting["no room for the client"])
    assert reason == "RefusedByApiServer"
    assert "exceeded quota" in message


def test_a_namespace_whose_quota_counts_limits(waiting: Mapping[str, Running]) -> None:
    """Without them it is said what is missing; with them it is measured."""
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
    assert result["status"]["phase"] == "Measured"
    assert result["spec"]["conditions"]["serverLimitsMemory"] == "512Mi"
    assert result["spec"]["networks"][0]["upload"]


def test_no_separate_client_node(kubectl: Kubectl) -> None:
    kubectl.apply(file_transfer(clients={"nodeClasses": ["cloud"]}))
    reason, message = only_failure(Running(kubectl))
    assert reason == "NoSeparateClientNode"
    assert "colocation: Allowed" in message


def test_unknown_image(site: Site, kubectl: Kubectl) -> None:
    running = Running(kubectl)
    with site.unknown_image(running) as image:
        kubectl.apply(file_transfer(timeouts=IN_VAIN))
        reason, message = only_failure(running)
    assert reason == "ImagePullFailed"
    assert image in message
