"""What a trial's load took and what it cost are of one window."""

from pathlib import Path
from time import perf_counter_ns
from types import ModuleType

import pytest

from images.paho.src.tierbench_paho import connection, kept, pairs, publisher, trial, watch
from images.paho.src.tierbench_paho.envelope import Codec
from tests.paho.barrier import serving
from tests.paho.broker import Mosquitto
from tests.paho.engine import Engine, plan
from tests.paho.in_process import trial_of

HOUR = 3600 * 10**9
CONNECTING, LOAD, CLOSING = 1, 10, 100


def test_cpu_is_that_of_the_load(broker: Mosquitto, monkeypatch: pytest.MonkeyPatch) -> None:
    spent = 0

    def costing(module: ModuleType, name: str, cost: int) -> None:
        work = getattr(module, name)

        def done(*arguments: object) -> object:
            nonlocal spent
            spent += cost
            return work(*arguments)

        monkeypatch.setattr(module, name, done)

    monkeypatch.setattr(watch, "_cpu_nanoseconds", lambda: spent)
    costing(kept, "open_all", CONNECTING)
    costing(trial, "run_load", LOAD)
    costing(kept, "close_all", CLOSING)
    assert trial_of(broker)["client"]["cpuNanoseconds"] == LOAD


def test_a_session_does_not_wait_for_others(broker: Mosquitto, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = 0

    def meet(*_: object) -> None:
        nonlocal waited
        waited += HOUR

    for module in (trial, watch, pairs, publisher, connection):
        monkeypatch.setattr(module, "perf_counter_ns", lambda: perf_counter_ns() + waited)
    monkeypatch.setattr(trial, "_meet", meet)
    found = trial_of(broker)
    assert waited > HOUR
    assert found["durationNanoseconds"] < found["exchange"]["sessionNanoseconds"] < HOUR


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


def test_a_message_begins_before_it_is_encoded(broker: Mosquitto, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = 0

    def encode(_codec: object, plain: bytes) -> bytes:
        nonlocal encoded
        encoded += HOUR
        return plain

    for module in (trial, watch, pairs, publisher, connection):
        monkeypatch.setattr(module, "perf_counter_ns", lambda: perf_counter_ns() + encoded)
    monkeypatch.setattr(Codec, "encode", encode)
    spread = trial_of(broker, in_flight=1, pairs=1, messages=20)["distributions"]["roundTrip"]
    assert spread["sumNanoseconds"] > 20 * HOUR


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
