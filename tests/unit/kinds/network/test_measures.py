"""Throughput, losses and round trips of a network, and the notes on them."""

import pytest

from tests.unit.kinds.network.trials import flow, line, loaded, measured, spec
from tests.unit.results.trials import NOW
from tierbench.api.record import RecordStatus
from tierbench.api.result import ResultSpec, ResultStatus
from tierbench.results.aggregate import add_trials, conclude
from tierbench.results.units import title


def mean(status: ResultStatus, quantity: str) -> int:
    return status.statistics[quantity].mean


def reasons(status: ResultStatus) -> list[str]:
    return [note.reason for note in (*status.invalid, *status.facts)]


def test_tcp_quantities_have_the_units_in_their_names() -> None:
    status = measured(line(1), line(2, upload=flow(92, retransmits=1)), line(3))
    assert mean(status, "throughputBitsPerSecond") == pytest.approx(90.67e6, rel=1e-4)
    assert mean(status, "retransmits") == round(11 / 3)
    assert mean(status, "pingNanoseconds") == 1_967_000
    assert mean(status, "pingMaxNanoseconds") == 4_000_000
    assert mean(status, "pingStandardDeviationNanoseconds") == 1_438_000
    assert mean(status, "pingP50Nanoseconds") == pytest.approx(1_000_000, rel=0.011)
    assert mean(status, "iperf3CpuPartsPerMillion") == 100_000
    assert not {"lostPartsPerMillion", "jitterNanoseconds", "uploadBitsPerSecond"} & set(status.statistics)
    assert status.valid is True
    assert sum(status.histograms["pingNanoseconds"].counts) == 9


def test_sent_rate_is_a_quantity_if_the_engine_reports_it() -> None:
    upload, download = flow(40, sentBitsPerSecond=41_000_000), flow(50, sentBitsPerSecond=53_000_000)
    status = measured(line(1, upload=upload, download=download), direction="Bidirectional")
    assert mean(status, "sentBitsPerSecond") == 94_000_000
    assert title("sentBitsPerSecond") == "Sent"
    unreported = flow(40)
    del unreported["sentBitsPerSecond"]
    assert "sentBitsPerSecond" not in measured(line(1, upload=unreported)).statistics


def test_external_server_has_no_samples_and_stays_valid() -> None:
    """It has no node, so the agent's samples are of another one."""
    body = spec(1).to_json() | {"server": {"nodeClass": "external"}}
    wanted = ResultSpec.model_validate(body)
    record = add_trials(wanted, RecordStatus(), [line(1)], 1)
    status = conclude(wanted, record, NOW, None)
    assert record.trials[0].server is None
    assert not {"iperf3CpuPartsPerMillion", "serverCpuPartsPerMillion"} & set(status.statistics)
    assert (status.valid, reasons(status)) == (True, [])


def test_display_shows_case_times_and_throughput() -> None:
    display = measured(line(1), streams="4").display
    assert (display.case, display.mean, display.throughput) == ("TCP Upload x4", "1.97 ms", "90.0 Mbit/s")
    assert display.p99 == "4.02 ms"
    assert measured(line(1), congestionControl="bbr").display.case == "TCP Upload bbr"


def test_both_directions_add_up_and_are_also_separate() -> None:
    status = measured(
        line(1, upload=flow(40, retransmits=2), download=flow(50, retransmits=3)), direction="Bidirectional"
    )
    found = {name: mean(status, f"{name}BitsPerSecond") for name in ("throughput", "upload", "download")}
    assert found == {"throughput": 90_000_000, "upload": 40_000_000, "download": 50_000_000}
    assert mean(status, "retransmits") == 5


def test_udp_losses_are_a_quantity_and_a_fact() -> None:
    udp = flow(9, packets=1000, lostPackets=100, outOfOrderPackets=3, jitterNanoseconds=250_000)
    status = measured(line(1, download=udp), protocol="UDP", direction="Download")
    assert mean(status, "lostPartsPerMillion") == 100_000
    assert mean(status, "outOfOrderPackets") == 3
    assert mean(status, "jitterNanoseconds") == 250_000
    assert "retransmits" not in status.statistics
    assert status.valid is True
    assert reasons(status) == ["PacketsLost"]


def test_unanswered_echo_requests_do_not_change_the_throughput() -> None:
    status = measured(line(1, answered=0), line(2, answered=0))
    assert mean(status, "pingLostPartsPerMillion") == 1_000_000
    assert "pingNanoseconds" not in status.statistics
    assert (status.display.mean, status.display.throughput) == ("", "90.0 Mbit/s")
    assert reasons(status) == ["PingLost"]


def test_echo_requests_under_load_are_separate_from_idle_ones() -> None:
    status = measured(loaded(1, 40, 50, 60), loaded(2, 50, 60, 70))
    assert (mean(status, "pingNanoseconds"), mean(status, "pingUnderLoadNanoseconds")) == (1_967_000, 55_000_000)
    expected = {"Min": 45_000_000, "Max": 65_000_000, "StandardDeviation": 8_164_966, "P50": 55_000_000}
    for name, value in expected.items():
        assert mean(status, f"pingUnderLoad{name}Nanoseconds") == pytest.approx(value, rel=0.02)
    assert mean(status, "pingMaxNanoseconds") == 4_000_000
    assert sum(status.histograms["pingUnderLoadNanoseconds"].counts) == 6
    assert reasons(status) == []
    assert not any(name.startswith("pingUnderLoad") for name in measured(line(1)).statistics)


def test_losses_under_load_are_a_separate_fact() -> None:
    status = measured(loaded(1, 40, sent=4, answered=2), loaded(2, sent=4))
    assert mean(status, "pingUnderLoadLostPartsPerMillion") == 875_000
    assert mean(status, "pingUnderLoadNanoseconds") == 40_000_000
    assert {note.reason: note.message for note in status.facts} == {
        "PingLost": "1 of 6 echo requests were not answered.",
        "PingLostUnderLoad": "7 of 8 echo requests under load were not answered.",
    }


@pytest.mark.parametrize(
    ("cpu", "server_cpu", "reason"),
    [(9 * 10**9, 0, "ClientSaturated"), (0, 9 * 10**9, "ServerSaturated"), (8 * 10**9, 8 * 10**9, None)],
)
def test_full_cpu_is_reported_as_saturated(cpu: int, server_cpu: int, reason: str | None) -> None:
    assert reasons(measured(line(1, cpu=cpu, server_cpu=server_cpu))) == ([] if reason is None else [reason])


def test_several_threads_may_use_several_cpus() -> None:
    assert not reasons(measured(line(1, cpu=18 * 10**9, server_cpu=18 * 10**9, limit=4000)))
    assert not reasons(measured(line(1, cpu=18 * 10**9, server_cpu=18 * 10**9, limit=None)))


def test_wide_spread_is_relative_to_the_mean() -> None:
    slow = [line(number, upload=flow(megabits / 1000)) for number, megabits in enumerate((1, 2, 4), start=1)]
    assert reasons(measured(*slow)) == ["SpreadTooWide"]
