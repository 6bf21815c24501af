"""Interruptions at any time lose no trial, count none twice and leave no object."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.domain.objects import START, benchmark, broker_benchmark
from tests.unit.domain.scenarios import (
    PAYLOADS,
    ROUNDS,
    CliffWorld,
    PayloadCliffWorld,
    StrimziCliffWorld,
    measured_trials,
    nothing_left,
    shared_node,
)
from tests.unit.domain.strimzi_world import StrimziWorld
from tests.unit.domain.world import World, single_writes
from tests.unit.examples import examples
from tierbench.api.benchmark import Phase
from tierbench.api.result import ResultPhase
from tierbench.api.run_policy import MAXIMUM_CASES
from tierbench.domain import reasons
from tierbench.domain.decide import decide
from tierbench.domain.decision import (
    AcquireLeases,
    Action,
    DeleteJob,
    DeleteServer,
    ReleaseLeases,
    SaveRecord,
    SaveResult,
)
from tierbench.kinds.broker.strimzi import KINDS as OBJECTS
from tierbench.workloads.workload import LABEL_PART, LABEL_PARTS, LABEL_RUN

MOST_RECONCILES = 8
FILES, PAYLOAD, STRIMZI = "files", "payloads", "payloads by Strimzi"
KINDS = (FILES, PAYLOAD, STRIMZI)


def killed(data: st.DataObject) -> Callable[[int], int | None]:
    """Returns when the operator is killed: after any write, in about every second reconcile."""
    return lambda writes: data.draw(st.none() | st.integers(0, writes))


def run_killed(world: World, data: st.DataObject) -> None:
    """Runs to the end with an operator that is killed repeatedly."""
    for _ in range(600):
        if not world.due:
            break
        if world.reconcile(killed(data)).requeue_after > 0 or data.draw(st.booleans()):
            world.step()
    world.run()


def run_deposed(world: World, data: st.DataObject) -> None:
    """Runs to the end with leaders that are deposed repeatedly.

    The pending write of each takes effect after its successor has reconciled several times. It is always before the
    end, because the last steps of a run take longer than any pending write.
    """
    for _ in range(600):
        if not world.due:
            break
        late = pending_write(world, data.draw(st.integers(0, 6)))
        for _ in range(data.draw(st.integers(0, MOST_RECONCILES))):
            if world.due and world.reconcile().requeue_after > 0:
                world.step()
        if world.due:
            late()
    world.run()


def pending_write(world: World, after: int) -> Callable[[], None]:
    """Carries out the first `after` writes of a decision. Returns the next write, which is pending."""
    seen = replace(
        world,
        pods=dict(world.pods),
        jobs=dict(world.jobs),
        results=dict(world.results),
        records=dict(world.records),
        leases=dict(world.leases),
    )
    decision = decide(world.observe(), world.now)
    writes: list[Callable[[], None]] = []
    if decision.status != world.benchmark.status:
        writes.append(lambda: world._set_status(decision) if world.benchmark is seen.benchmark else None)
    writes += [partial(_carry_out, world, seen, one) for action in decision.actions for one in single_writes(action)]
    for write in writes[:after]:
        write()
    return writes[after] if after < len(writes) else lambda: None


def _carry_out(world: World, seen: World, action: Action) -> None:
    """Carries out an action if its object has not changed. The operator sends the resource version of Leases,
    results and records and the UID of deleted objects, and creates no object that exists."""

    def unchanged(nodes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(node for node in nodes if world.leases.get(node) is seen.leases.get(node))

    match action:
        case AcquireLeases(nodes, until):
            action = AcquireLeases(unchanged(tuple(nodes)), until)
        case ReleaseLeases(nodes):
            action = ReleaseLeases(unchanged(tuple(nodes)))
        case SaveResult(name=name) if world.results.get(name) is not seen.results.get(name):
            return
        case SaveRecord(name=name) if world.records.get(name) is not seen.records.get(name):
            return
        case DeleteServer(name) if _uid(world, name) != _uid(seen, name):
            return
        case DeleteJob(name) if (name in world.jobs) != (name in seen.jobs):
            return
    world._carry_out(action)


def _uid(world: World, pod: str) -> str:
    return world.pods[pod].uid if pod in world.pods else ""


@dataclass(frozen=True)
class Subject:
    """A benchmark of two classes. Its servers take turns in passes where they share a node or come from Strimzi."""

    kind: str
    shared: bool
    passes: int
    repetitions: int
    preflight: bool
    refine: bool
    parts: int
    finalizers: bool

    def world(self) -> World:
        spec: dict[str, Any] = {"repetitions": self.repetitions, "order": {"passes": self.passes}}
        spec |= {"preflight": {}} if self.preflight else {}
        spec |= {"runPolicy": {"refine": {"withinPercent": 200}}} if self.refine else {}
        if self.kind == FILES:
            made: World = CliffWorld(benchmark(**spec, fileSizes=["1Mi", "64Mi"] if self.refine else ["1Mi"]))
        else:
            spec["payload"] = {"sizes": ["1Ki", "64Ki"] if self.refine else ["1Ki"]}
            spec["clients"] = {"nodeClassNames": ["user"], "pods": self.parts}
            if self.kind == PAYLOAD:
                made = PayloadCliffWorld(broker_benchmark(**spec))
            else:
                spec["brokers"] = [{"name": "kafka", "kafka": {"provider": "Strimzi"}}]
                made = StrimziCliffWorld(broker_benchmark(**spec), finalizers=self.finalizers)
        if self.shared:
            shared_node(made)
        return made

    @property
    def sizes(self) -> set[str]:
        if self.kind == FILES:
            return {"1Mi", "64Mi", *ROUNDS[:2]} if self.refine else {"1Mi"}
        return {"1Ki", "64Ki", *PAYLOADS[:2]} if self.refine else {"1Ki"}

    @property
    def trials(self) -> list[tuple[str, int]]:
        kind, numbers = "ft" if self.kind == FILES else "bb", range(1, self.repetitions + 1)
        cases = range(1, 2 * len(self.sizes) + 1)
        return [(f"{kind}-demo-r1-c{case:03d}", trial) for case in cases for trial in numbers]

    @property
    def lines(self) -> int:
        """How many lines clients print: one per trial, and one per direction of the preflight of each pair of nodes."""
        pairs = 1 if self.shared else 2
        return self.parts * len(self.trials) + (2 * pairs if self.preflight else 0)


@st.composite
def subjects(draw: st.DrawFn, kind: str) -> Subject:
    """Refined sizes have three trials each, because fewer do not distinguish two classes."""
    refine = draw(st.sampled_from([False, False, True]))
    return Subject(
        kind=kind,
        shared=kind != STRIMZI and draw(st.booleans()),
        passes=draw(st.integers(1, 3)),
        repetitions=3 if refine else draw(st.integers(1, 4)),
        preflight=draw(st.booleans()),
        refine=refine,
        parts=1 if kind == FILES else draw(st.integers(1, 2)),
        finalizers=draw(st.booleans()),
    )


def assert_printed_is_recorded(world: World) -> None:
    """Asserts that every trial that all parts of a client have printed is recorded."""
    parts: dict[tuple[str, int, int], set[int]] = {}
    for pod, turn in world.printed:
        case, trial = map(int, turn.split(":"))
        labels = world.manifests[pod]["metadata"]["labels"]
        result = f"{world.owner.prefix}-r{labels[LABEL_RUN]}-c{case:03d}"
        if case <= MAXIMUM_CASES:  # the others are of the preflight
            parts.setdefault((result, trial, int(labels[LABEL_PARTS])), set()).add(int(labels[LABEL_PART]))
    printed = {(result, trial) for (result, trial, count), found in parts.items() if len(found) == count}
    assert printed <= set(measured_trials(world))


def assert_clean(world: World) -> None:
    assert nothing_left(world)
    assert not isinstance(world, StrimziWorld) or not world.objects


def assert_complete(subject: Subject, world: World) -> None:
    """Asserts that every trial is measured and counted once, and no object is left."""
    assert world.benchmark.status.phase is Phase.COMPLETE
    assert measured_trials(world) == subject.trials
    factor = "fileSize" if subject.kind == FILES else "payloadSize"
    assert {result.spec.levels[factor] for result in world.results.values()} == subject.sizes
    assert {len(result.spec.networks) for result in world.results.values()} == {int(subject.preflight)}
    assert_clean(world)


def assert_networks_known(world: World) -> None:
    networks = [network for result in world.results.values() for network in result.spec.networks]
    assert all(network.upload is not None and network.download is not None for network in networks)


@pytest.mark.parametrize("kind", KINDS)
@examples(0.3)
@given(st.data())
def test_an_operator_killed_at_any_write_repeats_no_trial(kind: str, data: st.DataObject) -> None:
    subject = data.draw(subjects(kind))
    world = subject.world()
    run_killed(world, data)
    assert_complete(subject, world)
    assert_networks_known(world)
    assert len(world.printed) == subject.lines, "a trial was run twice"
    assert {result.status.counts.interruptions for result in world.results.values()} == {0}
    if isinstance(world, StrimziWorld) and not subject.refine:
        made = 2 * len(OBJECTS) * min(subject.passes, subject.repetitions)
        assert len(world.created) == len(set(world.created)) == made, "an object of Strimzi was created twice"


@pytest.mark.parametrize("kind", [FILES, PAYLOAD])
@examples(0.3)
@given(st.data())
def test_a_late_write_of_a_deposed_leader_repeats_no_trial(kind: str, data: st.DataObject) -> None:
    """Where servers take turns, a late write may create one after its turn. So these are up for the whole run."""
    subject = replace(data.draw(subjects(kind)), shared=False, preflight=False)
    world = subject.world()
    run_deposed(world, data)
    assert_complete(subject, world)
    assert len(world.printed) == subject.lines, "a trial was run twice"


@pytest.mark.parametrize("kind", KINDS)
@examples(0.3)
@given(st.data())
def test_pods_killed_at_any_time_lose_no_trial(kind: str, data: st.DataObject) -> None:
    subject = data.draw(subjects(kind))
    world = subject.world()
    kills = data.draw(st.lists(st.integers(0, 100), max_size=2, unique=True))
    for tick in range(101):
        if world.due and world.reconcile().requeue_after > 0:
            world.step()
        if tick in kills and world.pods:
            world.kill_pod(data.draw(st.sampled_from(sorted(world.pods))))
    world.run()
    assert_complete(subject, world)


@pytest.mark.parametrize("kind", KINDS)
@examples(0.3)
@given(st.data())
def test_a_run_suspended_at_any_write_leaves_nothing_and_completes_later(kind: str, data: st.DataObject) -> None:
    subject = data.draw(subjects(kind))
    world = subject.world()
    world.lines_behind = data.draw(st.integers(0, 2))
    for _ in range(data.draw(st.integers(0, 60))):
        if world.due and world.reconcile(killed(data)).requeue_after > 0:
            world.step()
    world.change_spec(suspend=True)
    world.run()
    assert_clean(world)
    assert_printed_is_recorded(world)
    world.change_spec(suspend=False)
    world.run()
    assert_complete(subject, world)
    assert_networks_known(world)


def edits_of(subject: Subject) -> list[dict[str, Any]]:
    """Returns the spec of a subject in another order, two other specs, and the first one again."""
    levels: dict[str, Any] = {"fileSizes": ["4Mi"]} if subject.kind == FILES else {"payload": {"sizes": ["4Ki"]}}
    return [
        {"servers": {"nodeClassNames": ["jetson", "cloud"]}},
        {"repetitions": subject.repetitions % 4 + 1},
        {"servers": {"nodeClassNames": ["jetson"]}, **levels},
        subject.world().benchmark.spec.to_json(),
    ]


def run_edited(world: World, data: st.DataObject, edits: list[dict[str, Any]]) -> None:
    """Changes the spec at any writes of operators that are killed, then runs to the end."""
    for _ in range(data.draw(st.integers(1, 3))):
        for _ in range(data.draw(st.integers(0, 60))):
            if world.due and world.reconcile(killed(data)).requeue_after > 0:
                world.step()
        world.edit(**data.draw(st.sampled_from(edits)))
    run_killed(world, data)


@pytest.mark.parametrize("kind", KINDS)
@examples(0.3)
@given(st.data())
def test_another_order_of_the_spec_at_any_write_repeats_no_trial(kind: str, data: st.DataObject) -> None:
    subject = data.draw(subjects(kind))
    world = subject.world()
    run_edited(world, data, edits_of(subject)[:1])
    assert_complete(subject, world)
    assert len(world.printed) == subject.lines, "a trial was run twice"


@pytest.mark.parametrize("kind", KINDS)
@examples(0.3)
@given(st.data())
def test_the_last_run_measures_all_of_a_spec_changed_at_any_write(kind: str, data: st.DataObject) -> None:
    subject = data.draw(subjects(kind))
    world, plain = subject.world(), subject.world()
    world.lines_behind = data.draw(st.integers(0, 2))
    run_edited(world, data, edits_of(subject))
    plain.edit(**world.benchmark.spec.to_json())
    plain.run()
    status = world.benchmark.status
    assert status.phase is Phase.COMPLETE
    assert status.run is not None
    last = {name: result for name, result in world.results.items() if result.spec.run == status.run.number}
    assert measured_trials(replace(world, results=last)) == [
        (name.replace("-r1-", f"-r{status.run.number}-"), trial) for name, trial in measured_trials(plain)
    ]
    assert not any(result.superseded for result in last.values())
    earlier = [result for result in world.results.values() if result.spec.run != status.run.number]
    assert all(result.status.phase is not ResultPhase.RUNNING for result in earlier)
    assert all(result.superseded or not result.status.missing for result in earlier)
    assert_printed_is_recorded(world)
    assert_clean(world)


@pytest.mark.parametrize("held", [0, 1, 30])
@examples(0.3)
@given(st.data())
def test_unreachable_logs_repeat_no_trial(held: int, data: st.DataObject) -> None:
    """Seals hold the last trials, if any. The operator is killed at any write, and logs may become reachable again."""
    subject = replace(data.draw(subjects(FILES)), preflight=False, refine=False)
    world = subject.world()
    world.unreachable_logs["u1"] = held
    reachable_at = data.draw(st.integers(0, 200))
    for tick in range(400):
        if tick == reachable_at:
            world.unreachable_logs.clear()
        if world.due and world.reconcile(killed(data)).requeue_after > 0:
            world.step()
    world.unreachable_logs.clear()
    world.run()
    assert_complete(subject, world)
    assert len(world.printed) == subject.lines, "a trial was run twice"
    assert {result.status.counts.interruptions for result in world.results.values()} == {0}


def test_logs_that_stay_unreachable_end_the_cases_with_what_the_seals_hold() -> None:
    world = World(benchmark(fileSizes=["1Mi"], repetitions=5), unreachable_logs={"u1": 3})
    world.unreachable_since = START
    world.run()
    statuses = [result.status for result in world.results.values()]
    missing = [status.missing for status in statuses if status.missing is not None]
    assert sum(status.counts.completed for status in statuses) == 3
    assert (sum(one.trials for one in missing), {one.reason for one in missing}) == (7, {reasons.LOGS_UNREACHABLE})
    assert len(world.printed) == 10, "a trial was run twice"
    assert {event.reason for event in world.events} >= {reasons.LOGS_UNREACHABLE}
    assert reasons.CLIENT_LOST not in {event.reason for event in world.events}
