"""Strikes that fall within a trial, on a machine of any speed.

A frozen engine cannot end its trial: freeze, see that the trial is open, strike, continue. If the trial was over, the
strike is tried again with a larger load. What a test asserts is never tried again.
"""

from collections.abc import Callable
from datetime import datetime
from time import time_ns

from tests.paho.broker import Mosquitto
from tests.paho.engine import Engine, Outcome

LOADS = (1, 4, 16)


class NotStruck(Exception):  # noqa: N818 (an outcome of a test, as passed and failed are)
    """No strike fell within the trial: nothing is known of what the test is about."""


def strike(
    start: Callable[[int], Engine],
    harm: Callable[[Engine], object],
    *,
    trial: int = 1,
    case: int = 0,
    sending_to: Mosquitto | None = None,
) -> Outcome:
    """Returns what an engine printed that was struck within a trial.

    `start` starts an engine with so many times the load. With `sending_to`, the strike falls while that broker, frozen
    too, has messages to read: `harm` ends it.

    Raises:
        NotStruck: the trial was over each time.
    """
    for load in LOADS:
        engine = start(load)
        try:
            struck = _strike(engine, harm, trial, case, sending_to)
        finally:
            engine.resume()
            if sending_to is not None:
                sending_to.resume()
        outcome = engine.outcome()
        if struck is not None and _falls_within(struck, outcome, trial, case):
            return outcome
    raise NotStruck(f"trial {trial} was over before the strike, even with {LOADS[-1]} times the load")


def _strike(
    engine: Engine, harm: Callable[[Engine], object], trial: int, case: int, sending_to: Mosquitto | None
) -> int | None:
    """When the strike fell; None if the trial was over."""
    engine.await_start(trial, case)
    if sending_to is not None:
        sending_to.freeze_with_messages_unread(unless=lambda: engine.has_ended(trial, case))
    engine.freeze()
    if engine.has_ended(trial, case):
        return None
    struck = time_ns()
    harm(engine)
    return struck


def _falls_within(struck: int, outcome: Outcome, trial: int, case: int) -> bool:
    """By the engine's own clock. A trial that the strike has ended has no end of its own."""
    for one in outcome.trials:
        if (one["trial"], one.get("case", 0), one["warmup"], one["outcome"]) == (trial, case, False, "Completed"):
            started = datetime.fromisoformat(one["startTime"]).timestamp() * 1e9
            return started <= struck <= started + float(one["exchange"]["sessionNanoseconds"])
    return True
