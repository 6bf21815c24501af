"""External classes: their members, and what benchmarks can measure with them."""

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


def test_a_class_without_a_collector_reports_it() -> None:
    assert condition_of(resolve_members(external("a"), {"a": member()}, None, START))[:2] == ("False", "NoCollector")


def test_a_silent_member_stays_a_member_and_a_busy_one_may_be_silent() -> None:
    later = START + timedelta(minutes=5)
    stored = ready(external("a"), "a")
    silent = resolve_members(stored, {}, COLLECTOR, later)
    assert [(one.name, one.ready) for one in silent.members] == [("a", False)]
    assert condition_of(silent)[:2] == ("False", "MembersSilent")
    assert resolve_members(stored, {"a": member(busy=True)}, COLLECTOR, later).ready_nodes == 1


def test_the_last_seen_time_of_a_member_changes_once_per_minute() -> None:
    """Each change is a write to the API server."""
    stored = ready(external("a"), "a")
    for seconds, written in ((1, 0), (59, 0), (61, 61)):
        now = START + timedelta(seconds=seconds)
        status = resolve_members(stored, {"a": member(now)}, COLLECTOR, now)
        assert status.members[0].last_seen_time == (START + timedelta(seconds=written)).strftime("%Y-%m-%dT%H:%M:%SZ")
        assert (status == stored.status) == (written == 0)


def test_a_machine_that_loses_its_invitation_is_not_a_member() -> None:
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


def make_world(asked: Benchmark, laptop: NodeClass) -> World:
    images = Images(client="client:1", programs=World().images.programs, collector="https://192.0.2.7:30443")
    return World(asked, classes={"cloud": node_class("cloud"), "laptop": laptop}, images=images)


def scheduled(world: World) -> tuple[str, str, str]:
    (condition,) = [one for one in world.benchmark.status.conditions if one.type == reasons.SCHEDULED]
    return condition.status, condition.reason, condition.message


def test_a_benchmark_waits_for_a_member_then_its_stand_in_measures() -> None:
    empty = external("a")
    world = make_world(
        benchmark(**OUTSIDE), empty.model_copy(update={"status": resolve_members(empty, {}, COLLECTOR, START)})
    )
    world.reconcile()
    assert str(world.benchmark.status.phase) == "Pending"
    assert scheduled(world)[:2] == ("False", "NoMember")
    assert "`kubectl tierbench join laptop`" in scheduled(world)[2]
    world.classes["laptop"] = ready(empty, "a")
    while not world.jobs:
        world.advance()
    assert set(world.leases) == {"c1", PLACE}
    (job,) = world.jobs
    pod = world.manifests[job]["spec"]["template"]["spec"]
    arguments = pod["containers"][0]["args"]
    assert arguments[0] == "stand-in"
    assert {"--class=laptop", "--work=https://192.0.2.7:30443/v1/work/default/$(POD_NAME)"} <= set(arguments)
    assert "requiredDuringSchedulingIgnoredDuringExecution" not in pod["affinity"]["nodeAffinity"]
    (target,) = plan_of(world.manifests[job])["targets"]
    agent = world.services["ft-demo-r1-s1-agent"]
    assert agent["spec"]["type"] == "NodePort"
    assert target["agent"]["url"] == f"https://198.18.0.1:{agent['spec']['ports'][0]['nodePort']}"
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE
    (result,) = world.results.values()
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
        world = make_world(benchmark(**spec), laptop)
        while not world.jobs:
            world.advance()
        (job,) = world.jobs
        deadlines[name] = world.manifests[job]["spec"]["activeDeadlineSeconds"]
        arguments = world.manifests[job]["spec"]["template"]["spec"]["containers"][0]["args"]
        assert ("--absent-seconds=900" in arguments) == (name == "out")
    assert deadlines["out"] == deadlines["in"] + 2 * 900


def test_an_agent_has_no_node_port_for_clients_in_the_cluster() -> None:
    world = make_world(benchmark(**{**OUTSIDE, "clients": {"nodeClassNames": ["user"]}}), external())
    world.classes["user"] = node_class("user")
    while not world.jobs:
        world.advance()
    assert world.services["ft-demo-r1-s1-agent"]["spec"]["type"] == "ClusterIP"


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
def test_a_benchmark_that_cannot_run_outside_does_not_start(asked: Benchmark, words: str) -> None:
    world = make_world(asked, ready(external("a"), "a"))
    world.classes["jetson"], world.policy = node_class("jetson"), Policy(links=True)
    world.reconcile()
    assert scheduled(world)[:2] == ("False", "NotFromOutside")
    assert words in scheduled(world)[2]
    assert not world.pods


def test_a_member_that_is_restarted_after_each_trial_measures_all_of_them() -> None:
    """A client in the cluster has three attempts. A member that measures something in each attempt has more."""
    world = make_world(benchmark(**OUTSIDE, repetitions=8), ready(external("a"), "a"))
    failure = {"reason": "Interrupted", "message": "the member was restarted"}
    while world.due:
        world.advance()
        for pod in [one for one in world.pods.values() if one.role == "client" and one.terminated is None]:
            if log := world.logs.get(pod.uid):
                world.pods[pod.name] = replace(pod, terminated=Termination(1, "Error", seal(log, failure)))
    (result,) = world.results.values()
    assert result.status.counts.completed == 8
    assert max(trial.attempt for trial in world.records[result.metadata.name].status.trials) == 8


def test_a_broker_is_measured_from_outside() -> None:
    world = make_world(broker_benchmark(**AT, servers={"nodeClassNames": ["cloud"]}), ready(external("a"), "a"))
    while not world.jobs:
        world.advance()
    (job,) = world.jobs
    assert world.manifests[job]["spec"]["template"]["spec"]["containers"][0]["args"][0] == "stand-in"
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE


def test_the_preflight_skips_external_clients() -> None:
    world = make_world(benchmark(**OUTSIDE, preflight={}), ready(external("a"), "a"))
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE
    (condition,) = [one for one in world.benchmark.status.conditions if one.type == reasons.NETWORK_MEASURED]
    assert (condition.status, condition.reason) == ("False", "NotFromOutside")
