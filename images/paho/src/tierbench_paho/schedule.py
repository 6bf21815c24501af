"""When the messages of an open loop are due. Pure: times are nanoseconds of one clock."""

import random
from bisect import bisect_left
from dataclasses import dataclass
from sys import maxsize


@dataclass(frozen=True)
class Schedule:
    """Message 0 is due at `first`, each further one an interval later."""

    first: int
    interval_nanoseconds: float

    def due(self, number: int) -> int:
        """When the message with a number is."""
        return self.first + round(number * self.interval_nanoseconds)

    def due_before(self, moment: int) -> int:
        """How many messages are due before a time."""
        return bisect_left(range(maxsize), moment, key=self.due)


def phase(seed: int, pair: int) -> float:
    """Where in its first interval a pair starts, from 0 to 1: pairs that start together would send in bursts."""
    return random.Random(f"{seed}/{pair}").random()  # noqa: S311 (a phase, not a secret)
