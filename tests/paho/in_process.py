"""The engine without a process of its own: for what neither its exit code nor its seal is asked about."""

from typing import Any

import pytest

from images.paho.src.tierbench_paho.arguments import parse
from images.paho.src.tierbench_paho.contract import FailureError, Json
from images.paho.src.tierbench_paho.series import run
from tests.contract.schema import CONTRACT
from tests.paho.broker import Mosquitto
from tests.paho.engine import flags


class _Report:
    def __init__(self) -> None:
        self.trials: list[dict[str, Any]] = []

    def started(self, case: int, trial: int, warmup: bool) -> None:
        pass

    def ended(self, trial: Json) -> None:
        self.trials.append(trial)


def trial_of(broker: Mosquitto, **changes: object) -> dict[str, Any]:
    """The only trial of a command line with changed flags, held against the contract."""
    series, _ = parse(["broker", *flags(broker, **changes)])
    report = _Report()
    run(series, report)
    (trial,) = report.trials
    CONTRACT.validate({"contract": 1, "record": "Trial", **trial})
    return trial


def failure_of(broker: Mosquitto, *more: str, **changes: object) -> FailureError:
    """What ends the engine early, before its first trial."""
    report = _Report()
    with pytest.raises(FailureError) as raised:
        series, _ = parse(["broker", *flags(broker, **changes), *more])
        run(series, report)
    assert report.trials == []
    return raised.value
