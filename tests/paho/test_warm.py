"""Before the first trial messages are exchanged for as long as round trips grow shorter."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from images.paho.src.tierbench_paho import warm
from images.paho.src.tierbench_paho.load import run_load
from images.paho.src.tierbench_paho.options import Load, Options
from images.paho.src.tierbench_paho.pairs import Pair
from images.paho.src.tierbench_paho.pool import Pool
from images.paho.src.tierbench_paho.series import run
from tests.paho.broker import Mosquitto
from tests.paho.engine import plan
from tests.paho.in_process import series_of


@pytest.mark.parametrize(
    ("medians", "rounds"),
    [
        ([100, 50, 49, 48, 47.6, 1], 5),
        ([100, 50, 49, 48, 40, 40, 40, 40, 1], 8),
        ([100, None, 1], 2),
        ([2.0**-number for number in range(30)], 20),
    ],
)
def test_it_ends_when_there_is_no_gain(
    broker: Mosquitto, monkeypatch: pytest.MonkeyPatch, medians: list[float | None], rounds: int
) -> None:
    measured: Iterator[float | None] = iter(medians)
    monkeypatch.setattr(warm, "_median", lambda *_: next(measured))
    series = series_of(plan(broker, warm_rounds=None))
    warm.warm(series.targets[0], Pool.of_kind("Random", 1024, 1))
    assert len(list(measured)) == len(medians) - rounds


@pytest.mark.parametrize(("asked", "rounds"), [(None, 20), (3, 3), (0, 0)])
def test_rounds_come_before_the_first_trial(
    broker: Mosquitto, monkeypatch: pytest.MonkeyPatch, asked: int | None, rounds: int
) -> None:
    happened: list[str] = []

    class Report:
        def started(self, _case: int, trial: int, _warmup: bool) -> None:
            happened.append(f"trial {trial}")

        def ended(self, _trial: dict[str, Any]) -> None:
            pass

    def median(_options: Options, name: str, _pool: Pool) -> float:
        happened.append(name)
        return 2.0 ** -len(happened)

    monkeypatch.setattr(warm, "_median", median)
    series = series_of(plan(broker, warm_rounds=asked, trials=2))
    run(series, Report())
    assert happened == [*(f"warm0-{number}" for number in range(rounds)), "trial 1", "trial 2"]


def test_all_pairs_take_part(broker: Mosquitto, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds are of 20 messages here: in a quarter of a second a busy machine may run only one of the pairs."""
    received: list[list[int]] = []

    def load(pairs: Sequence[Pair], *arguments: Any) -> object:
        failure = run_load(pairs, *arguments)
        received.append([pair.ledger.received for pair in pairs])
        return failure

    monkeypatch.setattr(warm, "_ROUND", Load(20, None))
    monkeypatch.setattr(warm, "run_load", load)
    series = series_of(plan(broker, pairs=3, warm_rounds=2))
    warm.warm(series.targets[0], Pool.of_kind("Random", 1024, 1))
    assert received == [[20, 20, 20]] * 2
