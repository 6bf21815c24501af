"""What could have spoiled the numbers of a broker's case, and what explains them."""

from collections.abc import Sequence
from typing import Final

from tierbench.api.result import Note, ResultTrial

SATURATED_SHARE: Final = 0.8
NODE_SATURATED_PARTS_PER_MILLION: Final = 950_000


def facts(good: Sequence[ResultTrial]) -> list[Note]:
    """What explains the numbers and spoils nothing: who was the limit, what was late, what came twice."""
    notes = []
    limited = sum(_broker_saturated(trial) for trial in good)
    if limited:
        message = f"In {limited} of {len(good)} trials the broker, or its node, used all its CPU: it was the limit."
        notes.append(Note(reason="BrokerSaturated", message=message))
    late = sum(trial.exchange.late_sends for trial in good if trial.exchange is not None)
    if late:
        message = f"{late} messages were sent later than intended: broker or subscribers were slower than the pace."
        notes.append(Note(reason="BehindPace", message=message))
    twice = sum(trial.exchange.duplicated for trial in good if trial.exchange is not None)
    if twice:
        notes.append(Note(reason="Duplicated", message=f"{twice} further copies of messages were received."))
    return notes


def _broker_saturated(trial: ResultTrial) -> bool:
    """Whether the broker's process used 80 % of one CPU, beyond which a single-threaded broker's queues grow, or its
    node 95 % of all."""
    sample = trial.server
    if trial.exchange is None or sample is None:
        return False
    whole_core = (sample.process_cpu_nanoseconds or 0) >= SATURATED_SHARE * trial.duration_nanoseconds
    return whole_core or (sample.cpu_parts_per_million or 0) >= NODE_SATURATED_PARTS_PER_MILLION


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
