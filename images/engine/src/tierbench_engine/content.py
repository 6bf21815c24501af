"""The content of messages: entries of a file that the harness has filled."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

NUMBER_BYTES: Final = 8


class Content:
    """Message n is entry n modulo the number of entries. Its first bytes are the last bytes of n."""

    def __init__(self, file: memoryview, entries: int, sizes: Sequence[int]) -> None:
        self._file, self._entries, self._size = file, entries, sizes[0]
        self._ends = list(accumulate(sizes)) if len(sizes) > 1 else None
        self.number_bytes = min(NUMBER_BYTES, *sizes)
        self.largest = max(sizes)

    def message(self, number: int, most: int = 0) -> bytes:
        """Returns the message with a number, or its first bytes."""
        low = (number % 256**self.number_bytes).to_bytes(self.number_bytes, "big")
        message = b"".join((low, self._tail(number)))
        return message[:most] if most else message

    def number(self, message: bytes) -> int | None:
        """Returns the part of its number that a message holds, or None if the message was changed."""
        low = int.from_bytes(message[: self.number_bytes], "big")
        tail = self._tail(low)
        intact = len(message) == self.number_bytes + len(tail) and message.endswith(tail)
        return low if intact else None

    def _tail(self, number: int) -> memoryview:
        """Returns what follows the number. It is the same for all messages that do not hold a whole number."""
        entry = number % self._entries
        if self._ends is None:
            end = (entry + 1) * self._size
            return self._file[end - self._size + self.number_bytes : end]
        start = self._ends[entry - 1] if entry else 0
        return self._file[start + self.number_bytes : self._ends[entry]]
