"""What could have spoiled the numbers of a broker's case, and what explains them."""

from collections.abc import Sequence
from typing import Final

from tierbench.api.result import Note, ResultSpec, ResultTrial

SATURATED_SHARE: Final = 0.8
_KAFKAS_OWN: Final = "codec"  # a factor that no other broker has
NODE_SATURATED_PARTS_PER_MILLION: Final = 950_000


def facts(spec: ResultSpec, good: Sequence[ResultTrial]) -> list[Note]:
    """What explains the numbers and spoils nothing: who was the limit, what was late, what came twice."""
    notes = []
    single_threaded = _KAFKAS_OWN not in spec.levels
    limited = sum(_broker_saturated(trial, single_threaded) for trial in good)
    if limited:
        message = f"In {limited} of {len(good)} trials the broker, or its node, used all its CPU: it was the limit."
        notes.append(Note(reason="BrokerSaturated", message=message))
    late = sum(trial.exchange.late_sends for trial in good if trial.exchange is not None)
    unsent = sum(trial.exchange.unsent for trial in good if trial.exchange is not None)
    if late or unsent:
        message = (
            f"{late} messages were sent later than intended, and {unsent} that were due not at all: "
            "broker or subscribers were slower than the pace."
        )
        notes.append(Note(reason="BehindPace", message=message))
    moving = sum(trial.exchange.steady is False for trial in good if trial.exchange is not None)
    if moving:
        message = (
            f"In {moving} of {len(good)} trials round trips came to no steady state: nothing was left out of them. "
            "Make the load longer."
        )
        notes.append(Note(reason="NotSteady", message=message))
    twice = sum(trial.exchange.duplicated for trial in good if trial.exchange is not None)
    if twice:
        notes.append(Note(reason="Duplicated", message=f"{twice} further copies of messages were received."))
    return notes


def _broker_saturated(trial: ResultTrial, single_threaded: bool) -> bool:
    """Whether the broker's process used 80 % of what it may: of one CPU, if it is single-threaded, and its queues grow
    beyond that; else of its limit. Or its node 95 % of all."""
    sample = trial.server
    if trial.exchange is None or sample is None:
        return False
    limit = 1000 if single_threaded else sample.cpu_limit_millicores
    used = (sample.process_cpu_nanoseconds or 0) * 1000
    saturated = limit is not None and 0 < SATURATED_SHARE * limit * trial.duration_nanoseconds <= used
    return saturated or (sample.cpu_parts_per_million or 0) >= NODE_SATURATED_PARTS_PER_MILLION


def invalid(good: Sequence[ResultTrial]) -> list[Note]:
    """What could have spoiled the numbers: messages that did not arrive."""
    exchanges = [trial.exchange for trial in good if trial.exchange is not None]
    notes = []
    broken = sum(one.acknowledged_lost for one in exchanges)
    if broken:
        message = f"{broken} messages were acknowledged by the broker and never delivered: did it lose its memory?"
        notes.append(Note(reason="AcknowledgedLost", message=message))
    lost = sum(one.lost for one in exchanges)
    if lost > broken:
        sent = sum(one.sent for one in exchanges)
        message = f"{lost} of {sent} messages were lost: the times are of those that arrived."
        notes.append(Note(reason="MessagesLost", message=message))
    return notes
