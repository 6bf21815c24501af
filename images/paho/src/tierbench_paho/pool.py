"""The messages of all pairs: each another part of one pool."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Self

from .contract import FailureError
from .payload import contents

POOL_BYTES: Final = 16 << 20  # no batch, and no compressor's window, holds one message twice
NUMBER_BYTES: Final = 8


class Pool:
    """Messages in sequence from the pool; their first bytes are their number's last ones.

    Any thread may call any method.
    """

    def __init__(self, entry: Callable[[int], memoryview], entries: int, largest: int = 0) -> None:
        self.number_bytes = min(NUMBER_BYTES, len(entry(0)))
        self._entry, self._entries, self._largest = entry, entries, largest

    @classmethod
    def of_kind(cls, kind: str, size: int, seed: int) -> Self:
        """Messages of `size` bytes that are made."""
        entries = -(-POOL_BYTES // size) if size > NUMBER_BYTES else 1
        made = memoryview(contents(kind, size, entries, seed))
        return cls(lambda index: made[index * size : (index + 1) * size], entries)

    @classmethod
    def of_folder(cls, folder: Path) -> Self:
        """A user's own messages: the files of a folder, by name.

        Raises:
            FailureError: they cannot be used.
        """
        try:
            own = _messages_in(folder)
        except (OSError, ValueError) as error:
            raise FailureError("MessagesUnusable", str(error)) from error
        largest = max(range(len(own)), key=lambda index: len(own[index]))
        return cls(own.__getitem__, len(own), largest)

    @property
    def largest(self) -> bytes:
        """A message that is no smaller than any."""
        return self.message(self._largest)

    def next(self, number: int) -> int:
        """Returns the first number from this one on whose message is the first of the pool."""
        return -(-number // self._entries) * self._entries

    def message(self, number: int) -> bytes:
        """The one with a number."""
        low = (number % 256**self.number_bytes).to_bytes(self.number_bytes, "big")
        return b"".join((low, self._tail(number)))

    def number(self, message: bytes) -> int | None:
        """The last bytes of a message's number; None if it is none of the pool's."""
        low = int.from_bytes(message[: self.number_bytes], "big")
        tail = self._tail(low)
        intact = len(message) == self.number_bytes + len(tail) and message.endswith(tail)
        return low if intact else None

    def _tail(self, number: int) -> memoryview:
        """What follows the number. A number that does not fit has no tail, so that its last bytes do for it."""
        return self._entry(number % self._entries)[self.number_bytes :]


def _messages_in(folder: Path) -> Sequence[memoryview]:
    # Names with two dots are the kubelet's, not keys of a ConfigMap.
    files = sorted(file for file in folder.glob("*") if not file.name.startswith(".."))
    own = [memoryview(file.read_bytes()) for file in files]
    for file, message in zip(files, own, strict=True):
        if len(message) <= NUMBER_BYTES:
            raise ValueError(
                f"message {file.name} of {folder.name} has {len(message)} bytes: "
                f"use at least {NUMBER_BYTES + 1}, because its number replaces the first {NUMBER_BYTES}"
            )
    if not own:
        raise ValueError(
            f"{folder.name} has no messages: create a ConfigMap of this name in the benchmark's namespace, "
            "each key a message"
        )
    return own
