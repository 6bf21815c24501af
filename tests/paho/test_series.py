"""A client measures several brokers in turn."""

from pathlib import Path
from typing import Any

import pytest

from tests.paho.broker import Mosquitto
from tests.paho.engine import Engine, Outcome, failure_of, plan


def order(outcome: Outcome) -> list[tuple[int, int, bool]]:
    return [(trial["case"], trial["trial"], trial["warmup"]) for trial in outcome.trials]


def run_both(folder: Path, broker: Mosquitto, other: Mosquitto, **changes: Any) -> Outcome:
    """Runs the engine with two targets: cases 3 and 7. The second has a deadline."""
    second = {"case": 7, "deadlineSeconds": changes.pop("deadline", 3600), **other.target}
    return Engine(folder, plan(broker, second, messages=20, case=3, **changes)).outcome()


def test_trials_follow_the_schedule(broker: Mosquitto, own_broker: Mosquitto, tmp_path: Path) -> None:
    outcome = run_both(tmp_path, broker, own_broker, trials=[(7, 1), (3, 1), (3, 2), (7, 2)], warmup_trials=1)
    warm = [(3, 1, True), (7, 1, True)]
    assert (outcome.code, order(outcome)) == (0, [*warm, (7, 1, False), (3, 1, False), (3, 2, False), (7, 2, False)])
    assert {trial["exchange"]["received"] for trial in outcome.trials} == {40}


def test_seal_names_the_case_that_ended_the_client(broker: Mosquitto, own_broker: Mosquitto, tmp_path: Path) -> None:
    own_broker.kill()
    outcome = run_both(tmp_path, broker, own_broker, ready_milliseconds=500)
    assert outcome.seal["failure"].items() >= {"reason": "BrokerUnreachable", "case": 7}.items()


@pytest.mark.timing
def test_deadline_of_a_target_ends_its_trial_and_the_client(
    broker: Mosquitto, own_broker: Mosquitto, tmp_path: Path
) -> None:
    slow = {"in_flight": None, "interval_milliseconds": 1000, "pairs": 1}
    outcome = run_both(tmp_path, broker, own_broker, deadline=1, trials=[(7, 1), (3, 1)], **slow)
    (cut,) = outcome.trials
    assert (cut["case"], cut["outcome"], cut["failure"]["reason"]) == (7, "Failed", "TimedOut")
    assert cut["durationNanoseconds"] >= 10**9
    assert outcome.seal["failure"].items() >= {"reason": "TimedOut", "case": 7}.items()


@pytest.mark.parametrize(
    ("case", "trials", "message"), [(3, 1, "another number"), (7, [(5, 1)], "no target has this case")]
)
def test_wrong_targets_are_refused(broker: Mosquitto, case: int, trials: Any, message: str) -> None:
    failure = failure_of(broker, {"case": case}, case=3, trials=trials)
    assert failure["reason"] == "InvalidArguments"
    assert message in failure["message"]
