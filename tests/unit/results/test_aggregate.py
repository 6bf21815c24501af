"""A result counts each trial once, in any order and however often a log is read."""

import json
from collections.abc import Sequence
from math import fsum
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.kinds.broker import trials as brokers
from tests.unit.kinds.network import trials as networks
from tests.unit.results.trials import COMPUTER, EXHAUSTED, GIB, NOW, client, line, measured, sample, spec
from tierbench.api.contract import TrialLine
from tierbench.api.model import Metadata
from tierbench.api.record import RecordStatus
from tierbench.api.result import BenchmarkResult, Missing, Note, ResultPhase, ResultStatus
from tierbench.kinds.file_transfer.measures import io_bound
from tierbench.results.aggregate import add_trials, conclude, fail, missing_trials, summarize
from tierbench.results.client_output import PartOutput, merge_parts
from tierbench.results.quantities import describe_overall, is_censored, is_overall


@given(st.permutations(range(1, 6)), st.lists(st.integers(1, 5), max_size=10))
def test_a_trial_counts_once_in_any_order(order: list[int], again: list[int]) -> None:
    wanted = spec()
    record = add_trials(wanted, RecordStatus(), [line(number) for number in [*order, *again]], 1)
    record = add_trials(wanted, record, [line(number) for number in again], 2)
    assert [trial.trial for trial in record.trials] == [1, 2, 3, 4, 5]
    assert summarize(wanted, record).counts.completed == 5
    assert record.distributions.download_duration is not None
    assert record.distributions.download_duration.count == 5
    assert missing_trials(wanted, record) == ()


def test_warmup_trials_are_kept_and_not_counted() -> None:
    record = add_trials(
        spec(), RecordStatus(), [line(1, nanoseconds=10**9), line(1, warmup=True, nanoseconds=10**12)], 1
    )
    assert [trial.warmup for trial in record.trials] == [True, False]
    assert summarize(spec(), record).statistics["durationNanoseconds"].mean == 10**9
    assert record.distributions.download_duration is not None
    assert record.distributions.download_duration.sum_nanoseconds == 10**9
    assert missing_trials(spec(), record) == (2, 3, 4, 5)


def test_failed_trials_are_not_in_the_mean() -> None:
    status = measured([line(1), line(2, nanoseconds=10**12, **EXHAUSTED)])
    assert status.phase is ResultPhase.COMPLETE
    assert (status.counts.completed, status.counts.failed) == (1, 1)
    assert status.statistics["durationNanoseconds"].mean == 10**9
    assert [note.reason for note in status.invalid] == ["TrialsFailed", "ServerNotObserved"]


def test_case_without_a_good_trial_fails_with_the_reason_of_its_trials() -> None:
    bad: dict[str, Any] = {"outcome": "Failed", "failure": {"reason": "NotFound", "message": "404"}}
    status = measured([line(1, **bad), line(2, **bad)])
    assert (status.phase, status.reason, status.valid) == (ResultPhase.FAILED, "NotFound", None)


def test_the_reason_is_the_most_frequent_one() -> None:
    reasons = ["Refused", "AttemptsExhausted", "AttemptsExhausted"]
    failures = [{"reason": reason, "message": f"{number}: {reason}"} for number, reason in enumerate(reasons, 1)]
    status = measured([line(number, outcome="Failed", failure=what) for number, what in enumerate(failures, 1)])
    assert (status.reason, status.message) == ("AttemptsExhausted", "2: AttemptsExhausted")


def test_a_failed_case_has_facts() -> None:
    status = measured([line(1, **EXHAUSTED)], memory=GIB // 2)
    assert [note.reason for note in status.facts] == ["CacheCannotHold"]


def test_a_case_without_trials_fails() -> None:
    status = conclude(spec(), RecordStatus(), NOW, None)
    assert (status.phase, status.reason, status.message) == (ResultPhase.FAILED, "NoTrial", "No trial was run.")


def test_a_second_client_is_an_interruption() -> None:
    wanted = spec(trials=2, warmup=0)
    status = add_trials(wanted, add_trials(wanted, RecordStatus(), [line(1)], 1), [line(2)], 2)
    final = conclude(wanted, status, NOW, None)
    assert final.counts.interruptions == 1
    assert "Resumed" in [note.reason for note in final.facts]


def test_trials_beyond_the_spec_are_ignored() -> None:
    wanted = spec(trials=1, warmup=1)
    status = add_trials(wanted, RecordStatus(), [line(1), line(2), line(2, warmup=True)], 1)
    assert [(trial.warmup, trial.trial) for trial in status.trials] == [(False, 1)]


def test_retries_of_failed_trials_are_counted_by_cause() -> None:
    def transfer(**causes: int) -> dict[str, Any]:
        return {"bytes": 1, "downloads": 1, "retries": sum(causes.values()), "retryCauses": causes, "errors": 1}

    counts = measured(
        [
            line(1, transfer=transfer(Stalled=2)),
            line(2, transfer=transfer(Stalled=1, Reset=3), **EXHAUSTED),
            line(1, warmup=True, transfer=transfer(Stalled=100)),
        ],
        trials=2,
        warmup=1,
    ).counts
    assert (counts.retries, counts.errors) == (6, 2)
    assert counts.retry_causes == {"Reset": 3, "Stalled": 3}


def test_a_failed_case_counts_its_trials() -> None:
    status = fail(spec(), add_trials(spec(), RecordStatus(), [line(1)], 1), NOW, "NodeNotReady", "gone")
    assert status.phase is ResultPhase.FAILED
    assert status.counts.completed == 1
    assert status.display.valid == "NodeNotReady"


@pytest.mark.parametrize(
    ("lines", "options", "reasons"),
    [
        ([line(1, server=sample())], {}, []),
        ([line(1)], {}, ["ServerNotObserved"]),
        ([line(1, server=sample(), client=client(950_000_000, 1000))], {}, ["ClientSaturated"]),
        ([line(1, server=sample(), client=client(950_000_000, 16_000))], {}, []),
        ([line(1, server=sample(), client=client(950_000_000, None))], {}, []),
        (
            [line(1, server=sample(residentBeforePartsPerMillion=500_000, memoryAvailableBytes=GIB // 2))],
            {"cacheState": "Warm"},
            [],
        ),
        ([line(1, server=sample(), client=client(0, None, thermalThrottles=1))], {}, ["Throttled"]),
        ([line(1, server=sample(computer={"quotaThrottledNanoseconds": 11_000_000}))], {}, ["Throttled"]),
        ([line(1, server=sample(computer={"quotaThrottledNanoseconds": 9_000_000}))], {}, []),
        ([line(1, server=sample(computer={"thermalThrottles": 0}))], {}, []),
        ([line(1, server=sample(residentBeforePartsPerMillion=500_000))], {"cacheState": "Warm"}, ["CacheNotWarm"]),
        (
            [line(1, server=sample(residentBeforePartsPerMillion=500_000))],
            {"cacheState": "Warm", "memory": GIB // 2},
            [],
        ),
        ([line(1, server=sample())], {"cacheState": "Cold"}, ["CacheNotCold"]),
        ([line(1, server=sample(residentBeforePartsPerMillion=9_000))], {"cacheState": "Cold"}, []),
        ([line(1, server=sample()), line(2, server=sample(), nanoseconds=4 * 10**9)], {}, ["SpreadTooWide"]),
        ([line(1, server=sample(), nanoseconds=10**6), line(2, server=sample(), nanoseconds=4 * 10**6)], {}, []),
        ([line(1, server=sample())], {"trials": 2}, ["TrialsMissing"]),
        (
            [line(1, server=sample(residentBeforePartsPerMillion=9_000))],
            {"cacheState": "Warm", "memory": 0},
            ["CacheNotWarm"],
        ),
    ],
)
def test_validity(lines: list[TrialLine], options: dict[str, Any], reasons: list[str]) -> None:
    status = measured(lines, **options)
    assert [note.reason for note in status.invalid] == reasons
    assert status.valid == (not reasons)
    assert status.display.valid == (reasons[0] if reasons else "Yes")


def test_file_larger_than_memory_is_a_fact() -> None:
    status = measured([line(1, server=sample())], memory=GIB // 2)
    assert [note.reason for note in status.facts] == ["CacheCannotHold"]
    assert status.valid


@pytest.mark.parametrize("evidence", ["ioWaitPartsPerMillion", "ioPressurePartsPerMillion"])
@pytest.mark.parametrize(
    ("read", "waited", "bound"), [(2**20, 60_000, True), (2**20, 10_000, False), (2**18, 60_000, False)]
)
def test_io_bound_needs_evidence(evidence: str, read: int, waited: int, bound: bool) -> None:
    status = measured([line(1, server=sample(deviceReadBytes=read, **{evidence: waited}))])
    assert ("IOBound" in [note.reason for note in status.facts]) == bound


@pytest.mark.parametrize(
    ("cores", "downloads", "seen", "bound"),
    [
        (32, 1, {"deviceReadBytes": 2**20, "ioWaitPartsPerMillion": 3_000}, True),
        (1, 1, {"deviceReadBytes": 2**20, "ioWaitPartsPerMillion": 3_000}, False),
        (32, 1, {"deviceReadBytes": 2**20, "ioWaitPartsPerMillion": 3_000, "ioPressurePartsPerMillion": 9_000}, False),
        (1, 4, {"deviceReadBytes": 2**18, "ioPressurePartsPerMillion": 60_000}, True),
        (1, 1, {"deviceReadBytes": 2**18, "ioPressurePartsPerMillion": 60_000}, False),
        (1, 1, {"deviceReadBytes": 2**20}, None),
        (1, 1, {"ioPressurePartsPerMillion": 60_000}, None),
    ],
)
def test_io_bound_counts_a_file_once_and_waiting_per_cpu(
    cores: int, downloads: int, seen: dict[str, int], bound: bool | None
) -> None:
    wanted = spec(trials=1, warmup=0)
    server = wanted.server.model_copy(update={"cpu_millicores": 1000 * cores})
    transfer = {"bytes": 2**20, "downloads": downloads}
    status = add_trials(wanted, RecordStatus(), [line(1, server=sample(**seen), transfer=transfer)], 1)
    assert io_bound(wanted.model_copy(update={"server": server}), status.trials[0]) is bound


@pytest.mark.parametrize(
    ("governor", "khz", "expected"), [("performance", 1, True), ("ondemand", 1, False), ("performance", 2, False)]
)
def test_a_frequency_below_the_maximum_is_a_fact(governor: str, khz: int, expected: bool) -> None:
    computer = {"cpuGovernor": governor, "cpuFrequencyKilohertz": khz, "cpuMaxKilohertz": 2}
    status = measured([line(1, server=sample(computer=computer))])
    assert ("FrequencyBelowMaximum" in [note.reason for note in status.facts]) == expected
    assert status.valid


def test_record_with_the_most_trials_stays_within_56_kib() -> None:
    full = sample(
        residentAfterPartsPerMillion=999_999, deviceReadBytes=5 * 10**9, ioWaitPartsPerMillion=123_456,
        ioPressurePartsPerMillion=123_456, cpuPartsPerMillion=123_456, tcpRetransmits=12_345, tcpSegmentsSent=3_456_789,
        roundTripNanoseconds=1_234_567, roundTripMaxNanoseconds=12_345_678, cpuLimitMillicores=16_000,
        memoryAvailableBytes=5 * 10**9, computer=COMPUTER,
    )  # fmt: skip
    transfer = {
        "bytes": 5 * 10**9, "downloads": 4, "retries": 12, "retryCauses": {"Stalled": 12},
        "lookupNanoseconds": 1_234_567, "connectNanoseconds": 1_234_567, "tlsNanoseconds": 1_234_567,
        "firstByteNanoseconds": 1_234_567, "longestStallNanoseconds": 1_234_567_890,
    }  # fmt: skip
    more: dict[str, Any] = {"server": full, "client": client(10**9, 16_000, **COMPUTER)}
    lines = [line(number, transfer=transfer, nanoseconds=10**10 + number, **more) for number in range(1, 31)]
    record = add_trials(
        spec(trials=30), RecordStatus(), [*lines, *(line(number, warmup=True, **more) for number in range(1, 6))], 1
    )
    assert len(record.trials) == 31
    assert len(json.dumps(record.to_json()).encode()) <= 56 * 1024


OUT_OF_TIME = Note(reason="TimedOut", message="The client ran out of time.")


def result(status: ResultStatus) -> BenchmarkResult:
    return BenchmarkResult(metadata=Metadata(name="r"), spec=spec(warmup=0), status=status)


def test_a_case_that_timed_out_is_censored() -> None:
    wanted = spec(warmup=0)
    status = conclude(wanted, add_trials(wanted, RecordStatus(), [line(1), line(2)], 1), NOW, None, OUT_OF_TIME)
    assert status.missing == Missing(trials=3, reason="TimedOut", message="The client ran out of time.")
    assert "Only 2 of 5 trials were run: The client ran out of time." in [note.message for note in status.invalid]
    assert is_censored(result(status))


def test_a_case_with_lost_trials_is_not_censored() -> None:
    wanted, lost = spec(warmup=0), Note(reason="ClientLost", message="The pod was lost.")
    status = conclude(wanted, add_trials(wanted, RecordStatus(), [line(1)], 1), NOW, None, lost)
    assert status.missing == Missing(trials=4, reason="ClientLost", message="The pod was lost.")
    assert not is_censored(result(status))


def test_a_complete_case_is_not_censored() -> None:
    whole = measured([line(1), line(2)])
    assert whole.missing is None
    assert not is_censored(result(whole))


def test_a_case_without_trials_that_timed_out_is_censored() -> None:
    wanted = spec(warmup=0)
    assert is_censored(result(fail(wanted, RecordStatus(), NOW, "TimedOut", "The client ran out of time.")))
    assert not is_censored(result(fail(wanted, RecordStatus(), NOW, "NoReadyNode", "There is none.")))


def test_a_case_with_a_trial_that_timed_out_is_censored() -> None:
    cut: dict[str, Any] = {"outcome": "Failed", "failure": {"reason": "TimedOut", "message": "30 s"}}
    assert is_censored(result(measured([line(1), line(2, **cut)])))
    assert not is_censored(result(measured([line(1), line(2, **EXHAUSTED)])))


TIMES = {"rate": "time"}
VALUES = st.floats(min_value=1, max_value=1e9)


def test_overall_rates_weight_trials_by_their_time() -> None:
    statistics = brokers.measured(
        brokers.line(1), brokers.line(2, nanoseconds=3 * 10**9, sessionNanoseconds=4 * 10**9)
    ).statistics
    assert statistics["throughputMessagesPerSecond"].mean == 667
    assert statistics["overallThroughputMessagesPerSecond"].mean == 500
    assert statistics["overallThroughputBytesPerSecond"].mean == 512_000
    assert "overallWireThroughputBytesPerSecond" in statistics


def test_file_transfers_have_an_overall_rate() -> None:
    statistics = measured([line(1), line(2, nanoseconds=3 * 10**9)]).statistics
    mean, overall = statistics["throughputBytesPerSecond"].mean, statistics["overallThroughputBytesPerSecond"].mean
    assert overall == pytest.approx(mean * 3 / 4, rel=0.01)


@given(st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=10))
def test_an_overall_rate_is_a_ratio_of_sums_within_its_interval(trials: list[tuple[float, float]]) -> None:
    rates, times = zip(*trials, strict=True)
    found = describe_overall({"rate": rates, "time": times}, TIMES)["overallRate"]
    ratio = fsum(rate * time for rate, time in trials) / fsum(times)
    assert found.mean == pytest.approx(ratio, abs=1)
    assert found.confidence_low is not None
    assert found.confidence_high is not None
    assert found.confidence_low - 1 <= ratio <= found.confidence_high + 1
    assert found.p50 == pytest.approx(median(rates), abs=1)


def test_an_overall_rate_of_equal_times_is_the_mean() -> None:
    columns = {"rate": [10.0, 20.0, 60.0], "time": [7.0, 7.0, 7.0]}
    found = describe_overall(columns, TIMES)["overallRate"]
    assert (found.mean, found.standard_deviation) == (30, 26)


def test_there_is_no_overall_rate_if_a_trial_lacks_the_time() -> None:
    assert describe_overall({"rate": [1.0, 2.0], "time": [1.0]}, TIMES) == {}
    assert describe_overall({"rate": [1.0]}, TIMES) == {}


def test_overall_rates_are_distinguished_by_name() -> None:
    assert is_overall("overallRate")
    assert not is_overall("throughputBytesPerSecond")


RATES = (80, 100, 10, 90, 95, 300, 85)


def status_of_rates(rates: Sequence[float] = RATES, **trim: int) -> ResultStatus:
    lines = [
        networks.line(number, upload=networks.flow(rate, retransmits=number))
        for number, rate in enumerate(rates, start=1)
    ]
    return networks.measured(*lines, trim=trim)


def test_the_lowest_and_the_highest_trial_are_trimmed() -> None:
    status = status_of_rates(lowest=1, highest=1)
    trimmed, whole = (group["throughputBitsPerSecond"] for group in (status.statistics, status.untrimmed))
    assert (trimmed.count, trimmed.mean, trimmed.p50) == (5, 90_000_000, 90_000_000)
    assert (whole.count, whole.mean) == (7, round(sum(RATES) / 7 * 10**6))
    assert status.counts.completed == 7
    assert status.valid is True


def test_other_quantities_are_trimmed_by_the_same_trials() -> None:
    retransmits = status_of_rates(lowest=1, highest=1).statistics["retransmits"]
    assert retransmits.count == 5
    assert retransmits.mean == round((1 + 2 + 4 + 5 + 7) / 5)


def test_lowest_and_highest_are_trimmed_independently() -> None:
    assert status_of_rates(lowest=2).statistics["throughputBitsPerSecond"].mean == (85 + 90 + 95 + 100 + 300) * 200_000
    assert status_of_rates(highest=2).statistics["throughputBitsPerSecond"].mean == (10 + 80 + 85 + 90 + 95) * 200_000


def test_nothing_is_trimmed_from_too_few_trials() -> None:
    status = status_of_rates((80, 90), lowest=1, highest=1)
    assert status.statistics["throughputBitsPerSecond"].count == 2
    assert status.untrimmed == {}


def test_without_trim_there_are_no_untrimmed_statistics() -> None:
    assert status_of_rates().untrimmed == {}


def shared(trial: int, first: int, second: int) -> TrialLine:
    """Two simultaneous clients."""
    return merge_parts([PartOutput([networks.line(trial, upload=networks.flow(rate))]) for rate in (first, second)])[0]


def test_each_client_is_trimmed_by_its_own_rates() -> None:
    lines = [shared(1, 10, 50), shared(2, 50, 10), shared(3, 30, 30), shared(4, 40, 20)]
    status = networks.measured(*lines, trim={"lowest": 1, "highest": 1, "scope": "Client"})
    for name, mean in {"client1BitsPerSecond": 35_000_000, "client2BitsPerSecond": 25_000_000}.items():
        assert (status.statistics[name].count, status.statistics[name].mean) == (2, mean)
        assert status.untrimmed[name].count == 4
    total = status.statistics["throughputBitsPerSecond"]
    assert (total.count, total) == (4, status.untrimmed["throughputBitsPerSecond"])


def test_trim_by_total_removes_whole_trials() -> None:
    lines = [shared(1, 10, 50), shared(2, 50, 11), shared(3, 30, 32), shared(4, 40, 23)]
    status = networks.measured(*lines, trim={"lowest": 1, "highest": 1})
    assert status.statistics["client1BitsPerSecond"].mean == 40_000_000
