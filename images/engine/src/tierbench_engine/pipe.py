"""The lines that the engine writes: events in batches, and everything else at once."""

import json
import time
from base64 import b64encode
from collections import deque
from struct import Struct
from threading import Lock
from typing import Any, BinaryIO, Final

Json = dict[str, Any]

SENT, ACKNOWLEDGED, ARRIVED, CORRUPT = 1, 2, 3, 4

_RECORD: Final = Struct("<HHIQq")
_RECORDS_A_LINE: Final = 1000
_PAUSE_SECONDS: Final = 0.02
_QUIET_TURNS: Final = 50


class FailureError(Exception):
    """A request failed. With a reason, no retry can succeed."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message

    def to_json(self) -> Json:
        """Returns the error of an answer."""
        return {"message": self.message, **({"reason": self.reason} if self.reason else {})}


class Pipe:
    """The output of the engine. Any thread may call any method."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._records: deque[bytes] = deque()
        self._lock = Lock()

    def event(self, kind: int, connection: int, number: int, at: int, size: int = 0) -> None:
        """Records an event of a message, which is written with others."""
        self._records.append(_RECORD.pack(kind, connection, size, number, at))

    def write(self, line: Json) -> None:
        """Writes all events so far, then a line."""
        with self._lock:
            self._write_events()
            self._out.write(json.dumps(line).encode() + b"\n")
            self._out.flush()

    def flush(self) -> None:
        """Writes all events so far."""
        with self._lock:
            if self._records:
                self._write_events()
                self._out.flush()

    def _write_events(self) -> None:
        records = self._records
        while records:
            batch = b"".join(records.popleft() for _ in range(min(len(records), _RECORDS_A_LINE)))
            self._out.write(b'{"events":"%s"}\n' % b64encode(batch))

    def report(self) -> None:
        """Writes events regularly, and one line per second without events: silence means that the engine hangs."""
        turn = 0
        while True:
            time.sleep(_PAUSE_SECONDS)
            turn = (turn + 1) % _QUIET_TURNS
            if turn:
                self.flush()
            else:
                self.write({})
