"""The size of results and records: results stay small, however many trials there are."""

import json
from itertools import cycle, islice
from typing import Any

import pytest

from tests.operator.recorded import recorded
from tests.unit.results.preflights import node_network
from tests.unit.results.trials import NOW
from tierbench.api.contract import TrialLine
from tierbench.api.record import RecordStatus
from tierbench.api.result import ResultSpec
from tierbench.results.aggregate import add_trials, conclude
from tierbench.results.client_output import PartOutput, merge_parts

KIB = 1024
FILES, BROKERS = 4 * KIB, 10 * KIB
MOST_TRIALS = 35


def _size(body: dict[str, Any]) -> int:
    return len(json.dumps(body, separators=(",", ":")))


def _lines(name: str, trials: int) -> tuple[TrialLine, ...]:
    parts = [
        [
            TrialLine.model_validate({**line, "trial": number, "warmup": False})
            for number, line in enumerate(islice(cycle(client.trials), trials), start=1)
        ]
        for client in recorded(name).clients
    ]
    return merge_parts([PartOutput(tuple(lines)) for lines in parts])


def _sizes(name: str, trials: int) -> tuple[int, int]:
    """Returns the size of a result without managed fields, and that of its record."""
    raw = recorded(name).results[0]
    body = {**raw["spec"], "trials": trials, "networks": [node_network().to_json()]}
    spec = ResultSpec.model_validate(body)
    record = add_trials(spec, RecordStatus(), _lines(name, trials), 1)
    assert len(record.trials) == trials
    status = conclude(spec, record, NOW, None)
    metadata = {key: value for key, value in raw["metadata"].items() if key != "managedFields"}
    head = {"apiVersion": raw["apiVersion"], "kind": raw["kind"], "metadata": metadata}
    return _size({**head, "spec": spec.to_json(), "status": status.to_json()}), _size(record.to_json())


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("files", FILES),
        ("brokers", BROKERS),
        ("mosquitto", BROKERS),
        ("kafka", BROKERS),
        ("tcp", BROKERS),
        ("udp", BROKERS),
    ],
)
def test_result_is_small_for_any_number_of_trials(name: str, most: int) -> None:
    ten, _ = _sizes(name, 10)
    all_trials, record = _sizes(name, MOST_TRIALS)
    assert all_trials <= most
    assert abs(all_trials - ten) < most / 20
    assert record <= 96 * KIB
