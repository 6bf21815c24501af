"""A measured network becomes a link for other benchmarks, with notes on what it does not contain."""

from typing import Any

import pytest
import yaml

from tests.unit.cli.test_offline import write
from tests.unit.kinds.network.trials import flow, line, loaded, spec, trace
from tests.unit.results.trials import NOW
from tierbench.api.contract import TrialLine
from tierbench.api.link import Link
from tierbench.api.record import RecordStatus
from tierbench.api.result import BenchmarkResult
from tierbench.cli.main import main
from tierbench.results.aggregate import add_trials, conclude
from tierbench.results.client_output import add_traces
from tierbench.results.measured_link import measured_link


def result(case: int, *lines: TrialLine, **levels: Any) -> BenchmarkResult:
    """Returns the result of a case, with its record."""
    wanted = spec(len(lines), **levels).model_copy(update={"case": case})
    record = add_traces(add_trials(wanted, RecordStatus(), lines, 1), lines)
    name = f"nb-demo-r1-c00{case}"
    body = {
        "metadata": {"name": name, "namespace": "ns"},
        "spec": wanted,
        "status": conclude(wanted, record, NOW, None),
    }
    return BenchmarkResult.model_validate(body).with_record(record)


def both(**more: Any) -> list[BenchmarkResult]:
    """Returns 10 Mbit/s up and 40 Mbit/s down, with round trips of 1.967 ms."""
    return [
        result(1, line(1, upload=flow(10)), line(2, upload=flow(10)), **more),
        result(2, line(1, download=flow(40)), line(2, download=flow(40)), direction="Download", **more),
    ]


def test_rates_count_frames_and_directions_share_the_round_trip() -> None:
    found = measured_link(both(), "lte")
    up, down = found.link.up, found.link.down
    assert up is not None
    assert down is not None
    assert (up.kilobits_per_second, down.kilobits_per_second) == (10_456, 41_823)
    assert up.delay_microseconds == down.delay_microseconds == round(1_967 / 2)
    assert up.jitter_microseconds == up.delay_microseconds, "no more than the delay"
    assert up.loss_parts_per_million == 0
    assert any("ping.underLoad" in note for note in found.notes)
    assert any("round trip" in note for note in found.notes)


def test_link_has_the_best_of_several_rates() -> None:
    faster = result(3, line(1, upload=flow(12)), streams="4")
    found = measured_link([*both(), faster], "lte").link
    assert found.up is not None
    assert found.up.kilobits_per_second == round(12_000 * 1514 / 1448)


def test_losses_are_measured_by_udp_or_shared_by_the_directions() -> None:
    lossy = [
        result(1, line(1, answered=2, upload=flow(10))),
        result(2, line(1, answered=2, download=flow(10)), direction="Download"),
    ]
    up = measured_link(lossy, "lte").link.up
    assert up is not None
    assert up.loss_parts_per_million == pytest.approx(183_503, abs=1), "a third of the requests is lost both ways"
    udp = result(3, line(1, answered=2, upload=flow(1, packets=1000, lostPackets=20)), protocol="UDP")
    link = measured_link([*lossy, udp], "lte").link
    assert link.up is not None
    assert link.down is not None
    assert (link.up.loss_parts_per_million, link.down.loss_parts_per_million) == (20_000, 183_503)


def test_queue_is_the_wait_of_echo_requests_under_load() -> None:
    queued = [
        result(1, loaded(1, 100, 120, 152, upload=flow(10))),
        result(2, loaded(1, 100, 120, 152, download=flow(10)), direction="Download"),
    ]
    found = measured_link(queued, "lte")
    assert found.link.up is not None
    assert found.link.up.queue_milliseconds == pytest.approx(150, abs=3)
    assert not any("ping.underLoad" in note for note in found.notes)


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([], "no selected result has echo requests"),
        (both()[:1], "rate of TCP in the direction Download"),
        (
            [one.model_copy(update={"spec": one.spec.model_copy(update={"link": Link(name="a")})}) for one in both()],
            "over",
        ),
    ],
    ids=["none", "one way", "imitated"],
)
def test_error_names_what_a_link_needs(results: list[BenchmarkResult], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measured_link(results, "lte")


def test_results_of_several_networks_are_refused() -> None:
    server = both()[0].spec.server.model_copy(update={"node_class": "edge"})
    other = [one.model_copy(update={"spec": one.spec.model_copy(update={"server": server})}) for one in both()]
    with pytest.raises(ValueError, match=r"raspberry-pi-4 to cloud, raspberry-pi-4 to edge.*--server-class"):
        measured_link([*both(), *other], "lte")


def seconds(*megabits: int, side: str) -> dict[str, Any]:
    """Returns a trace with a sample in each second."""
    number = len(megabits)
    columns = {
        name: [1] * number for name in ("congestionWindowBytes", "slowStartThresholdBytes", "roundTripMicroseconds")
    }
    columns |= {name: [0] * number for name in ("roundTripVarianceMicroseconds", "retransmits", "state")}
    rates = [rate * 10**6 for rate in megabits]
    made = trace(**columns, milliseconds=[1000 * at + 500 for at in range(number)], deliveryBitsPerSecond=rates)
    return {**made, "side": side}


def recorded() -> list[BenchmarkResult]:
    """Returns two trials up and one down, each with the rate in each second."""
    up = [with_trace(line(number, upload=flow(10)), seconds(10 * number, 20, side="Client")) for number in (1, 2)]
    down = with_trace(line(1, download=flow(40)), seconds(40, side="Server"))
    return [result(1, *up), result(2, down, direction="Download")]


def with_trace(trial: TrialLine, given: dict[str, Any]) -> TrialLine:
    return TrialLine.model_validate({**trial.to_json(), "traces": [given]})


def test_a_trace_has_the_rate_of_each_second_of_all_trials() -> None:
    found = measured_link(recorded(), "drive", traced=True)
    assert found.trace == {"up": "0,10.456\n1,20.912\n2,20.912\n3,20.912\n", "down": "0,41.823\n"}
    assert found.link.trace is not None
    assert found.link.trace.config_map_ref.name == "drive"
    assert found.link.up is not None
    assert found.link.up.kilobits_per_second is None
    with pytest.raises(ValueError, match="samples of TCP in the direction Upload"):
        measured_link(both(), "drive", traced=True)


def test_link_command_writes_a_link_and_a_trace_file(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    results = recorded()
    path, file = tmp_path / "run.json", tmp_path / "trace.yaml"
    assert main(["link", "--from", write(path, results), "--name", "lte"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# Measured by demo, run 1.\n# ")
    (entry,) = yaml.safe_load(text)["links"]
    assert Link.model_validate(entry) == measured_link(results, "lte").link
    assert main(["link", "--from", str(path), "--name", "lte", "--trace-file", str(file)]) == 0
    config_map = yaml.safe_load(file.read_text())
    (entry,) = yaml.safe_load(capsys.readouterr().out)["links"]
    assert config_map["metadata"]["name"] == entry["trace"]["configMapRef"]["name"] == "lte"
    assert config_map["data"]["down"] == "0,41.823\n"
    with pytest.raises(SystemExit):
        main(["link", "--from", str(path), "--name", "Not a name"])
    assert "is not the name of a link" in capsys.readouterr().err


def test_link_command_reports_missing_results_in_one_line(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["link", "--from", write(tmp_path / "run.json", both()[:1])]) == 2
    assert "rate of TCP in the direction Download: measure it, too" in capsys.readouterr().err
