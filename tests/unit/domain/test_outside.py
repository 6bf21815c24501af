"""External classes: their members, what a benchmark asks of them, and what it does not."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.plans import plan_of
from tests.unit.domain.objects import START, benchmark, broker_benchmark, network_benchmark, node_class, seal
from tests.unit.domain.world import World
from tierbench.api.benchmark import Benchmark, Phase
from tierbench.api.node_class import CollectorAddress, NodeClass, NodeClassStatus
from tierbench.api.policy import Policy
from tierbench.domain import reasons
from tierbench.domain.node_classes import Member, members_of, resolve_members
from tierbench.domain.views import Termination
from tierbench.workloads.workload import Images

HASH = "ab" * 32
KEY = HASH[:16] + "cd" * 8
PLACE = "laptop.external.tierbench.io"
COLLECTOR = CollectorAddress(url="https://192.0.2.7:30443", pin="sha256//x")
ONE: dict[str, Any] = {"servers": {"nodeClassNames": ["cloud"]}, "fileSizes": ["1Mi"]}
AT: dict[str, Any] = {"clients": {"nodeClassNames": ["laptop"]}, "access": "NodePort"}
OWN = [{"name": "own", "configMapRef": {"name": "own"}}]
OUTSIDE: dict[str, Any] = {**ONE, "clients": {"nodeClassNames": ["laptop"]}, "access": "NodePort"}


def external(*names: str, status: NodeClassStatus | None = None, **spec: Any) -> NodeClass:
    """Returns an external class with invitations."""
    invited = [{"name": name, "tokenHash": HASH, "expirationTime": "2026-01-01T01:00:00Z"} for name in names]
    body = {"external": True, "invitations": invited, **spec}
    found = NodeClass.model_validate({"metadata": {"name": "laptop", "uid": "uid-c"}, "spec": body})
    return found if status is None else found.model_copy(update={"status": status})


def member(seen: datetime = START, *, key: str = KEY, architecture: str = "arm64", busy: bool = False) -> Member:
    return Member(key, "linux", architecture, "1", seen, busy)


def ready(node_class: NodeClass, *members: str, now: datetime = START, **seen: Member) -> NodeClass:
    """Returns a class with its status, after these members were seen."""
    known = {**dict.fromkeys(members, member()), **seen}
    return node_class.model_copy(update={"status": resolve_members(node_class, known, COLLECTOR, now)})


def condition_of(status: NodeClassStatus) -> tuple[str, str, str]:
    (condition,) = status.conditions
    return condition.status, condition.reason, condition.message


def test_a_class_has_the_members_that_were_seen() -> None:
    status = ready(external("a", "b"), "a", b=member(architecture="amd64")).status
    assert [(one.name, one.ready, one.os, one.last_seen_time) for one in status.members] == [
        ("a", True, "linux", "2026-01-01T00:00:00Z"),
        ("b", True, "linux", "2026-01-01T00:00:00Z"),
    ]
    assert (status.nodes, status.ready_nodes, status.architectures) == (2, 2, "amd64,arm64")
    assert condition_of(status) == ("True", "MembersReady", "2 of 2 members are here.")
    assert status.collector == COLLECTOR


def test_a_class_without_members_says_how_to_invite_one() -> None:
    status = resolve_members(external("a"), {}, COLLECTOR, START)
    assert condition_of(status)[:2] == ("False", "NoMember")
    assert "`kubectl tierbench join laptop`" in condition_of(status)[2]


def test_a_class_without_collector_has_a_reason() -> None:
    assert condition_of(resolve_members(external("a"), {"a": member()}, None, START))[:2] == ("False", "NoCollector")


def test_a_silent_member_stays_a_member_and_a_busy_one_may_be_silent() -> None:
    later = START + timedelta(minutes=5)
    stored = ready(external("a"), "a")
    silent = resolve_members(stored, {}, COLLECTOR, later)
    assert [(one.name, one.ready) for one in silent.members] == [("a", False)]
    assert condition_of(silent)[:2] == ("False", "MembersSilent")
    assert resolve_members(stored, {"a": member(busy=True)}, COLLECTOR, later).ready_nodes == 1


def test_the_time_of_a_member_changes_once_a_minute() -> None:
    """Each change is a write to the API server."""
    stored = ready(external("a"), "a")
    for seconds, written in ((1, 0), (59, 0), (61, 61)):
        now = START + timedelta(seconds=seconds)
        status = resolve_members(stored, {"a": member(now)}, COLLECTOR, now)
        assert status.members[0].last_seen_time == (START + timedelta(seconds=written)).strftime("%Y-%m-%dT%H:%M:%SZ")
        assert (status == stored.status) == (written == 0)


def test_a_machine_that_loses_its_invitation_is_no_member() -> None:
    stored = ready(external("a", "b"), "a", "b")
    without = external("b", status=stored.status)
    assert list(members_of(without)) == ["b"]
    assert [one.name for one in resolve_members(without, {"a": member()}, COLLECTOR, START).members] == ["b"]
    again = NodeClass.model_validate(
        {
            "metadata": {"name": "laptop"},
            "spec": {
                "external": True,
                "invitations": [{"name": "a", "tokenHash": "ef" * 32, "expirationTime": "2026-01-01T01:00:00Z"}],
            },
            "status": stored.status.to_json(),
        }
    )
    assert resolve_members(again, {"a": member()}, COLLECTOR, START).members == ()


def world(asked: Benchmark, laptop: NodeClass) -> World:
    images = Images(client="client:1", programs=World().images.programs, collector="https://192.0.2.7:30443")
    return World(asked, classes={"cloud": node_class("cloud"), "laptop": laptop}, images=images)


def scheduled(found: World) -> tuple[str, str, str]:
    (condition,) = [one for one in found.benchmark.status.conditions if one.type == reasons.SCHEDULED]
    return condition.status, condition.reason, condition.message


def test_a_benchmark_waits_until_a_machine_joins_then_a_stand_in_does_what_a_client_does() -> None:
    empty = external("a")
    found = world(
        benchmark(**OUTSIDE), empty.model_copy(update={"status": resolve_members(empty, {}, COLLECTOR, START)})
    )
    found.reconcile()
    assert str(found.benchmark.status.phase) == "Pending"
    assert scheduled(found)[:2] == ("False", "NoMember")
    assert "`kubectl tierbench join laptop`" in scheduled(found)[2]
    found.classes["laptop"] = ready(empty, "a")
    while not found.jobs:
        found.advance()
    assert set(found.leases) == {"c1", PLACE}
    (job,) = found.jobs
    pod = found.manifests[job]["spec"]["template"]["spec"]
    arguments = pod["containers"][0]["args"]
    assert arguments[0] == "stand-in"
    assert {"--class=laptop", "--work=https://192.0.2.7:30443/v1/work/default/$(POD_NAME)"} <= set(arguments)
    assert "requiredDuringSchedulingIgnoredDuringExecution" not in pod["affinity"]["nodeAffinity"]
    (target,) = plan_of(found.manifests[job])["targets"]
    agent = found.services["ft-demo-r1-s1-agent"]
    assert agent["spec"]["type"] == "NodePort"
    assert target["agent"]["url"] == f"https://198.18.0.1:{agent['spec']['ports'][0]['nodePort']}"
    found.run()
    assert found.benchmark.status.phase is Phase.COMPLETE
    (result,) = found.results.values()
    assert result.status.counts.completed == 3
    assert (result.spec.client.node, result.spec.client.architecture, result.spec.client.os_image) == (
        PLACE,
        "arm64",
        "linux",
    )


def test_the_deadline_includes_the_time_in_which_a_member_may_be_away() -> None:
    deadlines = {}
    for name, laptop in (("in", node_class("user")), ("out", ready(external("a"), "a"))):
        spec = {**OUTSIDE, "timeouts": {"nodeNotReadySeconds": 900}}
        found = world(benchmark(**spec), laptop)
        while not found.jobs:
            found.advance()
        (job,) = found.jobs
        deadlines[name] = found.manifests[job]["spec"]["activeDeadlineSeconds"]
        arguments = found.manifests[job]["spec"]["template"]["spec"]["containers"][0]["args"]
        assert ("--absent-seconds=900" in arguments) == (name == "out")
    assert deadlines["out"] == deadlines["in"] + 2 * 900


def test_an_agent_has_no_port_on_nodes_for_clients_in_the_cluster() -> None:
    found = world(benchmark(**{**OUTSIDE, "clients": {"nodeClassNames": ["user"]}}), external())
    found.classes["user"] = node_class("user")
    while not found.jobs:
        found.advance()
    assert found.services["ft-demo-r1-s1-agent"]["spec"]["type"] == "ClusterIP"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (benchmark(**{**OUTSIDE, "access": "ClusterIP"}), "spec.access to NodePort or HostNetwork"),
        (benchmark(**{**OUTSIDE, "servers": {"nodeClassNames": ["laptop"]}}), "spec.servers.nodeClassNames"),
        (benchmark(**OUTSIDE, links=[{"name": "lte", "up": {"kilobitsPerSecond": 1000}}]), "spec.links"),
        (network_benchmark(**AT), "can measure FileTransferBenchmarks and BrokerBenchmarks: name a class with nodes"),
        (broker_benchmark(**{**AT, "clients": {**AT["clients"], "pods": 2}}), "spec.clients.pods"),
        (broker_benchmark(**{**AT, "clients": {**AT["clients"], "engine": "Paho"}}), "spec.clients.engine"),
        (broker_benchmark(**AT, payload={"messages": OWN}), "spec.payload.sizes"),
        (broker_benchmark(**AT, brokers=[{"name": "k", "kafka": {"provider": "Strimzi"}}]), "Strimzi"),
    ],
)
def test_what_cannot_be_measured_from_outside_is_not_begun(asked: Benchmark, words: str) -> None:
    found = world(asked, ready(external("a"), "a"))
    found.classes["jetson"], found.policy = node_class("jetson"), Policy(links=True)
    found.reconcile()
    assert scheduled(found)[:2] == ("False", "NotFromOutside")
    assert words in scheduled(found)[2]
    assert not found.pods


def test_a_member_that_is_restarted_after_each_trial_measures_all_of_them() -> None:
    """A client in the cluster has three attempts. A machine that measures something in each of them has more."""
    found = world(benchmark(**OUTSIDE, repetitions=8), ready(external("a"), "a"))
    failure = {"reason": "Interrupted", "message": "the member was restarted"}
    while found.due:
        found.advance()
        for pod in [one for one in found.pods.values() if one.role == "client" and one.terminated is None]:
            if log := found.logs.get(pod.uid):
                found.pods[pod.name] = replace(pod, terminated=Termination(1, "Error", seal(log, failure)))
    (result,) = found.results.values()
    assert result.status.counts.completed == 8
    assert max(trial.attempt for trial in found.records[result.metadata.name].status.trials) == 8


def test_a_broker_is_measured_from_outside() -> None:
    found = world(broker_benchmark(**AT, servers={"nodeClassNames": ["cloud"]}), ready(external("a"), "a"))
    while not found.jobs:
        found.advance()
    (job,) = found.jobs
    assert found.manifests[job]["spec"]["template"]["spec"]["containers"][0]["args"][0] == "stand-in"
    found.run()
    assert found.benchmark.status.phase is Phase.COMPLETE


def test_the_preflight_leaves_out_clients_outside() -> None:
    found = world(benchmark(**OUTSIDE, preflight={}), ready(external("a"), "a"))
    found.run()
    assert found.benchmark.status.phase is Phase.COMPLETE
    (condition,) = [one for one in found.benchmark.status.conditions if one.type == reasons.NETWORK_MEASURED]
    assert (condition.status, condition.reason) == ("False", "NotFromOutside")
