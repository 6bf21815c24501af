"""What this program prints: version 1 of the contract between engine and operator."""

import hashlib
import json
import platform
import re
import signal
import zlib
from base64 import b64encode
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import time_ns
from typing import Any, BinaryIO, Final

from . import VERSION

COMPLETED: Final = "Completed"
FAILED: Final = "Failed"

_CONTRACT: Final = 1
_MESSAGE_BYTES: Final = 1000  # the contract allows 1024 characters, and a kubelet keeps 4096 bytes of a seal
_TERMINATION_BYTES: Final = 4096  # that a kubelet keeps of a termination message
_TAIL_BYTES: Final = 64 << 10  # of which never more than these are left when compressed
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_TERMINATION_LOG: Final = Path("/dev/termination-log")
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}

Json = dict[str, Any]


class FailureError(Exception):
    """A failure, with a reason that programs compare and a message for a person.

    `case` is the number of the failed case, or 0 if the failure is not that of one case.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason, self.message = reason, message
        self.case = 0

    def to_json(self) -> Json:
        """As the contract writes it: bounded, without control characters."""
        encoded = _CONTROL.sub(" ", self.message).encode(errors="replace")
        message = encoded[:_MESSAGE_BYTES].decode(errors="ignore") + "…" * (len(encoded) > _MESSAGE_BYTES)
        return {"reason": self.reason, "message": message, **({"case": self.case} if self.case else {})}


def now() -> str:
    """The wall clock's time with nanoseconds, as RFC 3339 writes it."""
    seconds, nanoseconds = divmod(time_ns(), 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanoseconds:09d}Z"


class Printer:
    """Writes the lines of the contract, and the seal that goes with them."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._digest = hashlib.sha256()
        self._trials = 0
        self._last: list[bytes] = []

    def started(self, case: int, trial: int, warmup: bool) -> None:
        """A trial begins."""
        of = {"case": case} if case else {}
        line = {"contract": _CONTRACT, "record": "TrialStarted", **of, "trial": trial, "warmup": warmup, "time": now()}
        self._write(line)

    def ended(self, trial: Json) -> None:
        """What a trial was."""
        with _undisturbed():
            line = self._write({"contract": _CONTRACT, "record": "Trial", **trial})
            self._digest.update(line)
            self._trials += 1
            self._last.append(line)
            while sum(map(len, self._last)) > _TAIL_BYTES:
                del self._last[0]

    def seal(self, failure: FailureError | None) -> Json:
        """The termination message for what was printed so far. It holds as many of the last trials as fit."""
        ended = {} if failure is None else {"failure": failure.to_json()}
        engine = {
            "name": "tierbench-paho",
            "version": f"{VERSION} (paho-mqtt {version('paho-mqtt')})",
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        }
        sealed: Json = {"contract": _CONTRACT, "trials": self._trials, "sha256": self._digest.hexdigest()}
        sealed |= {**ended, "engine": engine}
        room = _TERMINATION_BYTES - len(_encode({**sealed, "lines": ""}))
        left = bisect_left(range(len(self._last)), True, key=lambda first: len(pack(self._last[first:])) <= room)
        return {**sealed, "lines": pack(self._last[left:])} if left < len(self._last) else sealed

    def _write(self, record: Json) -> bytes:
        line = _encode(record) + b"\n"
        self._out.write(line)
        self._out.flush()
        return line


def pack(lines: Sequence[bytes]) -> str:
    """Lines of a seal, as the operator reads them."""
    return b64encode(zlib.compress(b"".join(lines), 9)).decode()


def _encode(record: Json) -> bytes:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A signal waits, so that what is printed and what is sealed are the same."""
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)


def write_termination(path: Path | None, message: Json) -> None:
    """Leaves a message in a file, or without one where a container's belongs, or nowhere outside of one."""
    if path is None and _TERMINATION_LOG.exists():
        path = _TERMINATION_LOG
    if path is not None:
        path.write_bytes(_encode(message))
