"""A case that ran out of time leaves its fast trials: that has to be known of it."""

from typing import Any

from tests.unit.results.test_record import EXHAUSTED, NOW, line, measured, spec
from tierbench.api.model import Metadata
from tierbench.api.result import BenchmarkResult, Missing, Note, ResultStatus
from tierbench.results.censoring import censored
from tierbench.results.record import conclude, fail, record

OUT_OF_TIME = Note(reason="TimedOut", message="The client ran out of time.")


def result(status: ResultStatus) -> BenchmarkResult:
    return BenchmarkResult(metadata=Metadata(name="r"), spec=spec(warmup=0), status=status)


def test_a_case_that_ran_out_of_time_is_a_censored_sample() -> None:
    wanted = spec(warmup=0)
    status = conclude(wanted, record(wanted, ResultStatus(), [line(1), line(2)], 1), NOW, None, OUT_OF_TIME)
    assert status.missing == Missing(trials=3, reason="TimedOut", message="The client ran out of time.")
    assert "Only 2 of 5 trials were run: The client ran out of time." in [note.message for note in status.invalid]
    assert censored(result(status))


def test_trials_lost_for_another_reason_leave_a_fair_sample() -> None:
    wanted, lost = spec(warmup=0), Note(reason="ClientLost", message="The pod was lost.")
    status = conclude(wanted, record(wanted, ResultStatus(), [line(1)], 1), NOW, None, lost)
    assert status.missing == Missing(trials=4, reason="ClientLost", message="The pod was lost.")
    assert not censored(result(status))


def test_nothing_is_missing_of_a_whole_case() -> None:
    whole = measured([line(1), line(2)])
    assert whole.missing is None
    assert not censored(result(whole))


def test_a_case_without_one_trial_in_time_is_censored() -> None:
    wanted = spec(warmup=0)
    assert censored(result(fail(wanted, ResultStatus(), NOW, "TimedOut", "The client ran out of time.")))
    assert not censored(result(fail(wanted, ResultStatus(), NOW, "NoReadyNode", "There is none.")))


def test_a_trial_that_was_cut_off_is_censored() -> None:
    cut: dict[str, Any] = {"outcome": "Failed", "failure": {"reason": "TimedOut", "message": "30 s"}}
    assert censored(result(measured([line(1), line(2, **cut)])))
    assert not censored(result(measured([line(1), line(2, **EXHAUSTED)])))
