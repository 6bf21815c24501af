"""The trials of several brokers, each in its turn."""

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Protocol

from .contract import FAILED, FailureError, Json, now
from .kept import Kept
from .options import Message, Options
from .pool import Pool
from .readiness import await_broker
from .trial import run_trial
from .warm import warm


@dataclass(frozen=True)
class Turn:
    """A trial of the target with this index."""

    target: int
    number: int
    warmup: bool


@dataclass(frozen=True)
class Series:
    """All trials, in order. The targets differ in nothing but the broker."""

    targets: Sequence[Options]
    turns: Sequence[Turn]


class Report(Protocol):
    """Receives every trial."""

    def started(self, case: int, trial: int, warmup: bool) -> None:
        """It begins."""

    def ended(self, trial: Json) -> None:
        """What it was."""


class _LateError(Exception):
    """A target's deadline has passed."""


def run(series: Series, report: Report) -> None:
    """Trial after trial.

    Raises:
        FailureError: what ends the series early, and of which case.
    """
    pool = _pool(series.targets[0].message)
    ready = []
    for options in series.targets:
        with _blaming(options):
            found = await_broker(options, pool)
            warm(found, pool)
            ready.append(Kept(found, pool))
    spent = [0.0] * len(ready)
    for turn in series.turns:
        started, kept = time.monotonic(), ready[turn.target]
        with _blaming(kept.options):
            _take(kept, report, turn, spent[turn.target])
        spent[turn.target] += time.monotonic() - started
    for kept in ready:
        kept.close()


def _pool(message: Message) -> Pool:
    if message.folder is not None:
        return Pool.of_folder(message.folder)
    return Pool.of_kind(message.content, message.size, message.seed)


@contextmanager
def _blaming(options: Options) -> Iterator[None]:
    try:
        yield
    except FailureError as failure:
        failure.case = options.case
        raise


def _take(kept: Kept, report: Report, turn: Turn, spent: float) -> None:
    """Runs one trial. One that is cut off by the deadline is reported as such: it took longer than this."""
    options = kept.options
    head = {"case": options.case} if options.case else {}
    head |= {"trial": turn.number, "warmup": turn.warmup}
    start_time, started, late = now(), time.monotonic(), None
    try:
        with _limited(options.deadline_seconds, spent):
            trial = _observe(kept, report, turn)
    except _LateError:
        late = FailureError("TimedOut", f"the trials took longer than {options.deadline_seconds} s together")
        trial = {
            "outcome": FAILED,
            "failure": late.to_json(),
            "startTime": start_time,
            "durationNanoseconds": round((time.monotonic() - started) * 1e9),
        }
    report.ended({**head, **trial})
    if late is not None:
        raise late


def _observe(kept: Kept, report: Report, turn: Turn) -> Json:
    report.started(kept.options.case, turn.number, turn.warmup)
    return run_trial(kept, f"w{turn.number}" if turn.warmup else str(turn.number))


@contextmanager
def _limited(deadline_seconds: int | None, spent: float) -> Iterator[None]:
    """Raises _LateError within, in the main thread, once the rest of the deadline has passed."""
    if deadline_seconds is None:
        yield
        return
    before = signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, max(deadline_seconds - spent, 1e-6))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _late(_number: int, _frame: FrameType | None) -> None:
    raise _LateError
