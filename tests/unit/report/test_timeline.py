"""Charts of TCP over time: a line per sender, and its congestion states."""

from xml.etree import ElementTree

from tests.unit.kinds.network.test_clients import NODES
from tests.unit.kinds.network.trials import spec, trace, traced
from tests.unit.results.trials import NOW
from tierbench.advice.tables import runs
from tierbench.api.model import Metadata
from tierbench.api.record import RecordStatus
from tierbench.api.result import BenchmarkResult
from tierbench.report.page import render
from tierbench.report.timeline import Drawing, Timeline, timelines
from tierbench.results.aggregate import add_trials, conclude
from tierbench.results.client_output import PartOutput, add_traces, merge_parts

METADATA = Metadata(name="nb-demo-r1-c001", namespace="default")


def case(clients: int = 1, **columns: list[int]) -> BenchmarkResult:
    """Returns a result of two trials, with its record."""
    parts = [PartOutput([traced(1, trace(**columns)), traced(2, trace(**columns))]) for _ in range(clients)]
    lines = merge_parts(parts)
    wanted = spec(2).model_copy(update={"clients": NODES[:clients] if clients > 1 else ()})
    record = add_traces(add_trials(wanted, RecordStatus(), lines, 1), lines)
    status = conclude(wanted, record, NOW, None)
    return BenchmarkResult(metadata=METADATA, spec=wanted, status=status).with_record(record)


def drawn(result: BenchmarkResult) -> tuple[Timeline, ...]:
    (run,) = runs([result])
    return timelines(run, "t")


def test_first_trial_has_window_round_trip_and_state() -> None:
    (found,) = drawn(case())
    assert found.heading.endswith("cloud to raspberry-pi-4, trial 1")
    assert [line.name for line in found.lines] == ["p1"]
    assert [drawing.title for drawing in found.drawings] == [
        "Congestion window",
        "Smoothed round trip",
        "Congestion state",
    ]
    for drawing in found.drawings:
        ElementTree.fromstring(drawing.svg)


def test_states_are_periods() -> None:
    (found,) = drawn(case())
    titles = [title.text for title in ElementTree.fromstring(found.drawings[2].svg).iter("title")]
    assert titles[1:] == ["p1: Open, 0.1 to 0.3 s", "p1: Recovery, 0.3 to 0.4 s", "p1: Open, 0.4 to 0.4 s"]


def lines_of(drawing: Drawing) -> list[tuple[str, str]]:
    """Returns the CSS class and the name of each line."""
    found = ElementTree.fromstring(drawing.svg).iter("path")
    return [(one.get("class", ""), one.findtext("title", "")) for one in found if "line" in one.get("class", "")]


def test_slow_start_threshold_is_drawn_while_it_is_set() -> None:
    (found,) = drawn(case(slowStartThresholdBytes=[0, 43440, 0, 28960]))
    named = ("line threshold", "p1, slow-start threshold")
    assert lines_of(found.drawings[0]) == [("line", "p1"), named, named]
    assert lines_of(found.drawings[1]) == [("line", "p1")]
    (never,) = drawn(case(slowStartThresholdBytes=[0, 0, 0, 0]))
    assert lines_of(never.drawings[0]) == [("line", "p1")]


def test_each_client_has_a_line_with_its_name() -> None:
    (found,) = drawn(case(3))
    assert [line.name for line in found.lines] == ["pi-1", "jetson-1", "phone-1"]
    paths = [path for path in ElementTree.fromstring(found.drawings[0].svg).iter("path") if path.get("class") == "line"]
    assert len(paths) == 3


def test_page_has_the_section_only_with_traces() -> None:
    result = case()
    assert "TCP over time" in render(runs([result]), {})
    untraced = result.with_record(result.recorded.model_copy(update={"traces": ()}))
    assert "TCP over time" not in render(runs([untraced]), {})


def test_heading_reports_a_damaged_trace() -> None:
    result = case()
    damaged = result.recorded.traces[0].model_copy(update={"data": "####"})
    (found,) = drawn(result.with_record(RecordStatus(traces=(damaged,))))
    assert "trial 1" in found.heading
    assert found.drawings == ()
