"""A diagnosis follows from observations, and names the direction in which a connection fails."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tierbench.api.contract import MAXIMUM_PEERS, MAXIMUM_SEAL_BYTES, CheckLine
from tierbench.api.node_class import ResultsPath
from tierbench.domain import reasons
from tierbench.domain.diagnosis import Check, Diagnosis, Observed, Setup, State, diagnose
from tierbench.domain.views import Problem
from tierbench.kube.meta import format_time

START = datetime(2026, 5, 4, 10, 0, tzinfo=UTC)
OPEN = dict.fromkeys(("tcp", "udp", "ping", "service", "nodePort", "dns"), "ok")
GIB = 1 << 30


def line(*peers: dict[str, Any], **fields: Any) -> CheckLine:
    found = {
        "contract": 1,
        "record": "Check",
        "startedAt": format_time(START + timedelta(seconds=1)),
        "endedAt": format_time(START + timedelta(seconds=2)),
        "architecture": "arm64",
        "cgroupVersion": 2,
        "memoryCgroup": True,
        "freeBytes": 80 * GIB,
        "sizeBytes": 100 * GIB,
        "ping": "ok",
        "collector": "ok",
        "peers": peers,
    }
    return CheckLine.model_validate(found | fields)


def observed_class(name: str, found: CheckLine | None = None, **fields: Any) -> Observed:
    times = {"created": START, "ended": START + timedelta(seconds=3)}
    return Observed(
        name, node=f"{name}-1", line=found or line({"name": name, **OPEN}), **{"log_error": None, **times, **fields}
    )


def diagnosis_of(observed: Observed, **setup: Any) -> Diagnosis:
    (found,) = diagnose([observed], Setup(collector=True, **setup))
    return found


def test_a_class_that_lacks_nothing_is_usable() -> None:
    found = diagnosis_of(observed_class("cloud"))
    assert {item.state for item in found.findings} == {State.OK}
    assert [item.check for item in found.findings] == list(Check)
    assert not found.blocked
    assert not any(item.what_to_do for item in found.findings)


def test_a_class_without_a_node_leaves_other_checks_unknown() -> None:
    problem = Problem(reasons.NO_SUCH_NODE, "No node matches NodeClass cloud. Label a node, or fix its selector.")
    found = diagnosis_of(Observed("cloud", node_problem=problem))
    assert found.of(Check.NODE).state is State.BLOCKED
    assert found.of(Check.NODE).what_to_do == problem.message
    assert {item.state for item in found.findings} == {State.BLOCKED, State.UNKNOWN}


@pytest.mark.parametrize(
    ("reason", "check", "says"),
    [
        (reasons.IMAGE_PULL_FAILED, Check.IMAGE, "imagePullSecrets"),
        (reasons.REFUSED, Check.POD, "Pod Security"),
        (reasons.UNSCHEDULABLE, Check.POD, "tolerations"),
        (reasons.TIMED_OUT, Check.POD, "kubelet"),
        (reasons.CLIENT_FAILED, Check.POD, "another version"),
    ],
)
def test_a_pod_that_does_not_run_blocks_its_class(reason: str, check: Check, says: str) -> None:
    found = diagnosis_of(Observed("cloud", node="n1", pod_problem=Problem(reason, "so it is.")))
    assert (found.of(check).state, found.of(check).detail) == (State.BLOCKED, reason)
    assert "so it is. " in found.of(check).what_to_do
    assert says in found.of(check).what_to_do
    assert found.of(Check.LOGS).state is State.UNKNOWN


@pytest.mark.parametrize(
    ("reason", "says"), [(reasons.IMAGE_PULL_FAILED, "architecture"), (reasons.TIMED_OUT, "--timeout")]
)
def test_a_server_image_that_is_not_pulled_limits_its_class(reason: str, says: str) -> None:
    found = diagnosis_of(observed_class("pi", image_problem=Problem(reason, "container kafka: no match for platform.")))
    image = found.of(Check.IMAGE)
    assert (image.state, image.detail) == (State.LIMITED, reason)
    assert "Node pi-1 did not pull all images" in image.what_to_do
    assert "container kafka: no match for platform. " in image.what_to_do
    assert says in image.what_to_do
    assert not found.blocked


def test_a_refused_node_port_limits_its_class() -> None:
    found = diagnosis_of(observed_class("cloud", node_port_refused="exceeded quota: team, used: services.nodeports=0."))
    ports = found.of(Check.NODE_PORTS)
    assert (ports.state, ports.detail) == (State.LIMITED, reasons.REFUSED)
    assert "services.nodeports=0. Change the quota" in ports.what_to_do
    assert found.of(Check.SERVICES).state is State.OK


@pytest.mark.parametrize(
    ("results", "collector", "logs", "push"),
    [
        (ResultsPath.AUTO, "ok", State.LIMITED, State.OK),
        (ResultsPath.AUTO, "refused", State.BLOCKED, State.LIMITED),
        (ResultsPath.AUTO, "", State.BLOCKED, State.UNKNOWN),
        (ResultsPath.PUSH, "refused", State.LIMITED, State.BLOCKED),
        (ResultsPath.STATUS, "", State.LIMITED, State.UNKNOWN),
    ],
)
def test_one_path_for_results_is_enough(results: ResultsPath, collector: str, logs: State, push: State) -> None:
    error = "dial tcp 10.1.2.3:10250: connect: connection refused"
    observed = observed_class("edge", line(collector=collector), log_error=error, results=results)
    (found,) = diagnose([observed], Setup(collector=bool(collector)))
    assert (found.of(Check.LOGS).state, found.of(Check.PUSH).state) == (logs, push)
    assert "cloudStream" in found.of(Check.LOGS).what_to_do
    assert found.of(Check.LOGS).detail == error


def test_a_class_that_pushes_needs_a_collector() -> None:
    (found,) = diagnose([observed_class("edge", results=ResultsPath.PUSH)], Setup())
    assert found.of(Check.PUSH).state is State.BLOCKED
    assert "collector.enabled" in found.of(Check.PUSH).what_to_do


def failed_from_edge(check: str, why: str = "timed out") -> list[Observed]:
    """Returns classes of which the pods of edge do not reach those of cloud."""
    cloud = line({"name": "cloud", **OPEN}, {"name": "edge", **OPEN})
    edge = line({"name": "cloud", **OPEN, check: why}, {"name": "edge", **OPEN})
    return [observed_class("cloud", cloud), observed_class("edge", edge)]


@pytest.mark.parametrize(
    ("field", "check", "state", "says"),
    [
        ("tcp", Check.PORTS, State.BLOCKED, "CNI"),
        ("udp", Check.UDP, State.LIMITED, "spec.protocols"),
        ("service", Check.SERVICES, State.BLOCKED, "kube-proxy"),
        ("nodePort", Check.NODE_PORTS, State.LIMITED, "30000 to 32767"),
        ("dns", Check.DNS, State.BLOCKED, "CoreDNS"),
        ("ping", Check.PING, State.LIMITED, "ICMP"),
    ],
)
def test_a_failed_connection_names_its_direction(field: str, check: Check, state: State, says: str) -> None:
    cloud, edge = diagnose(failed_from_edge(field), Setup(collector=True))
    assert (edge.of(check).state, edge.of(check).detail) == (state, "out")
    assert (cloud.of(check).state, cloud.of(check).detail) == (state, "in")
    assert "edge-1" in edge.of(check).what_to_do
    assert says in edge.of(check).what_to_do
    assert "timed out" in edge.of(check).what_to_do
    assert not cloud.of(check).what_to_do
    others = [item for each in (cloud, edge) for item in each.findings if item.check is not check]
    assert {item.state for item in others} == {State.OK}


def test_only_the_cause_of_several_failures_has_a_remedy() -> None:
    alone = {"name": "cloud", **dict.fromkeys(OPEN, "timed out")}
    (found,) = diagnose([observed_class("cloud", line(alone))], Setup(collector=True))
    assert found.of(Check.SERVICES).state is State.BLOCKED
    assert [item.check for item in found.findings if item.what_to_do] == [Check.PORTS]


def test_host_network_does_not_need_services() -> None:
    (_, edge) = diagnose(failed_from_edge("service"), Setup(collector=True, host_network=True))
    assert edge.of(Check.SERVICES).state is State.LIMITED
    assert not edge.blocked


@pytest.mark.parametrize(("seconds", "says"), [(-3600, "3,598 s behind"), (3600, "3,599 s ahead"), (-4, ""), (4, "")])
def test_a_skewed_clock_is_reported(seconds: int, says: str) -> None:
    start, end = (format_time(START + timedelta(seconds=seconds + after)) for after in (2, 2))
    clock = diagnosis_of(observed_class("edge", line(startedAt=start, endedAt=end))).of(Check.CLOCK)
    assert clock.state is (State.LIMITED if says else State.OK)
    assert clock.detail == says
    assert says in clock.what_to_do


def test_a_board_that_starts_in_1970_is_behind() -> None:
    clock = diagnosis_of(
        observed_class("pi", line(startedAt="1970-01-01T00:00:09.123456789Z", endedAt="1970-01-01T00:00:11Z"))
    ).of(Check.CLOCK)
    assert clock.detail.endswith(" s behind")


def test_a_missing_memory_cgroup_ping_or_disk_space_limits_a_class() -> None:
    found = diagnosis_of(observed_class("pi", line(memoryCgroup=False, ping="not permitted", freeBytes=15 * GIB)))
    assert [item.check for item in found.findings if item.state is State.LIMITED] == [
        Check.MEMORY,
        Check.PING,
        Check.DISK,
    ]
    assert "cgroup_enable=memory" in found.of(Check.MEMORY).what_to_do
    assert "net.ipv4.ping_group_range" in found.of(Check.PING).what_to_do
    assert "leave 16 GiB free" in found.of(Check.DISK).what_to_do
    assert not found.blocked


def test_disk_pressure_blocks_a_class() -> None:
    found = diagnosis_of(observed_class("pi", disk_pressure=True))
    assert found.of(Check.DISK).state is State.BLOCKED
    assert found.blocked


def test_values_that_the_kernel_does_not_report_are_unknown() -> None:
    found = diagnosis_of(observed_class("pi", line(memoryCgroup=None, freeBytes=None)))
    assert {item.check for item in found.findings if item.state is State.UNKNOWN} >= {Check.MEMORY, Check.DISK}


def test_the_report_of_many_peers_fits_a_termination_message() -> None:
    peer = {"name": "x" * 63, **dict.fromkeys(OPEN, "another program answers")}
    found = line(*[peer] * MAXIMUM_PEERS, ping="not permitted", collector="another program answers")
    assert len(found.model_dump_json(by_alias=True)) <= MAXIMUM_SEAL_BYTES
