"""Publishers that nobody subscribes to, and a pace that waits for acknowledgements."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from images.paho.src.tierbench_paho.ledger import Ledger
from tests.paho.broker import Mosquitto
from tests.paho.engine import Engine, Said, flags

Run = Callable[..., Said]
OF_SUBSCRIBERS = {"received", "lost", "acknowledgedLost", "duplicated", "outOfOrder", "receivedBytes"}
PACES: dict[str, dict[str, object]] = {
    "AtMostOnce": {"as_fast_as_possible": True},
    "AtLeastOnce": {"unacknowledged": 1},
    "ExactlyOnce": {"unacknowledged": 4},
}


@pytest.mark.parametrize("delivery", PACES)
def test_what_the_broker_took_is_counted_and_nothing_else(run: Run, delivery: str) -> None:
    said = run(role="Alone", delivery=delivery, in_flight=None, messages=300, trials="1-2", **PACES[delivery])
    assert (said.code, said.reason, len(said.trials)) == (0, None, 2)
    for trial in said.trials:
        counts, answered = trial["exchange"], delivery != "AtMostOnce"
        assert not OF_SUBSCRIBERS & set(counts)
        assert (counts["sent"], counts["acknowledged"], counts["errors"]) == (600, 600, 0)
        assert counts["acknowledgedBytes"] == counts["sentBytes"] == 600 * 1024
        assert set(trial["distributions"]) == ({"acknowledge"} if answered else set())
        if answered:
            assert trial["distributions"]["acknowledge"]["count"] + counts["discarded"] == 600
        assert 0 < trial["durationNanoseconds"] < counts["sessionNanoseconds"]
        assert counts["wireSentBytes"] > 600 * 1024 > counts["wireReceivedBytes"]


def test_a_connection_that_broke_off_leaves_it_unknown_what_was_taken(own_broker: Mosquitto, tmp_path: Path) -> None:
    load: dict[str, object] = {"in_flight": None, "messages_per_second": 500, "messages": None, "duration_seconds": 4}
    engine = Engine(
        tmp_path, *flags(own_broker, role="Alone", delivery="AtMostOnce", patience_milliseconds=5000, **load)
    )
    engine.await_line("TrialStarted")
    time.sleep(1)
    own_broker.restart()
    (trial,) = engine.said().trials
    assert trial["failure"]["reason"] == "Unconfirmed"
    assert trial["exchange"]["acknowledged"] == 0


@pytest.mark.parametrize("delivery", ["AtLeastOnce", "ExactlyOnce"])
def test_a_pace_of_acknowledgements_loses_nothing(run: Run, delivery: str) -> None:
    counts = run(delivery=delivery, in_flight=None, unacknowledged=2).trials[0]["exchange"]
    assert (counts["received"], counts["acknowledged"], counts["errors"]) == (400, 400, 0)


def test_an_acknowledgement_that_was_given_up_frees_nothing_more() -> None:
    ledger = Ledger()
    message = ledger.depart(0, 0)
    assert not ledger.await_acknowledgement(message, 1, 10)
    assert ledger.give_up(1) == (1, 1)
    assert ledger.give_up(2) == (0, 0)
    assert not ledger.acknowledged_by_broker(1, 3)
    assert ledger.acknowledged == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"role": "Alone", "in_flight": 1}, "--unacknowledged"),
        ({"in_flight": None, "unacknowledged": 1, "delivery": "AtMostOnce"}, "--as-fast-as-possible"),
    ],
)
def test_a_pace_that_nothing_can_keep_is_refused(run: Run, changes: dict[str, object], says: str) -> None:
    said = run(**changes)
    assert said.reason == "InvalidArguments"
    assert says in said.seal["failure"]["message"]
