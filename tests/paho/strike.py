"""Strikes within a trial, on a machine of any speed.

A frozen engine cannot end its trial. So the harness freezes the engine, checks that the trial is open, strikes, and
resumes. If the trial was over, it repeats the strike with a larger load. It never repeats an assertion.
"""

from collections.abc import Callable
from datetime import datetime
from time import time_ns

from tests.paho.broker import Mosquitto
from tests.paho.engine import Engine, Outcome

LOADS = (1, 4, 16)


class NotStruck(Exception):  # noqa: N818 (an outcome of a test, as passed and failed are)
    """No strike fell within the trial, so the test has shown nothing."""


def strike(
    start: Callable[[int], Engine],
    harm: Callable[[Engine], object],
    *,
    trial: int = 1,
    case: int = 0,
    sending_to: Mosquitto | None = None,
) -> Outcome:
    """Strikes within a trial, and returns the outcome of the engine.

    `start` starts an engine with a multiple of the load. With `sending_to`, that broker is frozen too, and has unread
    messages during the strike. `harm` then ends it.

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
    """Returns the time of the strike, or None if the trial was over."""
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
    """Compares times of the engine's clock. The strike has ended a trial that is not complete."""
    for one in outcome.trials:
        if (one["trial"], one.get("case", 0), one["warmup"], one["outcome"]) == (trial, case, False, "Completed"):
            started = datetime.fromisoformat(one["startTime"]).timestamp() * 1e9
            return started <= struck <= started + float(one["exchange"]["sessionNanoseconds"])
    return True
