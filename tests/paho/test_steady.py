"""A load's warm-up is left out of its distributions, and a load that never settles is reported as unsteady."""

import math
import random

import pytest

from images.paho.src.tierbench_paho.histogram import index_of
from images.paho.src.tierbench_paho.steady import Series, truncation, warm_up
from tests.paho.broker import Mosquitto
from tests.paho.in_process import trial_of

MILLISECOND = 1_000_000


def series(number: int, slower: float, tau: float, seed: int = 1) -> Series:
    """Round trips of a millisecond with noise, at first slower by a factor that fades."""
    chance, made = random.Random(seed), Series()
    for message in range(number):
        mean = MILLISECOND * (1 + slower * math.exp(-message / tau))
        made.add(round(mean * chance.lognormvariate(0, 0.2)), MILLISECOND)
    return made


@pytest.mark.parametrize(
    ("number", "ramp", "slope", "expected"),
    [
        (199, 0, 0, (0, None, 0)),
        (1000, 100, 0, (100, True, 360)),
        (5000, 700, 0, (860, True, 2880)),
        (100_001, 9000, 0, (8960, True, 30_720)),
        (3000, 1400, 0, (1380, True, 4320)),
        (3000, 2000, 0, (0, False, 0)),
        (3000, 0, 300, (0, False, 0)),
    ],
)
def test_the_go_engine_says_the_same(
    number: int, ramp: int, slope: int, expected: tuple[int, bool | None, int]
) -> None:
    """What it says of these series: messages before the steady state, whether there is one, messages left out."""
    many = []
    for pair in range(3):
        made, state = Series(), pair + 1
        for message in range(number - 20 * pair):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            slower = 4 * MILLISECOND * (ramp - message) // ramp if message < ramp else 0
            made.add(MILLISECOND + (state >> 40) % 400_000 + message * slope + slower, MILLISECOND)
        many.append(made)
    before, steady = warm_up(many)
    assert (before, steady, sum(one.discard(before) for one in many)) == expected


def test_few_messages_give_no_verdict() -> None:
    assert warm_up([series(199, 0, 1)]) == (0, None)
    assert warm_up([series(200, 0, 1)])[1] is not None
    assert warm_up([series(1000, 0, 1), series(100, 0, 1)]) == (0, None)


@pytest.mark.parametrize("number", [1000, 20_000, 100_000])
def test_a_warm_up_is_found_and_left_out(number: int) -> None:
    many = [series(number, 4, number / 20, seed) for seed in range(3)]
    messages, steady = warm_up(many)
    assert steady is True
    assert number / 20 < messages < number / 2
    discarded = [one.discard(messages) for one in many]
    assert all(messages <= left_out <= messages + 8 * many[0].size for left_out in discarded)
    assert [one.times().round_trip.count for one in many] == [number - left_out for left_out in discarded]
    assert many[0].times().round_trip_actual.count == number - discarded[0]


def test_a_load_that_grows_slower_to_its_end_is_not_steady() -> None:
    made = Series()
    for message in range(10_000):
        made.add(MILLISECOND + message * 1000, MILLISECOND)
    assert warm_up([made]) == (0, False)


def test_one_stall_is_no_trend() -> None:
    made = Series()
    for message in range(2000):
        made.add(MILLISECOND * (500 if message == 1500 else 1 + message % 7), MILLISECOND)
    messages, steady = warm_up([made])
    assert steady is True
    assert messages < 1000


def test_a_series_is_bounded_and_loses_nothing() -> None:
    made = series(300_000, 0, 1)
    assert len(made.sums) < 256
    assert len(made.segments) <= 32
    assert made.times().round_trip.count == 300_000


def test_pairs_with_batches_of_other_sizes_go_together() -> None:
    long, short = series(5000, 3, 50), series(1200, 3, 50)
    assert long.size > short.size
    assert warm_up([long, short])[1] is True


def test_the_least_standard_error_decides() -> None:
    """By the formula of the paper, for each place, from the means on."""
    chance = random.Random(7)
    values = [round(100 * math.exp(-place / 10) + chance.gauss(0, 5)) for place in range(120)]

    def error(place: int) -> float:
        rest = values[place:]
        mean = sum(rest) / len(rest)
        return sum((value - mean) ** 2 for value in rest) / len(rest) ** 2

    assert truncation(values) == min(range(120 - 30 + 1), key=error)
    assert truncation([5] * 40) == 0


def test_the_series_is_of_logarithms() -> None:
    made = Series()
    for nanoseconds in (1, 2, 4, 8, 16):
        made.add(nanoseconds, nanoseconds)
    assert made.sums == [sum(index_of(nanoseconds) for nanoseconds in (1, 2, 4, 8, 16))]


def test_a_trial_says_what_it_left_out(broker: Mosquitto) -> None:
    trial = trial_of(broker, messages=1500, pairs=1)
    counts = trial["exchange"]
    assert counts["steady"] in (True, False)
    assert counts["discarded"] + trial["distributions"]["roundTrip"]["count"] == counts["received"] == 1500
    few = trial_of(broker, messages=100)["exchange"]
    assert (few["discarded"], "steady" in few) == (0, False)
