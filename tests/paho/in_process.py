"""The engine without a process of its own: for what neither its exit code nor its seal is asked about."""

import json
from typing import Any

import pytest

from images.paho.src.tierbench_paho.arguments import parse
from images.paho.src.tierbench_paho.contract import FailureError, Json
from images.paho.src.tierbench_paho.series import Series, run
from tests.contract.schema import CONTRACT
from tests.paho.broker import Mosquitto
from tests.paho.engine import plan
from tests.plans import Plan


class _Report:
    def __init__(self) -> None:
        self.trials: list[dict[str, Any]] = []

    def started(self, case: int, trial: int, warmup: bool) -> None:
        pass

    def ended(self, trial: Json) -> None:
        self.trials.append(trial)


def trial_of(broker: Mosquitto, **changes: object) -> dict[str, Any]:
    """The only trial of a changed plan, held against the contract."""
    series = series_of(plan(broker, **changes))
    report = _Report()
    run(series, report)
    (trial,) = report.trials
    CONTRACT.validate({"contract": 1, "record": "Trial", **trial})
    return trial


def series_of(given: Plan) -> Series:
    """The trials of a plan."""
    series, _ = parse(["measure", f"--plan={json.dumps(given)}"])
    return series


def failure_of(broker: Mosquitto, *others: Plan, **changes: object) -> FailureError:
    """What ends the engine early, before its first trial."""
    report = _Report()
    with pytest.raises(FailureError) as raised:
        run(series_of(plan(broker, *others, **changes)), report)
    assert report.trials == []
    return raised.value
