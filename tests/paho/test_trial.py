"""What a trial's load took and what it cost are of one window."""

from pathlib import Path

from tests.paho.barrier import serving
from tests.paho.broker import Mosquitto
from tests.paho.engine import Engine, plan, trial_of


def test_the_agent_looks_when_all_are_connected_and_until_all_have_drained(broker: Mosquitto, tmp_path: Path) -> None:
    with serving(tmp_path) as (named, agent):
        shared = {**named, "barrier": "b", "parts": 2}
        parts = [Engine(tmp_path, plan(broker, **shared, part=part, first_pair=2 * part)) for part in range(2)]
        assert [part.outcome().code for part in parts] == [0, 0]
    asked = agent.asked
    both = {part: [what for what, one in asked if one in (part, None)] for part in range(2)}
    assert both[0] == ["b-t1", "/v1/begin", "b-t1-begin", "b-t1-end", "/v1/end"]
    assert asked.index(("b-t1", 1)) < asked.index(("/v1/begin", None))
    assert asked.index(("b-t1-end", 1)) < asked.index(("/v1/end", None))


def test_what_was_due_and_not_sent_is_counted(broker: Mosquitto) -> None:
    """More than any Python sends: 200 ns between messages."""
    load = {"in_flight": None, "messages_per_second": 5_000_000, "messages": None, "duration_seconds": 1}
    counts = trial_of(broker, **load, max_in_flight=2, pairs=2)["exchange"]
    assert counts["sent"] + counts["unsent"] == 2 * 5_000_000
    assert counts["lateSends"] > 0


def test_the_record_says_what_was_tuned_and_how_the_computer_was(broker: Mosquitto) -> None:
    client = trial_of(broker, tuning="Light")["client"]
    assert client["tuning"] == "Light"
    assert client["computer"]["interface"] == "lo"
    assert client["computer"]["mtuBytes"] > 0
    assert client["computer"]["congestionControl"]
    assert trial_of(broker)["client"]["tuning"] == "Heavy"
