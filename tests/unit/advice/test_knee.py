"""From which level on nothing more is gained."""

from collections.abc import Mapping

import pytest

from tests.unit.advice.test_alternatives import results
from tests.unit.advice.test_effects import RATE, on_nodes
from tierbench.advice.factor_summary import costs, knee_statement

TIME = "durationNanoseconds"


def knee(times: Mapping[str, float], *nodes: str) -> list[str]:
    """Of these times by the number of pairs, on each of these nodes."""
    found = results(["pairs"], {("cloud", "1M", pairs): time for pairs, time in times.items()})
    return [knee_statement(each) for each in costs(on_nodes(found, *nodes), RATE).knees]


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ((1.0, 0.5, 0.5, 0.5), "from pairs 2 on nothing more of throughput is gained."),
        ((1.0, 0.5, 0.495, 0.49), "from pairs 2 on nothing more of throughput is gained."),
        ((1.0, 0.97, 0.94, 0.91), "from pairs 4 on nothing more of throughput is gained."),
        ((1.0, 0.5, 0.7, 0.9), "throughput is highest with pairs 2, and falls beyond."),
        ((1.0, 0.5, 0.25, 0.12), "throughput grows to the last level measured, pairs 8."),
        ((1.0, 1.0, 1.0, 1.0), "from pairs 1 on nothing more of throughput is gained."),
    ],
)
def test_the_knee_is_where_no_later_level_is_better_by_the_margin(times: tuple[float, ...], words: str) -> None:
    """Small gains add up: each of three may lie within the margin, and all together beyond it."""
    assert knee(dict(zip("1248", times, strict=True)), "a", "b", "c") == [words]


def test_one_node_shows_no_more_and_does_not_tell_that_there_is_none() -> None:
    assert knee({"1": 1.0, "2": 0.5, "4": 0.5}, "a") == [
        "On the nodes measured, beyond pairs 2 no more of throughput is shown to be gained."
    ]


def test_two_levels_and_times_have_none() -> None:
    assert knee({"1": 1.0, "2": 0.5}, "a", "b") == []
    found = results(["pairs"], {("cloud", "1M", pairs): 1.0 for pairs in "124"})
    assert costs(found, TIME).knees == ()


def test_it_is_said_by_what_it_depends_on() -> None:
    times = {
        ("cloud", "1M", pairs, broker): time
        for broker, course in (("mosquitto", (1.0, 0.5, 0.5)), ("kafka", (1.0, 0.5, 0.25)))
        for pairs, time in zip("124", course, strict=True)
    }
    (found,) = costs(on_nodes(results(["pairs", "broker"], times), "a", "b", "c"), RATE).knees
    assert knee_statement(found) == (
        "from pairs 2 on nothing more of throughput is gained with mosquitto; "
        "throughput grows to the last level measured, pairs 4 with kafka."
    )
