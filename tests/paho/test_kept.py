"""The engine keeps connections from trial to trial."""

from pathlib import Path

import pytest

from tests.paho.broker import Mosquitto
from tests.paho.engine import Engine, plan
from tests.paho.strike import strike


def test_only_the_first_trial_connects(broker: Mosquitto, tmp_path: Path) -> None:
    load = {"in_flight": None, "as_fast_as_possible": True, "messages": 50, "delivery": "ExactlyOnce"}
    outcome = Engine(tmp_path, plan(broker, **load, connections="Kept", warmup_trials=1, trials=3)).outcome()
    exchanges = [trial["exchange"] for trial in outcome.trials]
    assert ["connectNanoseconds" in exchange for exchange in exchanges] == [True, False, False, False]
    assert ["setupPackets" in exchange for exchange in exchanges] == [True, False, False, False]
    for exchange in exchanges:
        assert exchange["received"] == exchange["sent"] == 100
        assert exchange["connections"] == 4
        assert exchange["reconnects"] + exchange["errors"] + exchange["retried"] == 0
        assert exchange["wireSentBytes"] + exchange["wireReceivedBytes"] >= exchange["loadBytes"] > 0


@pytest.mark.timing
def test_connection_that_breaks_during_another_case_is_restored(
    own_broker: Mosquitto, broker: Mosquitto, tmp_path: Path
) -> None:
    second = {"case": 2, **broker.target}

    def start(load: int) -> Engine:
        pace = {"in_flight": None, "messages_per_second": 200, "messages": 100 * load, "pairs": 1}
        trials = {"connections": "Kept", "case": 1, "trials": [(1, 1), (2, 1), (1, 2)], "delivery": "AtLeastOnce"}
        return Engine(tmp_path, plan(own_broker, second, **pace, **trials))

    outcome = strike(start, lambda _: own_broker.restart(), trial=1, case=2)
    exchanges = [trial["exchange"] for trial in outcome.trials]
    assert [exchange["reconnects"] for exchange in exchanges] == [0, 0, 2]
    assert [exchange["errorCauses"].get("Disconnected", 0) for exchange in exchanges] == [0, 0, 2]
    assert all(exchange["received"] == exchange["sent"] for exchange in exchanges)
    assert "setupBytes" not in exchanges[2]


@pytest.mark.timing
def test_trial_after_a_failed_one_connects_again(own_broker: Mosquitto, tmp_path: Path) -> None:
    """The trial fails because, at QoS 0, a broken connection leaves open what the broker has received."""

    def start(load: int) -> Engine:
        pace = {"in_flight": None, "messages_per_second": 200, "messages": 100 * load}
        alone = {"role": "Alone", "delivery": "AtMostOnce", "delivery_timeout_milliseconds": 4000}
        return Engine(tmp_path, plan(own_broker, **pace, **alone, connections="Kept", trials=3))

    def kill_and_start(_: Engine) -> None:
        own_broker.kill()
        own_broker.start()

    outcome = strike(start, kill_and_start, trial=2, sending_to=own_broker)
    before, struck, after = outcome.trials
    assert struck["failure"]["reason"] == "Unconfirmed"
    assert struck["exchange"]["acknowledged"] == 0
    assert (before["outcome"], after["outcome"]) == ("Completed", "Completed")
    assert ["setupBytes" in trial["exchange"] for trial in outcome.trials] == [True, False, True]
