"""Publishers without subscribers, and pacing that waits for acknowledgements."""

from collections.abc import Callable

import pytest

from tests.paho.broker import Mosquitto
from tests.paho.engine import Outcome, failure_of, trial_of

Run = Callable[..., Outcome]
SUBSCRIBER_COUNTS = {"received", "lost", "acknowledgedLost", "duplicated", "outOfOrder", "receivedBytes"}
LOADS: dict[str, dict[str, object]] = {
    "AtMostOnce": {"as_fast_as_possible": True, "connections": "Kept"},
    "AtLeastOnce": {"unacknowledged": 1},
    "ExactlyOnce": {"unacknowledged": 4, "connections": "Kept"},
}


@pytest.mark.parametrize("delivery", LOADS)
def test_trial_without_subscribers_counts_only_what_the_broker_received(run: Run, delivery: str) -> None:
    load = LOADS[delivery]
    outcome = run(role="Alone", delivery=delivery, in_flight=None, messages=300, trials=2, **load)
    assert (outcome.code, outcome.reason, len(outcome.trials)) == (0, None, 2)
    connects = [True, "connections" not in load]
    assert ["connectNanoseconds" in trial["exchange"] for trial in outcome.trials] == connects
    assert ["setupPackets" in trial["exchange"] for trial in outcome.trials] == connects
    for trial in outcome.trials:
        counts, answered = trial["exchange"], delivery != "AtMostOnce"
        assert not SUBSCRIBER_COUNTS & set(counts)
        assert (counts["sent"], counts["acknowledged"], counts["connections"]) == (600, 600, 2)
        assert counts["reconnects"] + counts["errors"] + counts["retried"] == 0
        assert counts["acknowledgedBytes"] == counts["sentBytes"] == 600 * 1024
        assert set(trial["distributions"]) == ({"acknowledge"} if answered else set())
        if answered:
            assert trial["distributions"]["acknowledge"]["count"] + counts["discarded"] == 600
        assert 0 < trial["durationNanoseconds"] < counts["sessionNanoseconds"]
        assert counts["wireSentBytes"] > 600 * 1024 > counts["wireReceivedBytes"]
        assert counts["wireSentBytes"] + counts["wireReceivedBytes"] >= counts["loadBytes"] > 0


@pytest.mark.parametrize("delivery", ["AtLeastOnce", "ExactlyOnce"])
def test_pacing_by_acknowledgements_loses_no_message(broker: Mosquitto, delivery: str) -> None:
    counts = trial_of(broker, delivery=delivery, in_flight=None, unacknowledged=2)["exchange"]
    assert (counts["received"], counts["acknowledged"], counts["errors"]) == (400, 400, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"role": "Alone", "in_flight": 1}, "write Acknowledged"),
        ({"in_flight": None, "unacknowledged": 1, "delivery": "AtMostOnce"}, "write AsFastAsPossible"),
    ],
)
def test_impossible_pacing_is_refused(broker: Mosquitto, changes: dict[str, object], message: str) -> None:
    failure = failure_of(broker, **changes)
    assert failure["reason"] == "InvalidArguments"
    assert message in failure["message"]
