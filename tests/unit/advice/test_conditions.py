"""Results that were measured under other conditions are not alike: they are never pooled, nor compared."""

from collections.abc import Sequence

from tests.unit.advice.test_advise import ask, verdicts
from tests.unit.report.published import LEVELS, measured
from tierbench.advice.comparison import compare_runs
from tierbench.advice.tables import Matrix
from tierbench.advice.workload import items, sort_results
from tierbench.api.placement_advice import WorkloadProfile
from tierbench.api.result import BenchmarkResult
from tierbench.results.conditions import circumstances

CLOSED = {"pacing": "ClosedLoop", "inFlight": "1", "load": "100 messages"}
FULL = {"pacing": "AsFastAsPossible", "load": "100 messages"}
RATE = {"pacing": "OpenLoop", "messagesPerSecond": "500", "load": "100 messages"}
SLOW, QUICK = (2.0, 2.02, 1.98), (1.0, 1.01, 0.99)


def paced(
    server: str, conditions: dict[str, str], seconds: Sequence[float], case: int = 1, name: str = "files"
) -> BenchmarkResult:
    return measured(server, "1M", [(each, 0) for each in seconds], case, name=name, conditions=conditions)


def test_a_result_is_about_its_conditions_and_levels() -> None:
    assert circumstances(paced("cloud", RATE, SLOW)) == {"fileSize": "1M", **LEVELS, **RATE}


def test_results_at_another_pace_are_not_pooled() -> None:
    every = [paced("cloud", CLOSED, SLOW), paced("cloud", FULL, QUICK, name="full")]
    found = sort_results(every, items(None))
    assert [len(found.cell("cloud", each).results) for each in found.combinations] == [1, 1]
    cells = [cell for table in Matrix(tuple(every)).tables for cell in table.cells.values()]
    assert [len(cell.results) for cell in cells] == [1, 1]


def test_classes_measured_at_other_paces_are_not_compared() -> None:
    every = [paced("cloud", CLOSED, SLOW), paced("jetson", FULL, QUICK, case=2)]
    assert {name for name, _ in verdicts(ask(every, workload={"fileSizes": [{"size": "1M"}]})).values()} == {"NoData"}


def test_a_rate_that_is_asked_for_is_that_of_the_results() -> None:
    every = [
        paced(server, conditions, seconds, case, name)
        for case, (server, seconds) in enumerate((("cloud", QUICK), ("jetson", SLOW)), start=1)
        for name, conditions in (("rate", RATE), ("full", FULL))
    ]
    wanted = items(WorkloadProfile(messages_per_second=500))
    used = sort_results(every, wanted).used("cloud")
    assert [result.spec.conditions["pacing"] for result in used] == ["OpenLoop"]
    other = ask(every, workload={"messagesPerSecond": 900})
    assert set(verdicts(other).values()) == {("NoData", "NotMeasured")}
    assert all("messages per second 900" in item.message for item in other.ranking)


def test_runs_under_other_conditions_have_nothing_in_common() -> None:
    assert compare_runs([paced("cloud", CLOSED, SLOW)], [paced("cloud", FULL, QUICK)], "durationNanoseconds") == ()
    assert compare_runs([paced("cloud", CLOSED, SLOW)], [paced("cloud", CLOSED, QUICK)], "durationNanoseconds")


def test_one_node_of_the_clients_is_said() -> None:
    both = [paced("cloud", CLOSED, QUICK), paced("jetson", CLOSED, SLOW, case=2)]
    (note,) = (each for each in ask(both).caveats if each.reason == "OneClientNode")
    assert note.message == "All was measured from user-1: one node stands for user, the clients."
    elsewhere = {"client": both[1].spec.client.model_copy(update={"node": "user-2"})}
    apart = [both[0], both[1].model_copy(update={"spec": both[1].spec.model_copy(update=elsewhere)})]
    assert "OneClientNode" not in {each.reason for each in ask(apart).caveats}
