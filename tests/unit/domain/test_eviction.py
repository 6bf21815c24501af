"""Runs are evicted oldest first, announced in time, and only when stored results reach their limit."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.domain.world import KIND, raw_benchmark, raw_result
from tierbench.api.policy import Quotas
from tierbench.domain import reasons
from tierbench.domain.eviction import (
    EvictionChange,
    StorageUsage,
    eviction_condition,
    eviction_events,
    plan_evictions,
    size_of,
    watermark,
)
from tierbench.kube.clock import format_time

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
QUOTAS = Quotas(stored_bytes="11k", eviction_notice_seconds=3600)
NAMES = ("a", "b", "c")
SMALL = 300
"""The smallest size of a result in these tests, including its envelope."""
STEPS = st.one_of(
    st.tuples(st.just("run"), st.sampled_from(NAMES), st.integers(0, 3000), st.booleans()),
    st.tuples(st.just("wait"), st.integers(0, 5000)),
    st.tuples(st.just("look"), st.integers(0, 6)),
)


def test_usage_follows_results_that_grow_and_are_deleted() -> None:
    storage_usage = StorageUsage()
    storage_usage.update_result(small := raw_result("r", "b", 1, 1000), deleted=False)
    assert storage_usage.total == size_of(small) > 1200
    storage_usage.update_result(grown := raw_result("r", "b", 1, 5000), deleted=False)
    assert storage_usage.total == size_of(grown) == size_of(small) + 4000
    storage_usage.update_result(other := raw_result("s", "b", 1, 10), deleted=False)
    assert storage_usage.total == size_of(grown) + size_of(other)
    for name in ("r", "s", "s"):
        storage_usage.update_result({"metadata": {"name": name, "namespace": "a"}}, deleted=True)
    assert storage_usage.total == 0
    assert not list(storage_usage.finished_runs())


def test_only_ended_runs_are_finished_and_the_newest_and_the_baseline_are_needed() -> None:
    storage_usage = StorageUsage()
    for run in (1, 2, 3, 4):
        storage_usage.update_result(raw_result(f"r{run}", "b", run, second=run), deleted=False)
    assert not list(storage_usage.finished_runs())
    storage_usage.update_benchmark(raw_benchmark("b", 4, ended=False, baseline=1), deleted=False)
    assert {run.key[1]: run.needed for run in storage_usage.finished_runs()} == {1: True, 2: False, 3: True}
    storage_usage.update_benchmark(raw_benchmark("b", 4), deleted=False)
    assert {run.key[1]: run.needed for run in storage_usage.finished_runs()} == {1: False, 2: False, 3: False, 4: True}
    assert storage_usage.results_of(((KIND, "a", "b"), 2)) == {"r2": "uid-of-r2"}
    storage_usage.update_benchmark(raw_benchmark("b", 4), deleted=True)
    assert not list(storage_usage.finished_runs())


def test_runs_of_a_benchmark_with_an_invalid_status_are_not_evicted() -> None:
    storage_usage = StorageUsage()
    storage_usage.update_result(raw_result("r", "b", 1), deleted=False)
    storage_usage.update_benchmark(raw_benchmark("b", 1, phase="Dreaming"), deleted=False)
    assert storage_usage.total
    assert not list(storage_usage.finished_runs())


@dataclass
class Store:
    """The benchmarks and results of an API server. Every run has two results."""

    quotas: Quotas = QUOTAS
    now: datetime = START
    storage_usage: StorageUsage = field(default_factory=StorageUsage)
    runs: dict[tuple[str, int], int] = field(default_factory=dict)
    """The order of creation of the runs."""
    is_running: dict[str, bool] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    written: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    warned: dict[tuple[str, int], datetime] = field(default_factory=dict)
    gone: list[tuple[str, int]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def run(self, name: str, size: int = SMALL, *, ends: bool = True) -> None:
        """Adds a run of a benchmark, which ends or stays in progress. The previous one ends first."""
        number = self.newest[name] = self.newest.get(name, 0) + 1
        self.runs[name, number] = len(self.runs)
        self.now += timedelta(seconds=1)
        for case in (1, 2):
            raw = raw_result(f"{name}-r{number}-c{case}", name, number, size)
            raw["metadata"]["creationTimestamp"] = format_time(self.now)
            self.storage_usage.update_result(raw, deleted=False)
        self.is_running[name] = not ends
        self.show(name)

    def show(self, name: str) -> None:
        """Sends the watch event of a benchmark."""
        raw = raw_benchmark(
            name, self.newest[name], ended=not self.is_running[name], evictions=self.written.get(name, [])
        )
        self.storage_usage.update_benchmark(raw, deleted=False)

    def plan(self, writes: int = 1000) -> tuple[EvictionChange, ...]:
        """Plans evictions once. The operator is killed after this many writes."""
        changes = plan_evictions(self.storage_usage, self.quotas, self.now)
        steps: list[Callable[[], None]] = []
        for change in changes:
            name = change.benchmark[2]
            self.messages += [
                event.message for event in eviction_events(change, self.storage_usage.total, self.quotas, self.now)
            ]
            steps.append(partial(self.write, change))
            for run in change.evicting:
                assert run.key[1] < self.newest[name] or not self.is_running[name], "the run in progress"
                steps += [partial(self.delete, result, run.key) for result in self.storage_usage.results_of(run.key)]
        for step in steps[:writes]:
            step()
        return changes

    def write(self, change: EvictionChange) -> None:
        name = change.benchmark[2]
        for run in change.announced:
            self.warned[name, run.key[1]] = self.now
        self.written[name] = [eviction.to_json() for eviction in change.evictions]
        self.show(name)

    def delete(self, result: str, key: tuple[tuple[str, str, str], int]) -> None:
        run = (key[0][2], key[1])
        waited = self.now - self.warned[run]
        assert waited >= timedelta(seconds=self.quotas.eviction_notice_seconds), f"{run} had {waited} of notice"
        if run not in self.gone:
            self.gone.append(run)
        self.storage_usage.update_result({"metadata": {"name": result, "namespace": "a"}}, deleted=True)

    def remove(self, name: str, run: int) -> None:
        """Deletes the results of a run, as a user would."""
        for case in (1, 2):
            metadata = {"name": f"{name}-r{run}-c{case}", "namespace": "a"}
            self.storage_usage.update_result({"metadata": metadata}, deleted=True)

    @property
    def sealed(self) -> dict[tuple[str, int], int]:
        """The sizes of the runs that have ended."""
        return {(run.key[0][2], run.key[1]): run.size for run in self.storage_usage.finished_runs()}


def store(*names: str, size: int = 1000) -> Store:
    made = Store()
    for name in names:
        made.run(name, size)
    return made


def test_nothing_is_announced_below_the_watermark() -> None:
    one = store("a", "a", "a")
    assert 6000 < one.storage_usage.total <= watermark(QUOTAS)
    assert one.plan() == ()


def test_the_oldest_are_announced_at_the_watermark_and_evicted_at_the_limit() -> None:
    one = store("a", "a", "a", "b")
    assert watermark(QUOTAS) < one.storage_usage.total < QUOTAS.most_stored_bytes
    (change,) = one.plan()
    assert [run.key[1] for run in change.announced] == [1]
    assert one.plan() == ()
    one.now += 2 * HOUR
    assert one.plan() == ()
    one.run("b")
    one.run("b")
    assert one.storage_usage.total >= QUOTAS.most_stored_bytes
    one.plan()
    assert one.gone == [("a", 1)]
    assert all(run not in one.gone for run in one.sealed)


def test_an_eviction_waits_for_its_notice() -> None:
    one = store("a", "a", "a", "a", "a")
    one.plan()
    one.now += HOUR - timedelta(seconds=1)
    one.plan()
    assert one.gone == []
    one.now += timedelta(seconds=1)
    one.plan()
    assert one.gone == [("a", 1), ("a", 2)]
    assert one.storage_usage.total <= watermark(QUOTAS)
    one.plan()
    assert one.written["a"] == []


def test_no_more_runs_are_evicted_than_necessary() -> None:
    one = store("a", "a", "a", "a", "a", "b", "b")
    one.plan()
    assert len(one.warned) == 4
    for run in (1, 2):
        one.remove("b", run)
    one.now += HOUR
    one.plan()
    assert one.gone == [("a", 1), ("a", 2)]


def test_needed_runs_are_evicted_last() -> None:
    one = store("old", "a", "a", "a", "a")
    one.plan()
    one.now += HOUR
    one.plan()
    assert one.gone == [("a", 1), ("a", 2)]
    assert ("old", 1) in one.sealed


def test_a_notice_is_withdrawn_below_the_watermark_and_given_again() -> None:
    one = store("a", "a", "b", "b")
    one.plan()
    given, first = one.written["a"], one.warned["a", 1]
    assert given
    one.remove("b", 1)
    (change,) = one.plan()
    assert one.written["a"] == []
    assert eviction_condition(change, one.storage_usage.total, QUOTAS).status is False
    one.now += HOUR
    one.run("b", 2000)
    one.plan()
    assert one.warned["a", 1] > first
    assert one.gone == []


def test_whole_runs_are_evicted_even_if_the_operator_is_killed() -> None:
    one = store("a", "a", "a", "a", "a")
    one.plan()
    one.now += HOUR
    one.plan(writes=2)
    assert one.gone == [("a", 1)]
    one.quotas = Quotas(stored_bytes="10M", eviction_notice_seconds=3600)
    one.plan()
    assert ("a", 1) not in one.sealed
    assert set(one.gone) == {("a", 1), ("a", 2)}


def test_the_announcement_names_the_runs_the_time_and_the_export() -> None:
    one = store("a", "a", "a", "a", "a")
    (change,) = plan_evictions(one.storage_usage, QUOTAS, one.now)
    (event,) = eviction_events(change, one.storage_usage.total, QUOTAS, one.now)
    assert (event.reason, event.warning) == (reasons.EVICTION_PENDING, True)
    for words in (
        f"take {one.storage_usage.total} bytes; limits.storedBytes in the chart is 11k",
        f"runs 1, 2 of this benchmark may be deleted from {format_time(one.now + HOUR)} on",
        "kubectl tierbench export filetransferbenchmark/a --namespace a --run 1 --format json --output a-run-1.json",
    ):
        assert words in event.message
    assert len(event.message) < 1024
    assert eviction_condition(change, one.storage_usage.total, QUOTAS).status is True


def test_the_condition_names_the_time_of_the_first_eviction() -> None:
    one = store("a", "a", "a", "a")
    one.plan()
    first = format_time(one.now + HOUR)
    one.now += HOUR / 2
    one.run("a")
    one.run("a")
    (change,) = plan_evictions(one.storage_usage, QUOTAS, one.now)
    assert [eviction.run for eviction in change.evictions] == [1, 2]
    assert (
        f"runs 1, 2 of this benchmark may be deleted from {first} on" in eviction_condition(change, 0, QUOTAS).message
    )


@given(st.lists(STEPS, max_size=30))
def test_eviction_in_random_sequences(steps: list[tuple[object, ...]]) -> None:
    """Store asserts that runs in progress stay and that every eviction had its notice. In the end there is room."""
    one = Store()
    for step in steps:
        match step:
            case ("run", str(name), int(size), bool(ends)):
                one.run(name, size, ends=ends)
            case ("wait", int(seconds)):
                one.now += timedelta(seconds=seconds)
            case ("look", int(writes)):
                one.plan(writes)
    for _ in range(3):
        one.plan()
        one.now += HOUR
    assert one.storage_usage.total < QUOTAS.most_stored_bytes or not one.sealed


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 3000)), max_size=20))
def test_the_oldest_runs_are_evicted_first(runs: list[tuple[str, int]]) -> None:
    one = Store()
    for name, size in runs:
        one.run(name, size)
    one.plan()
    one.now += HOUR
    order = sorted(one.sealed, key=lambda run: (run[1] == one.newest[run[0]], one.runs[run]))
    one.plan()
    assert set(one.gone) == set(order[: len(one.gone)])
    kept = [run for run in order if run not in one.gone]
    assert not one.gone or one.storage_usage.total <= watermark(QUOTAS) or not kept
