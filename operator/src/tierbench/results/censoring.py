"""Whether slow trials were cut off: what is left is then a sample of the fast ones."""

from typing import Final

from tierbench.api.result import BenchmarkResult, ResultPhase

TIMED_OUT: Final = "TimedOut"
"""Why a case, or a trial, was ended before it had ended by itself."""


def censored(result: BenchmarkResult) -> bool:
    """Whether trials were cut off because they took too long.

    The mean of the times that are there is then no more than a lower bound, and that of rates an upper one: such a
    result can show that a class is worse, and never that it is better, equal or keeps to a limit.
    """
    status = result.status
    missing = status.missing.reason if status.missing is not None else ""
    ended = status.reason if status.phase is ResultPhase.FAILED else missing
    counted = (trial for trial in status.trials if not trial.warmup) if status.counts.failed else ()
    return ended == TIMED_OUT or any(
        trial.failure is not None and trial.failure.reason == TIMED_OUT for trial in counted
    )
