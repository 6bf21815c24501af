"""The duration and the cost of a trial's load cover the same time."""

from pathlib import Path

from tests.paho.barrier import serving
from tests.paho.broker import Mosquitto
from tests.paho.engine import Engine, plan, trial_of


def test_agent_samples_after_all_parts_connect_and_until_all_have_drained(broker: Mosquitto, tmp_path: Path) -> None:
    with serving(tmp_path) as (agent_field, agent):
        shared = {**agent_field, "barrier": "b", "parts": 2}
        parts = [Engine(tmp_path, plan(broker, **shared, part=part, first_pair=2 * part)) for part in range(2)]
        assert [part.outcome().code for part in parts] == [0, 0]
    requests = agent.requests
    both = {part: [request for request, one in requests if one in (part, None)] for part in range(2)}
    assert both[0] == ["b-t1", "/v1/begin", "b-t1-begin", "b-t1-end", "/v1/end"]
    assert requests.index(("b-t1", 1)) < requests.index(("/v1/begin", None))
    assert requests.index(("b-t1-end", 1)) < requests.index(("/v1/end", None))


def test_unsent_messages_are_counted(broker: Mosquitto) -> None:
    """No Python program sends a message every 200 ns."""
    load = {"in_flight": None, "messages_per_second": 5_000_000, "messages": None, "duration_seconds": 1}
    counts = trial_of(broker, **load, max_in_flight=2, pairs=2)["exchange"]
    assert counts["sent"] + counts["unsent"] == 2 * 5_000_000
    assert counts["lateSends"] > 0


def test_trial_reports_the_tuning_and_the_computer(broker: Mosquitto) -> None:
    client = trial_of(broker, tuning="Light")["client"]
    assert client["tuning"] == "Light"
    assert client["computer"]["interface"] == "lo"
    assert client["computer"]["mtuBytes"] > 0
    assert client["computer"]["congestionControl"]
    assert trial_of(broker)["client"]["tuning"] == "Heavy"
