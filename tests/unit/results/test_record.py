"""A result grows trial by trial: in any order, however often a log is read, nothing is counted twice."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.domain.world import trial_line
from tierbench.api.contract import TrialLine
from tierbench.api.result import ResultPhase, ResultSpec, ResultStatus
from tierbench.kinds.file_transfer.measures import io_bound
from tierbench.results.record import conclude, due, fail, record

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GIB = 2**30
COMPUTER: dict[str, Any] = {
    "cpuFrequencyKilohertz": 1_500_000, "cpuMaximumKilohertz": 1_500_000, "cpuGovernor": "performance",
    "powerMode": "MODE_15W_6CORE", "temperatureMillidegrees": 61_500, "thermalThrottles": 0,
    "quotaThrottledNanoseconds": 0, "interface": "eth0", "mtuBytes": 1500, "congestionControl": "cubic",
}  # fmt: skip
EXHAUSTED: dict[str, Any] = {
    "outcome": "Failed",
    "failure": {"reason": "AttemptsExhausted", "message": "20 attempts"},
}


def spec(*, trials: int = 5, warmup: int = 1, memory: int = 4 * GIB, **levels: str) -> ResultSpec:
    body = {
        "benchmark": {"kind": "FileTransferBenchmark", "name": "demo"},
        "run": 1,
        "case": 1,
        "levels": {"fileSize": "1Gi", "concurrency": "1", "cacheState": "Natural", "tls": "None", **levels},
        "conditions": {"access": "PodIP"},
        "server": {"nodeClass": "jetson", "node": "j1", "memoryBytes": memory},
        "client": {"nodeClass": "user", "node": "u1"},
        "trials": trials,
        "warmup": warmup,
    }
    return ResultSpec.model_validate(body)


def line(number: int, *, warmup: bool = False, nanoseconds: int = 10**9, **more: object) -> TrialLine:
    body = json.loads(trial_line(number, warmup=warmup, nanoseconds=nanoseconds))
    body["distributions"] = {
        "downloadDuration": {"schema": 6, "count": 1, "sumNanoseconds": nanoseconds, "indexes": [1914], "counts": [1]}
    }
    return TrialLine.model_validate(body | more)


def sample(**fields: Any) -> dict[str, Any]:
    return {"residentBeforePartsPerMillion": 1_000_000, **fields}


def client(nanoseconds: int, limit: int | None, **computer: Any) -> dict[str, Any]:
    return {"cpuNanoseconds": nanoseconds, "cpuLimitMillicores": limit, "computer": computer or None}


def measured(lines: list[TrialLine], **options: Any) -> ResultStatus:
    wanted = spec(**{"trials": len(lines), "warmup": 0, **options})
    return conclude(wanted, record(wanted, ResultStatus(), lines, 1), NOW, None)


@given(st.permutations(range(1, 6)), st.lists(st.integers(1, 5), max_size=10))
def test_any_order_and_any_repetition_count_once(order: list[int], again: list[int]) -> None:
    wanted = spec()
    status = record(wanted, ResultStatus(), [line(number) for number in [*order, *again]], 1)
    status = record(wanted, status, [line(number) for number in again], 2)
    assert [trial.trial for trial in status.trials] == [1, 2, 3, 4, 5]
    assert status.counts.completed == 5
    assert status.distributions.download_duration is not None
    assert status.distributions.download_duration.count == 5
    assert due(wanted, status) == ()


def test_warmup_is_kept_and_not_counted() -> None:
    status = record(spec(), ResultStatus(), [line(1, nanoseconds=10**9), line(1, warmup=True, nanoseconds=10**12)], 1)
    assert [trial.warmup for trial in status.trials] == [True, False]
    assert status.statistics["durationNanoseconds"].mean == 10**9
    assert status.distributions.download_duration is not None
    assert status.distributions.download_duration.sum_nanoseconds == 10**9
    assert due(spec(), status) == (2, 3, 4, 5)


def test_failed_trials_stand_outside_the_mean() -> None:
    status = measured([line(1), line(2, nanoseconds=10**12, **EXHAUSTED)])
    assert status.phase is ResultPhase.MEASURED
    assert (status.counts.completed, status.counts.failed) == (1, 1)
    assert status.statistics["durationNanoseconds"].mean == 10**9
    assert [note.reason for note in status.invalid] == ["TrialsFailed", "ServerNotObserved"]


def test_nothing_but_failures_fails_for_their_reason() -> None:
    bad: dict[str, Any] = {"outcome": "Failed", "failure": {"reason": "NotFound", "message": "404"}}
    status = measured([line(1, **bad), line(2, **bad)])
    assert (status.phase, status.reason, status.valid) == (ResultPhase.FAILED, "NotFound", None)


def test_the_reason_is_the_one_of_most_trials_whatever_their_messages() -> None:
    reasons = ["Refused", "AttemptsExhausted", "AttemptsExhausted"]
    failures = [{"reason": reason, "message": f"{number}: {reason}"} for number, reason in enumerate(reasons, 1)]
    status = measured([line(number, outcome="Failed", failure=what) for number, what in enumerate(failures, 1)])
    assert (status.reason, status.message) == ("AttemptsExhausted", "2: AttemptsExhausted")


def test_a_failed_case_says_what_explains_it() -> None:
    status = measured([line(1, **EXHAUSTED)], memory=GIB // 2)
    assert [note.reason for note in status.facts] == ["CacheCannotHold"]


def test_no_trial_at_all_fails() -> None:
    status = conclude(spec(), ResultStatus(), NOW, None)
    assert (status.phase, status.reason, status.message) == (ResultPhase.FAILED, "NoTrial", "No trial was run.")


def test_a_second_client_is_an_interruption() -> None:
    wanted = spec(trials=2, warmup=0)
    status = record(wanted, record(wanted, ResultStatus(), [line(1)], 1), [line(2)], 2)
    final = conclude(wanted, status, NOW, None)
    assert final.counts.interruptions == 1
    assert "Resumed" in [note.reason for note in final.facts]


def test_trials_that_were_not_asked_for_are_passed_over() -> None:
    wanted = spec(trials=1, warmup=1)
    status = record(wanted, ResultStatus(), [line(1), line(2), line(2, warmup=True)], 1)
    assert [(trial.warmup, trial.trial) for trial in status.trials] == [(False, 1)]


def test_retries_are_counted_by_cause_in_failed_trials_too() -> None:
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


def test_fail_keeps_trials() -> None:
    status = fail(spec(), record(spec(), ResultStatus(), [line(1)], 1), NOW, "NodeNotReady", "gone")
    assert status.phase is ResultPhase.FAILED
    assert len(status.trials) == 1
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


def test_larger_than_memory_is_a_fact() -> None:
    status = measured([line(1, server=sample())], memory=GIB // 2)
    assert [note.reason for note in status.facts] == ["CacheCannotHold"]
    assert status.valid


@pytest.mark.parametrize("evidence", ["ioWaitPartsPerMillion", "ioPressurePartsPerMillion"])
@pytest.mark.parametrize(
    ("read", "waited", "bound"), [(2**20, 60_000, True), (2**20, 10_000, False), (2**18, 60_000, False)]
)
def test_io_bound_is_said_only_from_evidence(evidence: str, read: int, waited: int, bound: bool) -> None:
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
def test_a_file_is_read_once_and_one_waiting_task_is_one_cpu(
    cores: int, downloads: int, seen: dict[str, int], bound: bool | None
) -> None:
    wanted = spec(trials=1, warmup=0)
    server = wanted.server.model_copy(update={"cpu_millicores": 1000 * cores})
    transfer = {"bytes": 2**20, "downloads": downloads}
    status = record(wanted, ResultStatus(), [line(1, server=sample(**seen), transfer=transfer)], 1)
    assert io_bound(wanted.model_copy(update={"server": server}), status.trials[0]) is bound


@pytest.mark.parametrize(
    ("governor", "khz", "said"), [("performance", 1, True), ("ondemand", 1, False), ("performance", 2, False)]
)
def test_a_frequency_below_the_maximum_is_remarked(governor: str, khz: int, said: bool) -> None:
    computer = {"cpuGovernor": governor, "cpuFrequencyKilohertz": khz, "cpuMaximumKilohertz": 2}
    status = measured([line(1, server=sample(computer=computer))])
    assert ("FrequencyBelowMaximum" in [note.reason for note in status.facts]) == said
    assert status.valid


def test_the_most_trials_stay_within_56_kib() -> None:
    full = sample(
        residentAfterPartsPerMillion=999_999, deviceReadBytes=5 * 10**9, ioWaitPartsPerMillion=123_456,
        ioPressurePartsPerMillion=123_456, cpuPartsPerMillion=123_456, tcpRetransmits=12_345, tcpSegmentsSent=3_456_789,
        roundTripNanoseconds=1_234_567, roundTripMaximumNanoseconds=12_345_678, cpuLimitMillicores=16_000,
        memoryAvailableBytes=5 * 10**9, computer=COMPUTER,
    )  # fmt: skip
    transfer = {
        "bytes": 5 * 10**9, "downloads": 4, "retries": 12, "retryCauses": {"Stalled": 12}, "dnsNanoseconds": 1_234_567,
        "connectNanoseconds": 1_234_567, "tlsNanoseconds": 1_234_567, "firstByteNanoseconds": 1_234_567,
        "longestStallNanoseconds": 1_234_567_890,
    }  # fmt: skip
    more: dict[str, Any] = {"server": full, "client": client(10**9, 16_000, **COMPUTER)}
    lines = [line(number, transfer=transfer, nanoseconds=10**10 + number, **more) for number in range(1, 31)]
    status = measured(
        [*lines, *(line(number, warmup=True, **more) for number in range(1, 6))],
        trials=30,
        warmup=5,
    )
    assert len(status.trials) == 35
    assert len(json.dumps(status.to_json()).encode()) <= 56 * 1024
