"""A result grows trial by trial: in any order, however often a log is read, nothing is counted twice."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.domain.world import seal, trial_line
from tierbench.api.contract import TrialLine
from tierbench.api.result import ResultPhase, ResultSpec, ResultStatus
from tierbench.results.output import SealState, check_seal, parse_output
from tierbench.results.record import conclude, due, fail, record

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GIB = 2**30


def spec(*, trials: int = 5, warmup: int = 1, memory: int = 4 * GIB, **levels: str) -> ResultSpec:
    body = {
        "benchmark": {"kind": "FileTransferBenchmark", "name": "demo"},
        "run": 1,
        "case": 1,
        "levels": {"fileSize": "1Gi", "concurrency": "1", "cacheState": "Natural", "tls": "None", **levels},
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


def sample(**fields: int) -> dict[str, int]:
    return {"residentBeforePartsPerMillion": 1_000_000, **fields}


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
    assert due(spec(), status) == (2, 3, 4, 5)


def test_failed_trials_stand_outside_the_mean() -> None:
    bad: dict[str, Any] = {"outcome": "Failed", "failure": {"reason": "AttemptsExhausted", "message": "20 attempts"}}
    status = measured([line(1), line(2, nanoseconds=10**12, **bad)])
    assert status.phase is ResultPhase.MEASURED
    assert (status.counts.completed, status.counts.failed) == (1, 1)
    assert status.statistics["durationNanoseconds"].mean == 10**9
    assert [note.reason for note in status.invalid] == ["TrialsFailed", "ServerNotObserved"]


def test_nothing_but_failures_fails_for_their_reason() -> None:
    bad: dict[str, Any] = {"outcome": "Failed", "failure": {"reason": "NotFound", "message": "404"}}
    status = measured([line(1, **bad), line(2, **bad)])
    assert (status.phase, status.reason, status.valid) == (ResultPhase.FAILED, "NotFound", None)


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
        ([line(1, server=sample(), client={"cpuNanoseconds": 950_000_000})], {}, ["ClientSaturated"]),
        ([line(1, server=sample(residentBeforePartsPerMillion=500_000))], {"cacheState": "Warm"}, ["CacheNotWarm"]),
        (
            [line(1, server=sample(residentBeforePartsPerMillion=500_000))],
            {"cacheState": "Warm", "memory": GIB // 2},
            [],
        ),
        ([line(1, server=sample())], {"cacheState": "Cold"}, ["CacheNotCold"]),
        ([line(1, server=sample(residentBeforePartsPerMillion=9_000))], {"cacheState": "Cold"}, []),
        ([line(1, server=sample()), line(2, server=sample(), nanoseconds=4 * 10**9)], {}, ["SpreadTooWide"]),
        ([line(1, server=sample())], {"trials": 2}, ["TrialsMissing"]),
    ],
)
def test_validity(lines: list[TrialLine], options: dict[str, Any], reasons: list[str]) -> None:
    status = measured(lines, **options)
    assert [note.reason for note in status.invalid] == reasons
    assert status.valid == (not reasons)


def test_larger_than_memory_is_a_fact() -> None:
    status = measured([line(1, server=sample())], memory=GIB // 2)
    assert [note.reason for note in status.facts] == ["CacheCannotHold"]
    assert status.valid


@pytest.mark.parametrize(
    ("read", "waited", "bound"), [(2**20, 60_000, True), (2**20, 10_000, False), (2**18, 60_000, False)]
)
def test_io_bound_is_said_only_from_evidence(read: int, waited: int, bound: bool) -> None:
    status = measured([line(1, server=sample(deviceReadBytes=read, ioWaitPartsPerMillion=waited))])
    assert ("IOBound" in [note.reason for note in status.facts]) == bound


def test_the_most_trials_stay_within_32_kib() -> None:
    full = sample(
        residentAfterPartsPerMillion=999_999, deviceReadBytes=5 * 10**9, ioWaitPartsPerMillion=123_456,
        ioPressurePartsPerMillion=123_456, cpuPartsPerMillion=123_456, tcpRetransmits=12_345, tcpSegmentsSent=3_456_789,
        roundTripNanoseconds=1_234_567, roundTripMaximumNanoseconds=12_345_678,
    )  # fmt: skip
    transfer = {
        "bytes": 5 * 10**9, "downloads": 4, "retries": 12, "retryCauses": {"Stalled": 12}, "dnsNanoseconds": 1_234_567,
        "connectNanoseconds": 1_234_567, "tlsNanoseconds": 1_234_567, "firstByteNanoseconds": 1_234_567,
        "longestStallNanoseconds": 1_234_567_890,
    }  # fmt: skip
    lines = [line(number, server=full, transfer=transfer, nanoseconds=10**10 + number) for number in range(1, 31)]
    status = measured(
        [*lines, *(line(number, warmup=True, server=full) for number in range(1, 6))],
        trials=30,
        warmup=5,
    )
    assert len(status.trials) == 35
    assert len(json.dumps(status.to_json()).encode()) <= 32 * 1024


def test_seal() -> None:
    log = trial_line(1) + trial_line(2)
    assert check_seal(log, seal(log)).state is SealState.COMPLETE
    assert check_seal(trial_line(1), seal(log)).state is SealState.CUT_SHORT
    assert check_seal(log.replace("1000000000", "1000000001"), seal(log)).state is SealState.CUT_SHORT
    assert check_seal(log, "").state is SealState.MISSING
    assert check_seal(log, "Killed").state is SealState.MISSING
    assert check_seal(log, '{"contract": 2}').state is SealState.UNKNOWN_VERSION


@given(st.text(), st.integers(0, 400))
def test_a_log_may_hold_anything_and_end_anywhere(noise: str, cut: int) -> None:
    log = trial_line(1) + noise + "\n" + trial_line(2)
    whole = [trial.trial for trial in parse_output(log[: len(log) - cut]).trials]
    assert whole in ([1, 2], [1], [])
    assert cut or whole == [1, 2]


def test_another_version_is_a_problem_and_not_a_trial() -> None:
    output = parse_output(trial_line(1).replace('"contract": 1', '"contract": 9'))
    assert output.trials == ()
    assert "contract 9" in output.problems[0]
