"""Rates of simultaneous clients compared with each client alone, and echo requests under load."""

from typing import Any

import pytest

from tests.unit.kinds.network.test_clients import shared
from tests.unit.kinds.network.trials import flow, line, loaded, spec
from tests.unit.results.trials import NOW
from tierbench.advice.tables import RunResults, runs
from tierbench.api.contract import TrialLine
from tierbench.api.record import RecordStatus
from tierbench.api.result import BenchmarkResult
from tierbench.kinds.network.report import answers, at_once, cells, client_answers
from tierbench.results.aggregate import add_trials, conclude
from tierbench.results.client_output import PartOutput, merge_parts

PHONE, FIRST, SECOND = (
    {"nodeClass": name, "node": node} for name, node in (("phone", "p1"), ("tablet", "t1"), ("tablet", "t2"))
)
CLIENTS = (PHONE, FIRST, SECOND)


def result(case: int, clients: tuple[dict[str, str], ...], *rates: float, **levels: str) -> BenchmarkResult:
    """A case of clients with these rates in Mbit/s, in three trials that differ by 1%."""
    together = "Simultaneous" if len(clients) > 1 else "Alone"
    body: dict[str, Any] = spec(3, None, clientMode=together, **levels).to_json()
    body |= {"case": case, "client": clients[0], "clients": list(clients) if len(clients) > 1 else []}
    wanted = spec().model_validate(body)
    parts = [PartOutput(tuple(trial(number, rate, len(clients)) for number in (1, 2, 3))) for rate in rates]
    record = add_trials(wanted, RecordStatus(), merge_parts(parts), 1)
    status = conclude(wanted, record, NOW, None)
    return BenchmarkResult.model_validate(
        {"metadata": {"name": f"nb-{case}"}, "spec": wanted.to_json(), "status": status.to_json()}
    ).with_record(record)


def trial(number: int, rate: float, clients: int) -> TrialLine:
    megabits = rate * (0.98 + number / 100)
    return shared(number, megabits) if clients > 1 else line(number, upload=flow(megabits))


def pinged(case: int, *times: tuple[int, ...], **levels: str) -> BenchmarkResult:
    """A case with a trial for each list of round trips under load, in milliseconds."""
    wanted = spec().model_validate(spec(len(times), None, **levels).to_json() | {"case": case})
    lines = [loaded(number, *milliseconds) for number, milliseconds in enumerate(times, start=1)]
    record = add_trials(wanted, RecordStatus(), lines, 1)
    status = conclude(wanted, record, NOW, None)
    return BenchmarkResult.model_validate(
        {"metadata": {"name": f"nb-{case}"}, "spec": wanted.to_json(), "status": status.to_json()}
    ).with_record(record)


def run(*results: BenchmarkResult) -> RunResults:
    (found,) = runs(results)
    return found


ALONE = tuple(result(case, (client,), 100) for case, client in enumerate(CLIENTS, 1))


def test_each_client_is_compared_with_itself_alone() -> None:
    measured = run(*ALONE, result(4, CLIENTS, 60, 30, 10))
    (found,) = at_once(measured)
    assert [client.name for client in found.clients] == ["phone", "t1", "t2"]
    assert [client.share for client in found.clients] == pytest.approx([0.6, 0.3, 0.1])
    assert client_answers(measured) == (
        "All at once, phone gets 60% of the total throughput. Compared with alone: phone 60% (59–61%), "
        "t1 30% (29–31%), t2 10% (10–10%).",
    )


def test_levels_that_vary_are_reported_and_never_mixed() -> None:
    down = tuple(result(case, (client,), 50, direction="Download") for case, client in enumerate(CLIENTS, 5))
    at_once_down = result(8, CLIENTS, 40, 10, 5, direction="Download")
    assert client_answers(run(*ALONE, *down, result(4, CLIENTS, 60, 30, 10), at_once_down)) == (
        "All at once (direction Upload), phone gets 60% of the total throughput. Compared with alone: "
        "phone 60% (59–61%), t1 30% (29–31%), t2 10% (10–10%).",
        "All at once (direction Download), phone gets 73% of the total throughput. Compared with alone: "
        "phone 80% (78–82%), t1 20% (20–20%), t2 10% (10–10%).",
    )


def test_no_client_is_named_if_shares_are_even() -> None:
    (answer,) = client_answers(run(*ALONE, result(4, CLIENTS, 34, 33, 33)))
    assert answer.startswith("All at once, compared with alone: ")


def test_clients_that_were_not_measured_alone_are_left_out() -> None:
    assert client_answers(run(ALONE[0], result(4, CLIENTS, 60, 30, 10)))[0].endswith("alone: phone 60% (59–61%).")
    assert client_answers(run(result(4, CLIENTS, 60, 30, 10))) == ()
    assert client_answers(run(*ALONE)) == ()


def test_idle_and_loaded_round_trips_are_next_to_each_other() -> None:
    up = pinged(1, (40, 60), (45, 55), (49, 57))
    down = pinged(2, (10,), direction="Download")
    assert answers(run(up, down)) == (
        "Ping, Upload, cloud to raspberry-pi-4: 1.97 ms idle, 51.0 ms under load, difference 49.03 ms (44.73–53.34).",
        "Ping, Download, cloud to raspberry-pi-4: 1.97 ms idle, 10.0 ms under load, difference 8.03 ms.",
    )
    (trial, *_) = down.recorded.trials
    shown = cells(trial)
    assert (shown["Ping"], shown["Ping under load"], shown["Ping increase"]) == ("1.97 ms", "10.0 ms", "8.03 ms")
    assert shown["Lost under load"] == "66.67%"


def test_round_trips_under_load_may_be_shorter() -> None:
    (answer,) = answers(run(pinged(1, (1,), (1,), (1,))))
    assert answer.endswith("1.97 ms idle, 1.00 ms under load, difference -967.0 µs (-967.0–-967.0).")


def test_a_long_run_is_summarized() -> None:
    many = [pinged(case, (40,), streams=str(case)) for case in range(1, 15)]
    found = answers(run(*many))
    assert len(found) == 13
    assert found[-1] == "Ping of 2 more cases under load: see `kubectl tierbench report`."
