"""What the computers said of themselves, for a person and for other programs."""

from typing import Any

from tests.unit.results.test_record import line, measured, sample, spec
from tierbench.api.result import BenchmarkResult
from tierbench.results.computers import in_words, node_computers
from tierbench.results.table import trial_table

JETSON: dict[str, Any] = {
    "cpuGovernor": "schedutil",
    "cpuFrequencyKilohertz": 1_200_000,
    "cpuMaximumKilohertz": 1_479_000,
    "powerMode": "MAXN",
    "temperatureMillidegrees": 61_500,
    "thermalThrottles": 1,
    "interface": "eth0",
    "mtuBytes": 1450,
    "congestionControl": "cubic",
}


def result(server: dict[str, Any] | None, **fields: Any) -> BenchmarkResult:
    status = measured([line(1, server=sample(computer=server), client={"computer": {"interface": "eth1"}, **fields})])
    body = {"metadata": {"name": "r", "namespace": "ns"}, "spec": spec(trials=1, warmup=0).to_json()}
    return BenchmarkResult.model_validate({**body, "status": status.to_json()})


def test_a_node_is_told_of_once() -> None:
    again = {**JETSON, "cpuFrequencyKilohertz": 1_479_000, "thermalThrottles": 0}
    lines = [in_words(node) for node in node_computers([result(JETSON), result(again)])]
    assert lines == [
        "j1: governor schedutil, frequency 1.20 to 1.48 of 1.48 GHz, power mode MAXN, temperature up to 62 °C, "
        "throttled for heat in 1 of 2 trials, interface eth0 (MTU 1450), congestion control cubic",
        "u1: interface eth1",
    ]


def test_what_no_kernel_tells_is_left_out() -> None:
    assert [node.node for node in node_computers([result(None)])] == ["u1"]
    assert not {
        name for name in trial_table([result(None)]).columns if name.startswith("server") and "Kilohertz" in name
    }


def test_the_table_has_a_column_for_each_side() -> None:
    table = trial_table([result(JETSON, cpuLimitMillicores=500)])
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["serverCpuGovernor"], row["serverMtuBytes"], row["clientInterface"]) == ("schedutil", 1450, "eth1")
    assert row["clientCpuLimitMillicores"] == 500
