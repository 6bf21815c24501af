"""Several brokers, each in its turn."""

from pathlib import Path
from typing import Any

import pytest

from tests.paho.broker import Mosquitto
from tests.paho.engine import Engine, Outcome, flags
from tests.paho.in_process import failure_of


def order(outcome: Outcome) -> list[tuple[int, int, bool]]:
    return [(trial["case"], trial["trial"], trial["warmup"]) for trial in outcome.trials]


def both(folder: Path, broker: Mosquitto, other: Mosquitto, *more: str, **changes: Any) -> Outcome:
    """Runs the engine with two targets: cases 3 and 7."""
    second = [f"--url=mqtt://127.0.0.1:{other.plain}", f"--password-file={other.folder / 'password'}"]
    given = flags(broker, messages=20, case=3, **changes)
    return Engine(folder, *given, "--case=7", *second, *more).outcome()


def test_trials_come_in_the_order_asked_for(broker: Mosquitto, own_broker: Mosquitto, tmp_path: Path) -> None:
    outcome = both(tmp_path, broker, own_broker, trials="7:1,3:1-2,7:2", warmup=1)
    warm = [(3, 1, True), (7, 1, True)]
    assert (outcome.code, order(outcome)) == (0, [*warm, (7, 1, False), (3, 1, False), (3, 2, False), (7, 2, False)])
    assert {trial["exchange"]["received"] for trial in outcome.trials} == {40}


def test_the_seal_names_the_case_that_ended_the_program(
    broker: Mosquitto, own_broker: Mosquitto, tmp_path: Path
) -> None:
    own_broker.kill()
    outcome = both(tmp_path, broker, own_broker, ready_milliseconds=500)
    assert outcome.seal["failure"].items() >= {"reason": "BrokerUnreachable", "case": 7}.items()


@pytest.mark.timing
def test_a_target_that_is_over_its_deadline_is_cut_off_and_named(
    broker: Mosquitto, own_broker: Mosquitto, tmp_path: Path
) -> None:
    slow = {"in_flight": None, "interval_milliseconds": 1000, "pairs": 1}
    limits = {"deadline_seconds": 3600, "trials": "7:1,3:1"}
    outcome = both(tmp_path, broker, own_broker, "--deadline-seconds=1", **slow, **limits)
    (cut,) = outcome.trials
    assert (cut["case"], cut["outcome"], cut["failure"]["reason"]) == (7, "Failed", "TimedOut")
    assert cut["durationNanoseconds"] >= 10**9
    assert outcome.seal["failure"].items() >= {"reason": "TimedOut", "case": 7}.items()


@pytest.mark.parametrize(
    ("more", "says"),
    [("--case=9", "for each"), ("--trials=5:1", "no --case 5"), ("--topic=a --topic=b --topic=c", "for each")],
)
def test_wrong_targets_are_a_reason(broker: Mosquitto, more: str, says: str) -> None:
    failure = failure_of(broker, "--case=7", f"--url=mqtt://127.0.0.1:{broker.plain}", *more.split(), case=3)
    assert failure.reason == "InvalidArguments"
    assert says in failure.message
