"""Simultaneous clients: their total, their fairness, and what remains if one of them is lost."""

from typing import Any

import pytest

from tests.unit.kinds.network.trials import flow, line, loaded, spec
from tests.unit.results.trials import NOW
from tierbench.api.contract import Outcome, TrialLine
from tierbench.api.measurements import Network
from tierbench.api.record import RecordStatus
from tierbench.api.result import NodeFacts, ResultStatus
from tierbench.results.aggregate import add_trials, conclude
from tierbench.results.client_output import PartOutput, merge_parts
from tierbench.stats.distributions import jain_index

NODES = tuple(NodeFacts(node_class=name, node=f"{name}-1") for name in ("pi", "jetson", "phone"))


def shared(number: int, megabits: float, start: int = 0, **flows: Any) -> TrialLine:
    """One client's ten seconds, begun `start` milliseconds after the common start."""
    one = line(number, **(flows or {"upload": flow(megabits, retransmits=1)}))
    assert one.network is not None
    network = one.network.model_copy(update={"start_nanoseconds": start * 10**6})
    return one.model_copy(update={"network": network})


def together(*clients: list[TrialLine], lost: int | None = None) -> tuple[TrialLine, ...]:
    return merge_parts([PartOutput(trials, lost=index == lost) for index, trials in enumerate(clients)])


def network(merged: TrialLine) -> Network:
    assert merged.network is not None
    return merged.network


def measured(*clients: list[TrialLine], lost: int | None = None) -> ResultStatus:
    wanted = spec(len(clients[0])).model_copy(update={"clients": NODES})
    return conclude(wanted, add_trials(wanted, RecordStatus(), together(*clients, lost=lost), 1), NOW, None)


def test_shares_of_clients_add_up() -> None:
    (merged,) = together([shared(1, 60)], [shared(1, 30)], [shared(1, 10)])
    found = network(merged)
    assert found.upload is not None
    assert (found.upload.bits_per_second, found.upload.retransmits) == (100_000_000, 3)
    assert [share.bits_per_second for share in found.shares] == [60_000_000, 30_000_000, 10_000_000]
    assert found.download is None
    assert merged.outcome is Outcome.COMPLETED
    assert merged.distributions.ping is not None
    assert merged.distributions.ping.count == 9


def test_total_never_exceeds_the_rate_of_the_link() -> None:
    """Each has 50 Mbit/s for 10 s; the second then has the link of 100 Mbit/s to itself for 100 ms more."""
    late = {"bitsPerSecond": 50_495_050, "receivedBytes": 63_750_000, "sentBytes": 63_750_000}
    (merged,) = together([shared(1, 50)], [shared(1, 0, upload=late)])
    upload = network(merged).upload
    assert upload is not None
    assert upload.sent_bits_per_second == pytest.approx(8 * (62_500_000 + 63_750_000) / 10, rel=0.02)
    assert upload.bits_per_second == pytest.approx(8 * (62_500_000 + 63_750_000) / 10.1)
    (apart,) = together([shared(1, 50)], [shared(1, 50, start=200)])
    upload = network(apart).upload
    assert upload is not None
    assert upload.bits_per_second == pytest.approx(1e9 / 10.2)


def test_echo_requests_of_all_clients_are_pooled() -> None:
    """Equal numbers with means 1 and 3 and standard deviation 1 have mean 2 and variance 1 + 1."""
    ping = {"sent": 3, "received": 3, "minNanoseconds": 1, "maxNanoseconds": 9}
    parts = []
    for mean in (1000, 3000):
        echoes = ping | {"meanNanoseconds": mean, "standardDeviationNanoseconds": 1000}
        body = line(1).to_json()
        body["network"]["ping"] = echoes
        parts.append([TrialLine.model_validate(body)])
    found = network(together(*parts)[0]).ping
    assert found is not None
    assert (found.sent, found.mean_nanoseconds, found.standard_deviation_nanoseconds) == (6, 2000, 1414)


def test_echo_requests_of_all_clients_under_load_are_pooled() -> None:
    (merged,) = together([loaded(1, 40, 60)], [loaded(1, 80)])
    found = network(merged).ping_under_load
    assert found is not None
    assert (found.sent, found.received, found.mean_nanoseconds, found.max_nanoseconds) == (6, 3, 60 * 10**6, 80 * 10**6)
    assert merged.distributions.ping_under_load is not None
    assert merged.distributions.ping_under_load.count == 3


@pytest.mark.parametrize(
    ("rates", "index"),
    [((5, 5, 5), 1), ((9, 0, 0), 1 / 3), ((60, 30, 10), 100**2 / (3 * (3600 + 900 + 100)))],
)
def test_jains_index(rates: tuple[float, ...], index: float) -> None:
    assert jain_index(rates) == pytest.approx(index)


def test_uneven_shares_are_reported() -> None:
    status = measured([shared(1, 60)], [shared(1, 30)], [shared(1, 10)])
    assert status.statistics["fairnessPartsPerMillion"].mean == pytest.approx(724_638)
    assert [status.statistics[f"client{number}BitsPerSecond"].mean for number in (1, 2, 3)] == [60e6, 30e6, 10e6]
    (note,) = status.facts
    assert note.reason == "UnevenShares"
    assert note.message.startswith("Client 1 (pi-1, pi) got 60.0 Mbit/s, 60% of the total")
    assert measured([shared(1, 33)], [shared(1, 33)], [shared(1, 34)]).facts == ()


@pytest.mark.parametrize(
    ("start", "overlap", "valid"), [(0, 1_000_000, True), (500, 950_000, True), (600, 940_000, False)]
)
def test_clients_that_were_not_simultaneous_make_a_result_invalid(start: int, overlap: int, valid: bool) -> None:
    clients = [shared(1, 50)], [shared(1, 50, start)], [shared(1, 50)]
    status = measured(*clients)
    assert network(together(*clients)[0]).overlap_parts_per_million == overlap
    assert status.valid is valid
    assert [note.reason for note in status.invalid] == ([] if valid else ["NotSimultaneous"])


def test_trial_that_lost_a_client_is_kept_as_failed() -> None:
    clients = [shared(1, 60), shared(2, 70)], [shared(1, 30)], [shared(1, 10), shared(2, 20)]
    assert len(together(*clients)) == 1
    first, second = together(*clients, lost=1)
    assert first.outcome is Outcome.COMPLETED
    assert (second.outcome, second.failure and second.failure.reason) == (Outcome.FAILED, "ClientLost")
    kept = network(second)
    assert [share.bits_per_second for share in kept.shares] == [70_000_000, 0, 20_000_000]
    assert [share.failure is not None for share in kept.shares] == [False, True, False]
    status = measured(*clients, lost=1)
    assert status.statistics["throughputBitsPerSecond"].count == 1
    assert [note.reason for note in status.invalid] == ["TrialsFailed"]


def test_no_trial_remains_if_all_clients_are_lost() -> None:
    assert merge_parts([PartOutput([shared(1, 1)], lost=True), PartOutput([], lost=True)]) == ()


def test_merged_trial_records_a_throttled_client_before_the_busiest_one() -> None:
    slowed = {"computer": {"thermalThrottles": 1}}
    hot = TrialLine.model_validate(line(1, cpu=10**8).to_json() | {"client": {"cpuNanoseconds": 1, **slowed}})
    (merged,) = merge_parts([PartOutput((line(1, cpu=9 * 10**8),)), PartOutput((hot,))])
    assert merged.client == hot.client
