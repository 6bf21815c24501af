"""The program: it says hello, and does what it is asked for, each request in a thread of its own."""

import json
import mmap
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from threading import Thread
from time import monotonic_ns
from typing import Final

from . import VERSION
from .connection import DELIVERIES, Connection
from .content import Content
from .envelope import COMPRESSIONS, ENCRYPTIONS
from .pipe import FailureError, Json, Pipe
from .run import Run
from .waiting import use_poll

_CONTENT: Final = 3


def hello() -> Json:
    """What this engine is, and what it can do."""
    return {
        "protocol": 1,
        "name": "tierbench-paho",
        "version": f"{VERSION} (paho-mqtt {version('paho-mqtt')})",
        "clock": monotonic_ns(),
        "processors": 1,  # Python runs one thread at a time
        "schemes": ["mqtt", "mqtts"],
        "deliveries": DELIVERIES,
        "compressions": COMPRESSIONS,
        "encryptions": ENCRYPTIONS,
    }


class Engine:
    """The connections, by their numbers."""

    def __init__(self, file: memoryview, pipe: Pipe) -> None:
        self._file, self._pipe = file, pipe
        self._connections: dict[int, Connection] = {}

    def answer(self, asked: Json) -> None:
        """Answers a request."""
        actions: dict[str, Callable[[Json], Json | None]] = {
            "connect": self._connect,
            "subscribe": lambda asked: self._of(asked).subscribe(asked["topic"], asked.get("echo", "")),
            "send": self._send,
            "release": lambda asked: self._of(asked).release(),
            "confirm": lambda asked: self._of(asked).confirm(),
            "count": lambda asked: self._of(asked).count(),
            "close": self._close,
        }
        try:
            answer = actions[asked["do"]](asked) or {}
        except FailureError as failure:
            answer = {"error": failure.to_json()}
        except Exception as error:
            answer = {"error": FailureError("", f"{type(error).__name__}: {error}").to_json()}
        self._pipe.write({"id": asked["id"], **answer})

    def _of(self, asked: Json) -> Connection:
        return self._connections[asked["connection"]]

    def _connect(self, asked: Json) -> Json:
        content = Content(self._file, asked["entries"], asked["sizes"])
        made = self._connections[asked["connection"]] = Connection(asked, content, self._pipe)
        try:
            return made.connect()
        except FailureError:
            self._connections.pop(made.number, None)
            raise

    def _send(self, asked: Json) -> Json:
        made = self._of(asked)
        return {"sent": made.send(Run(asked, made.content), self._connections.get(asked["back"]))}

    def _close(self, asked: Json) -> Json | None:
        made = self._connections.pop(asked["connection"], None)
        return None if made is None else made.close()


def main() -> None:
    """Runs until the harness ends."""
    use_poll()
    pipe = Pipe(sys.stdout.buffer)
    engine = Engine(memoryview(mmap.mmap(_CONTENT, 0, prot=mmap.PROT_READ)), pipe)
    pipe.write({"hello": hello()})
    Thread(target=pipe.report, daemon=True).start()
    for line in sys.stdin.buffer:
        Thread(target=engine.answer, args=(json.loads(line),), daemon=True).start()
    os._exit(0)  # no thread is waited for


if __name__ == "__main__":
    main()
