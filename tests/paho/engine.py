"""The engine as a process, and what it said, held against the contract."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema

from tests.paho.broker import Mosquitto

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "images/client/contract.schema.json").read_text())
PATIENCE_SECONDS = 60

_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "images/paho/src")}


@dataclass(frozen=True)
class Said:
    """Exit code, Trial lines, and the seal."""

    code: int
    trials: list[dict[str, Any]]
    seal: dict[str, Any]

    @property
    def reason(self) -> str | None:
        """Why the program ended early."""
        failure = self.seal.get("failure")
        return None if failure is None else str(failure["reason"])


class Engine:
    """One that runs."""

    def __init__(self, folder: Path, *flags: object) -> None:
        self._termination = folder / f"termination-{len(list(folder.iterdir()))}"
        command = [sys.executable, "-m", "tierbench_paho.main", "broker", "--output=json"]
        self._process = subprocess.Popen(
            [*command, f"--termination-log={self._termination}", *map(str, flags)],
            env=_ENVIRONMENT,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._log = ""

    def await_line(self, record: str) -> None:
        """Reads until a record of a kind has been printed."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._log += line
            if json.loads(line)["record"] == record:
                return
        raise AssertionError(f"the engine ended without a {record}")

    def tell_to_end(self) -> None:
        """As the kubelet does."""
        self._process.send_signal(signal.SIGTERM)

    def said(self) -> Said:
        """All of it, when it has ended."""
        try:
            rest, _ = self._process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            self._process.kill()
        lines = [json.loads(line) for line in (self._log + rest).splitlines()]
        seal = json.loads(self._termination.read_text())
        for body in (*lines, seal):
            jsonschema.validate(body, SCHEMA)
        return Said(self._process.returncode, [line for line in lines if line["record"] == "Trial"], seal)


def flags(broker: Mosquitto, **changes: object) -> list[str]:
    """A command line for a broker, with changes: None takes a flag out, True gives it without a value."""
    wanted: dict[str, object] = {
        "url": f"mqtt://127.0.0.1:{broker.plain}",
        "username_file": broker.folder / "username",
        "password_file": broker.folder / "password",
        "topic": "tierbench/test",
        "pairs": 2,
        "in_flight": 8,
        "messages": 200,
        "patience_milliseconds": 1000,
        "ready_milliseconds": 5000,
        **changes,
    }
    given = {f"--{name.replace('_', '-')}": value for name, value in wanted.items() if value is not None}
    return [name if value is True else f"{name}={value}" for name, value in given.items()]
