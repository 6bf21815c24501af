"""A strike outside a trial does not count."""

from pathlib import Path
from typing import Any

import pytest

from tests.paho import strike as module
from tests.paho.broker import Mosquitto
from tests.paho.engine import Engine, Outcome, plan
from tests.paho.strike import LOADS, NotStruck, strike


def test_a_trial_that_is_over_is_not_struck(broker: Mosquitto, tmp_path: Path) -> None:
    loads: list[int] = []
    struck: list[Engine] = []

    def start(load: int) -> Engine:
        loads.append(load)
        engine = Engine(tmp_path, plan(broker, messages=load))
        engine.outcome()
        return engine

    with pytest.raises(NotStruck):
        strike(start, struck.append, sending_to=broker)
    assert (loads, struck) == (list(LOADS), [])


BEGUN = 1_795_737_600 * 10**9


@pytest.mark.parametrize(
    ("changes", "after", "within"),
    [
        ({}, -1000, False),
        ({}, 1_000_000, True),
        ({}, 2_001_000, False),
        ({"outcome": "Failed"}, 2_001_000, True),
        ({"trial": 2}, 1_000_000, True),
    ],
)
def test_clock_of_the_engine_decides_whether_a_strike_counts(changes: dict[str, Any], after: int, within: bool) -> None:
    trial = {"trial": 1, "warmup": False, "outcome": "Completed", "startTime": "2026-11-27T00:00:00.000000000Z"}
    outcome = Outcome(0, "", [{**trial, "exchange": {"sessionNanoseconds": 2_000_000}, **changes}], {})
    assert module._falls_within(BEGUN + after, outcome, 1, 0) is within
