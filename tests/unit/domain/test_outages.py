"""Outages of nodes fail no case and lose no trial. A trial that an outage disturbs does not count."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.domain.objects import START, benchmark, broker_benchmark
from tests.unit.domain.outage_world import EXIT, FAIL, HANG, LOCAL, STALL, OutageWorld
from tests.unit.domain.scenarios import every_trial_once, nothing_left
from tests.unit.domain.test_interruptions import killed
from tests.unit.examples import examples
from tierbench.api.benchmark import Phase
from tierbench.api.contract import Outcome
from tierbench.api.measurements import Outage
from tierbench.api.result import ResultPhase
from tierbench.domain import reasons
from tierbench.domain.views import node_view, pod_view
from tierbench.kube.meta import format_time
from tierbench.workloads.workload import ROLE_SERVER

HOUR = timedelta(hours=1)


def pass_seconds(world: OutageWorld, number: int) -> None:
    """Lets a number of seconds pass."""
    until = world.now + timedelta(seconds=number)
    while world.now < until:
        world.advance()


def cut_off_for(world: OutageWorld, name: str, number: int = 90) -> None:
    """Cuts a node off for a number of seconds."""
    world.cut_off(name)
    pass_seconds(world, number)
    world.reconnect(name)


def run_until_trials(world: OutageWorld, trials: int = 1) -> OutageWorld:
    """Waits until clients have printed a number of trials."""
    while len(world.printed) < trials:
        world.advance()
    return world


def assert_all_measured(world: OutageWorld, *, noticed: bool = True) -> None:
    """Asserts that all trials that count are good, and the other ones in the records are interrupted."""
    assert world.benchmark.status.phase is Phase.COMPLETE
    assert {result.status.phase for result in world.results.values()} == {ResultPhase.COMPLETE}
    trials = [trial for record in world.records.values() for trial in record.status.trials]
    assert {trial.outcome for trial in trials if not trial.interrupted} == {Outcome.COMPLETED}
    assert not noticed or all(trial.duration_nanoseconds < 20e9 for trial in trials if not trial.interrupted)
    assert {trial.failure.reason for trial in trials if trial.interrupted and trial.failure} <= {"Interrupted"}
    assert nothing_left(world)


def known_outages(world: OutageWorld) -> tuple[Outage, ...]:
    status = world.benchmark.status.run
    assert status is not None
    return status.outages


def counted_trials(world: OutageWorld) -> list[tuple[str, int]]:
    return sorted(
        (name, trial.trial)
        for name, record in world.records.items()
        for trial in record.status.trials
        if not trial.interrupted
    )


@pytest.mark.parametrize("mode", [STALL, FAIL, EXIT])
@pytest.mark.parametrize("name", ["u1", "c1"])
def test_a_trial_in_an_outage_is_measured_again(mode: str, name: str) -> None:
    world = run_until_trials(OutageWorld(mode=mode), 3)
    cut_off_for(world, name)
    world.run()
    assert_all_measured(world)
    assert counted_trials(world) == every_trial_once(world)
    interrupted = [trial for one in world.records.values() for trial in one.status.trials if trial.interrupted]
    assert len(world.printed) == len(counted_trials(world)) + len(interrupted)
    assert bool(interrupted) == (mode != EXIT)
    assert all(f"Node {name} was not Ready" in str(trial.failure) for trial in interrupted if mode == STALL)
    (outage,) = known_outages(world)
    assert (outage.node, outage.end_time is not None) == (name, True)
    assert reasons.INTERRUPTED in {event.reason for event in world.events}
    facts = {fact.reason for result in world.results.values() for fact in result.status.facts}
    assert ("Interrupted" in facts) == bool(interrupted)


def test_a_good_trial_during_an_outage_counts() -> None:
    """Client and server still reach each other."""
    world = run_until_trials(
        OutageWorld(benchmark(servers={"nodeClassNames": ["cloud"]}, fileSizes=["1Mi"]), mode=LOCAL), 1
    )
    (pod,) = world.clients()
    cut_off_for(world, "u1", 150)
    assert len(world.logs[pod.uid].splitlines()) == 3
    world.run()
    assert_all_measured(world)
    assert len(world.printed) == 3, "a trial was run twice"


def test_a_deadline_does_not_contain_an_outage() -> None:
    """The outage is as long as the deadline of the client."""
    spec = {"servers": {"nodeClassNames": ["cloud"]}, "fileSizes": ["1Mi"], "repetitions": 1}
    timeouts = {"trialSeconds": 1, "nodeNotReadySeconds": 300}
    world = OutageWorld(benchmark(**spec, timeouts=timeouts))
    while not world.clients():
        world.advance()
    (job,) = world.jobs.values()
    assert job.work is not None
    job_deadline = world.manifests[job.name]["spec"]["activeDeadlineSeconds"]
    assert job_deadline == job.work.total_seconds() + 300
    cut_off_for(world, "u1", round(job.work.total_seconds()) + 100)
    world.run()
    assert_all_measured(world)


def test_a_hanging_client_ends_before_the_deadline_of_its_job() -> None:
    spec = {"servers": {"nodeClassNames": ["cloud"]}, "fileSizes": ["1Mi"], "timeouts": {"trialSeconds": 1}}
    world = OutageWorld(benchmark(**spec), mode=HANG)
    while not world.clients():
        world.advance()
    (job,) = world.jobs.values()
    assert job.work is not None
    world.run()
    (result,) = world.results.values()
    assert (result.status.phase, result.status.reason) == (ResultPhase.FAILED, reasons.TIMED_OUT)
    assert world.now - job.created < job.work + timedelta(seconds=60)


def test_a_restarted_operator_knows_the_start_of_an_outage() -> None:
    """No operator ran from before the outage until its middle."""
    world = OutageWorld(
        benchmark(servers={"nodeClassNames": ["cloud"]}, fileSizes=["1Mi"], timeouts={"nodeNotReadySeconds": 300})
    )
    run_until_trials(world, 1)
    world.cut_off("u1")
    for _ in range(150):
        world.step()
    noticed = world.nodes["u1"].unready_since
    assert noticed is not None
    pass_seconds(world, 50)
    (outage,) = known_outages(world)
    assert outage.start_time == format_time(noticed)
    world.reconnect("u1")
    world.run()
    assert_all_measured(world)


def test_an_old_server_survives_an_outage() -> None:
    """The server is not Ready while its node is away, but this fails none of its cases."""
    world = run_until_trials(OutageWorld())
    for pod in list(world.pods.values()):
        if pod.role == ROLE_SERVER:
            world.pods[pod.name] = replace(pod, created=START - HOUR)
    world.cut_off("c1")
    pass_seconds(world, 60)
    update = next(item for item in world.benchmark.status.conditions if item.type == reasons.SERVER_READY)
    assert (update.status, update.reason) == ("False", reasons.NODE_NOT_READY)
    world.reconnect("c1")
    world.run()
    assert_all_measured(world)


def test_a_node_that_stays_away_fails_only_its_cases() -> None:
    world = run_until_trials(OutageWorld(), 3)
    world.cut_off("j1")
    world.run()
    failed = {result.spec.server.node_class for result in world.results.values() if result.status.reason}
    assert failed == {"jetson"}
    assert {result.status.reason for result in world.results.values()} == {"", reasons.NODE_NOT_READY}


def test_a_trial_is_repeated_at_most_twice() -> None:
    """The node of the client is away each time. The third trial counts although it is slow."""
    world = OutageWorld(benchmark(servers={"nodeClassNames": ["cloud"]}, fileSizes=["1Mi"], repetitions=1))
    for attempt in range(1, 4):
        while not any(pod.attempt == attempt for pod in world.clients()):
            world.advance()
        (pod,) = (pod for pod in world.clients() if pod.attempt == attempt)
        world.pods[pod.name] = replace(pod, started=True)
        cut_off_for(world, "u1")
    world.run()
    (record,) = world.records.values()
    assert [(trial.attempt, trial.interrupted) for trial in record.status.trials] == [(1, True), (2, True), (3, False)]
    assert world.benchmark.status.phase is Phase.COMPLETE


def test_a_client_that_fails_in_an_outage_does_not_count() -> None:
    """A client fails in each of four outages. Otherwise a case ends after three failed clients."""
    world = OutageWorld(benchmark(servers={"nodeClassNames": ["cloud"]}, fileSizes=["1Mi"]), mode=EXIT)
    for attempt in range(1, 5):
        while not any(pod.attempt == attempt for pod in world.clients()):
            world.advance()
        cut_off_for(world, "c1")
    world.run()
    assert_all_measured(world)
    assert {trial.attempt for one in world.records.values() for trial in one.status.trials} == {5}


@pytest.mark.parametrize("ahead", [-HOUR, HOUR, START.replace(year=1970) - START])
def test_interrupted_trials_are_found_despite_a_skewed_clock(ahead: timedelta) -> None:
    world = run_until_trials(OutageWorld(ahead={"u1": ahead}), 3)
    cut_off_for(world, "u1")
    world.run()
    assert_all_measured(world)
    assert len([trial for one in world.records.values() for trial in one.status.trials if trial.interrupted]) == 1


@pytest.mark.parametrize("mode", [STALL, FAIL, EXIT])
@pytest.mark.parametrize("kind", ["files", "brokers"])
@examples(0.3)
@given(st.data())
def test_nodes_that_go_away_at_any_time_lose_no_trial(kind: str, mode: str, data: st.DataObject) -> None:
    """The operator is killed at any write. An outage that Kubernetes does not notice may fail a trial."""
    spec: dict[str, Any] = {"repetitions": data.draw(st.integers(1, 3))}
    spec |= {"preflight": {}} if data.draw(st.booleans()) else {}
    files, brokers = {"fileSizes": ["1Mi"]}, {"payload": {"sizes": ["100"]}}
    made = benchmark(**spec, **files) if kind == "files" else broker_benchmark(**spec, **brokers)
    world = OutageWorld(made, mode=mode, remembers=data.draw(st.booleans()))
    lengths = st.integers(1 if mode == STALL else 50, 160)
    outages = st.tuples(st.integers(0, 40), st.sampled_from(["c1", "j1", "u1"]), lengths)
    planned = data.draw(st.lists(outages, max_size=2))
    begins = sorted((tick, name, length) for tick, name, length in planned)
    ends: dict[str, int] = {}
    for tick in range(400):
        for name in [name for name, end in ends.items() if end == tick]:
            world.reconnect(name)
            del ends[name]
        while begins and begins[0][0] <= tick:
            _, name, length = begins.pop(0)
            if not world.is_away(name):
                world.cut_off(name)
                ends[name] = tick + length
        if not world.due and not ends:
            break
        before = world.now
        while world.due and world.now == before:
            if world.reconcile(killed(data)).requeue_after > 0:
                world.step()
        if world.now == before:
            world.step()
    world.run()
    for _ in range(3):
        world.step()
    assert_all_measured(world, noticed=all(length > 50 for _, _, length in planned))
    cases = range(1, 3)
    prefix = "ft" if kind == "files" else "bb"
    numbers = range(1, spec["repetitions"] + 1)
    assert counted_trials(world) == [(f"{prefix}-demo-r1-c{case:03d}", number) for case in cases for number in numbers]


def test_a_transition_that_a_kubelet_reports_has_no_known_time() -> None:
    """The clock of a node that reports that it is not Ready may be in 1970."""
    ready = {"type": "Ready", "lastTransitionTime": "1970-01-01T00:00:10Z"}
    raw = {"metadata": {"name": "n"}, "status": {"conditions": [{**ready, "status": "False"}]}}
    assert node_view(raw).unready_since is None
    raw["status"] = {"conditions": [{**ready, "status": "Unknown", "lastTransitionTime": format_time(START)}]}
    assert node_view(raw).unready_since == START


@pytest.mark.parametrize(("started", "ahead"), [(-3600, -3600), (3600, 3600), (4, 0), (-4, -4), (90, 0)])
def test_the_start_time_of_a_pod_shows_the_clock_of_its_node(started: int, ahead: int) -> None:
    """A node that was cut off accepts the pod late."""
    labels = {"tierbench.io/role": "client", "tierbench.io/run": "1"}
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(START)}
    raw = {
        "metadata": {"name": "p", "uid": "u", "labels": labels, "creationTimestamp": format_time(START)},
        "spec": {"nodeName": "n"},
        "status": {"conditions": [placed], "startTime": format_time(START + timedelta(seconds=started))},
    }
    assert pod_view(raw).clock_ahead == timedelta(seconds=ahead)
