"""A benchmark of an external class waits until a machine joins. Then its stand-ins do what clients do."""

import json
import shlex
import ssl
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.e2e.benchmarks import API_VERSION, Running, assert_every_trial_once, assert_nothing_left, file_transfer
from tests.e2e.kubectl import ANSWER_SECONDS, Kubectl, tierbench, wait_for
from tests.operator.scripted import Scripted
from tests.operator.site import Json

LAPTOP = {"apiVersion": API_VERSION, "kind": "NodeClass", "metadata": {"name": "laptop"}, "spec": {"external": True}}
FACTS = {"os": "linux", "architecture": "arm64", "version": "1"}


def post(address: str, path: str, token: str, **body: Any) -> tuple[int, Json]:
    """Sends a request of a member to the collector, without checking the collector's key."""
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {token}"}
    request = Request(f"https://{address}{path}", json.dumps({**FACTS, **body}).encode(), headers)
    try:
        with urlopen(request, timeout=ANSWER_SECONDS, context=unverified) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, {}


@pytest.mark.apiserver
def test_benchmark_waits_until_a_machine_joins_its_external_class(scripted_site: Scripted) -> None:
    """The scripted kubelet plays the stand-in, so the machine has nothing to do."""
    scripted_site.release.install("collector.enabled=true")
    try:
        with scripted_site.namespace("outside") as kubectl:
            kubectl.apply(LAPTOP)
            measure(scripted_site.collector_address(), kubectl)
            kubectl("delete", "nodeclass", "laptop")
    finally:
        scripted_site.release.install()


def measure(address: str, kubectl: Kubectl) -> None:
    running = Running(kubectl)
    kubectl.apply(file_transfer(clients={"nodeClassNames": ["laptop"]}, access="NodePort"))
    wait_for("it waits", lambda: running.condition("Scheduled").get("reason") == "NoMember", 120)
    wait_for("the collector", lambda: "collector" in kubectl.get("nodeclass", "laptop")["status"])
    words = shlex.split(tierbench(kubectl, "join", "laptop", "--collector", address))
    token, key = words[words.index("--token") + 1], "1" * 64

    def joined() -> Json:
        status, answer = post(address, "/v1/join/laptop", token, key=key)
        return answer if status == HTTPStatus.OK else {}

    credential = wait_for("the member", joined, 120)["credential"]
    assert post(address, "/v1/join/laptop", token, key="2" * 64)[0] == HTTPStatus.UNAUTHORIZED
    running.wait_for_phase("Complete")
    assert_every_trial_once(running)
    (result,) = running.results
    assert result["spec"]["client"]["node"] == "laptop.external.tierbench.io"
    assert_nothing_left(running)
    ask = "/v1/members/laptop/laptop-1/ask"
    assert post(address, ask, credential) == (HTTPStatus.OK, {})
    tierbench(kubectl, "join", "laptop", "--remove", "laptop-1")
    wait_for("it is removed", lambda: post(address, ask, credential)[0] == HTTPStatus.UNAUTHORIZED)
