"""The messages of all pairs: each another part of one pool."""

from typing import Final

from .payload import contents

POOL_BYTES: Final = 16 << 20  # no batch, and no compressor's window, holds one message twice
NUMBER_BYTES: Final = 8


class Pool:
    """Messages of `size` bytes, in sequence from the pool; their first bytes are their number's last ones.

    Any thread may call any method.
    """

    def __init__(self, kind: str, size: int, seed: int) -> None:
        self.size = size
        self.number_bytes = min(NUMBER_BYTES, size)
        self._messages = -(-POOL_BYTES // size)
        beyond = size > self.number_bytes
        self._bytes = memoryview(contents(kind, size, self._messages, seed) if beyond else b"")

    def message(self, number: int) -> bytes:
        """The one with a number."""
        low = (number % 256**self.number_bytes).to_bytes(self.number_bytes, "big")
        return b"".join((low, self._tail(number)))

    def number(self, message: bytes) -> int | None:
        """The last bytes of a message's number; None if it is none of the pool's."""
        low = int.from_bytes(message[: self.number_bytes], "big")
        intact = len(message) == self.size and message.endswith(self._tail(low))
        return low if intact else None

    def _tail(self, number: int) -> memoryview:
        """What follows the number. A number that does not fit has no tail, so that its last bytes do for it."""
        start = number % self._messages * self.size
        return self._bytes[start + self.number_bytes : start + self.size]
