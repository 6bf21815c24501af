"""Connections that are kept from trial to trial."""

from pathlib import Path

import pytest

from tests.paho.broker import Mosquitto
from tests.paho.engine import Engine, flags

KEPT = {"keep_connections": True, "in_flight": None, "as_fast_as_possible": True, "messages": 50}


@pytest.mark.parametrize("role", ["Both", "Alone"])
@pytest.mark.parametrize("delivery", ["AtMostOnce", "AtLeastOnce", "ExactlyOnce"])
def test_only_the_first_trial_connects(broker: Mosquitto, tmp_path: Path, delivery: str, role: str) -> None:
    said = Engine(tmp_path, *flags(broker, **KEPT, role=role, delivery=delivery, warmup=1, trials="1-3")).said()
    exchanges = [trial["exchange"] for trial in said.trials]
    assert ["connectNanoseconds" in exchange for exchange in exchanges] == [True, False, False, False]
    assert ["setupPackets" in exchange for exchange in exchanges] == [True, False, False, False]
    counted = "acknowledged" if role == "Alone" else "received"
    for exchange in exchanges:
        assert exchange[counted] == exchange["sent"] == 100
        assert exchange["connections"] == (2 if role == "Alone" else 4)
        assert exchange["reconnects"] + exchange["errors"] + exchange["retried"] == 0
        assert exchange["wireSentBytes"] + exchange["wireReceivedBytes"] >= exchange["loadBytes"] > 0


def test_one_that_breaks_off_while_another_broker_is_measured_is_made_anew(
    own_broker: Mosquitto, broker: Mosquitto, tmp_path: Path
) -> None:
    second = [f"--url=mqtt://127.0.0.1:{broker.plain}", f"--password-file={broker.folder / 'password'}"]
    pace = {"in_flight": None, "messages_per_second": 100, "messages": None, "duration_seconds": 2, "pairs": 1}
    trials = {"keep_connections": True, "case": 1, "trials": "1:1,2:1,1:2", "delivery": "AtLeastOnce"}
    engine = Engine(tmp_path, *flags(own_broker, **pace, **trials), "--case=2", *second)
    for record in ("TrialStarted", "Trial", "TrialStarted"):
        engine.await_line(record)
    own_broker.restart()
    said = engine.said()
    exchanges = [trial["exchange"] for trial in said.trials]
    assert [exchange["reconnects"] for exchange in exchanges] == [0, 0, 2]
    assert [exchange["errorCauses"]["Disconnected"] for exchange in exchanges] == [0, 0, 2]
    assert all(exchange["received"] == exchange["sent"] for exchange in exchanges)
    assert "setupBytes" not in exchanges[2]


def test_a_trial_that_failed_keeps_nothing(own_broker: Mosquitto, tmp_path: Path) -> None:
    load = {"keep_connections": True, "in_flight": 1, "messages": None, "duration_seconds": 1, "trials": "1-4"}
    engine = Engine(tmp_path, *flags(own_broker, **load, delivery="AtLeastOnce", patience_milliseconds=1500))
    for record in ("TrialStarted", "Trial", "TrialStarted"):
        engine.await_line(record)
    own_broker.kill()
    engine.await_line("Trial")
    own_broker.start()
    good, failed, *later = engine.said().trials
    again = next(
        trial for trial in later if trial["outcome"] == "Completed"
    )  # the broker may be too late for the third
    assert (good["outcome"], failed["outcome"]) == ("Completed", "Failed")
    assert ["setupBytes" in trial["exchange"] for trial in (good, failed, again)] == [True, False, True]
