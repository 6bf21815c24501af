"""Before the first trial messages are exchanged for as long as round trips grow shorter."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from paho.mqtt.client import Client, MQTTMessage

from images.paho.src.tierbench_paho import warm
from images.paho.src.tierbench_paho.arguments import parse
from images.paho.src.tierbench_paho.pool import Pool
from tests.paho.broker import Mosquitto
from tests.paho.engine import Engine, flags
from tests.paho.test_faults import listening


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
    told: Iterator[float | None] = iter(medians)
    monkeypatch.setattr(warm, "_median", lambda *_: next(told))
    series, _ = parse(["broker", *flags(broker)])
    warm.warm(series.targets[0], Pool.of_kind("Random", 1024, 1))
    assert len(list(told)) == len(medians) - rounds


def test_all_pairs_take_part(broker: Mosquitto, tmp_path: Path) -> None:
    """Not in each round: a machine with other work can take the whole of a short one from all but the first."""
    pairs: set[str] = set()

    def note(_client: Client, _data: object, message: MQTTMessage) -> None:
        if message.topic.startswith("tierbench/test/twarm0-"):
            pairs.add(message.topic.rpartition("/")[2])

    with listening(broker, note, "+"):
        assert Engine(tmp_path, *flags(broker, pairs=3)).said().code == 0
    assert pairs == {"0", "1", "2"}
