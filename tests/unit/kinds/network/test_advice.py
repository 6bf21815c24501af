"""Advice ranks networks by throughput, or by echo requests if time is the objective."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.histograms import histogram_of
from tests.unit.kinds.network.trials import flow, line, spec
from tierbench.advice.advise import advise
from tierbench.api.contract import TrialLine
from tierbench.api.placement_advice import PlacementAdviceSpec
from tierbench.api.record import RecordStatus
from tierbench.api.result import BenchmarkResult
from tierbench.results.aggregate import add_trials, conclude

NOW = datetime(2026, 11, 21, 4, 0, tzinfo=UTC)
MILLISECOND = 10**6
# Of ten echoes at the near server, eight take 2 ms and two take 30 ms; at the far one all take 10 ms.
NEAR, FAR = [2] * 8 + [30, 30], [10] * 10


def echoed(number: int, megabits: float, milliseconds: list[int]) -> TrialLine:
    """A trial with echo requests of these times."""
    times = [one * MILLISECOND + number * 1000 for one in milliseconds]
    body = line(number, upload=flow(megabits + number / 100)).to_json()
    body["network"]["ping"] |= {"sent": 10, "received": 10, "meanNanoseconds": sum(times) // 10}
    body["distributions"]["ping"] = histogram_of(times).to_json()
    return TrialLine.model_validate(body)


def result(server: str, node: str, case: int, megabits: float, milliseconds: list[int]) -> BenchmarkResult:
    body = spec(10).to_json()
    wanted = spec(10).model_validate(body | {"case": case, "server": {"nodeClass": server, "node": node}})
    lines = [echoed(number, megabits + case / 10, milliseconds) for number in range(1, 11)]
    record = add_trials(wanted, RecordStatus(), lines, 1)
    status = conclude(wanted, record, NOW, None)
    return BenchmarkResult.model_validate(
        {"metadata": {"name": f"nb-{case}"}, "spec": wanted.to_json(), "status": status.to_json()}
    ).with_record(record)


RESULTS = [
    *(result("near", f"n{case}", case, 50, NEAR) for case in (1, 2, 3)),
    *(result("far", f"f{case}", case, 90, FAR) for case in (4, 5, 6)),
]


@pytest.mark.parametrize(
    ("objective", "best", "quantity"),
    [
        (None, "far", "throughputBitsPerSecond"),
        ({"type": "MeanTime"}, "near", "pingNanoseconds"),
        ({"type": "Percentile", "percentile": "P50"}, "near", "pingP50Nanoseconds"),
        ({"type": "Percentile", "percentile": "P90"}, "far", "pingP90Nanoseconds"),
        ({"type": "Percentile", "percentile": "P99"}, "far", "pingP99Nanoseconds"),
    ],
)
def test_objective_selects_throughput_or_echo_requests(
    objective: dict[str, Any] | None, best: str, quantity: str
) -> None:
    asked = {"clientClassName": "raspberry-pi-4", "objective": objective}
    status = advise(PlacementAdviceSpec.model_validate(asked), RESULTS, NOW, ())
    assert (status.best, status.quantity) == (best, quantity)
