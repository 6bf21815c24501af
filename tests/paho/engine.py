"""Runs the client with an engine in Python, and validates its output by the contract."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic.alias_generators import to_camel

from tests.contract.schema import CONTRACT
from tests.paho.broker import Mosquitto
from tests.plans import Plan

ROOT = Path(__file__).parents[2]
HANG_SECONDS = 300

_LAUNCHER = """\
#!/bin/sh
PYTHONPATH={path} exec {python} -m tierbench_{name}.main
"""


def install(folder: Path) -> None:
    """Puts the client and the engine Paho, built from their sources, into PATH."""
    command = [str(ROOT / "tools/go"), "build", "-o", str(folder / "tierbench-client"), "."]
    subprocess.run(command, cwd=ROOT / "images/client", check=True)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
    install_engine(folder, "paho")


def install_engine(folder: Path, name: str, *libraries: Path) -> None:
    """Puts an engine into a folder. Its `libraries` come before those of the tests."""
    sources = [ROOT / "images/engine/src", ROOT / f"images/{name}/src"]
    path = ":".join(map(str, (*libraries, *sources)))
    launcher = folder / f"tierbench-engine-{name}"
    launcher.write_text(_LAUNCHER.format(path=path, python=sys.executable, name=name))
    launcher.chmod(0o755)


@dataclass(frozen=True)
class Outcome:
    """Exit code, the log and its Trial lines, and the seal."""

    code: int
    log: str
    trials: list[dict[str, Any]]
    seal: dict[str, Any]

    @property
    def reason(self) -> str | None:
        """Why the program ended early."""
        return self.failure.get("reason")

    @property
    def failure(self) -> dict[str, Any]:
        """Reason and message of an early end."""
        found: dict[str, Any] = self.seal.get("failure", {})
        return found


class Engine:
    """A client that runs, with its engine."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        number = len(list(folder.iterdir()))
        self._termination, self._log = folder / f"termination-{number}", folder / f"log-{number}"
        command = ["tierbench-client", "measure", "--output=json"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, f"--termination-log={self._termination}", f"--plan={json.dumps(plan)}"],
                stdout=log,
            )

    def await_start(self, trial: int, case: int = 0) -> None:
        """Waits until a counted trial has begun."""
        deadline = time.monotonic() + HANG_SECONDS
        while not self._has_printed("TrialStarted", trial, case):
            assert self._process.poll() is None, f"the engine ended before trial {trial}: see {self._log}"
            assert time.monotonic() < deadline, f"trial {trial} does not begin: see {self._log}"
            time.sleep(0.005)

    def has_ended(self, trial: int, case: int = 0) -> bool:
        """Returns whether a counted trial, or the whole client, has ended."""
        return self._has_printed("Trial", trial, case) or self._process.poll() is not None

    def _has_printed(self, record: str, trial: int, case: int) -> bool:
        text, _, _ = self._log.read_text().rpartition("\n")
        lines = [json.loads(line) for line in text.splitlines()]
        return any(
            (line["record"], line["trial"], line.get("case", 0), line["warmup"]) == (record, trial, case, False)
            for line in lines
        )

    def freeze(self) -> None:
        """Freezes the client and the engine. Returns when the client is frozen or has ended."""
        self._process.send_signal(signal.SIGSTOP)
        if self._process.poll() is None:
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self._signal_engine(signal.SIGSTOP)

    def resume(self) -> None:
        """Continues the client and the engine."""
        self._signal_engine(signal.SIGCONT)
        self._process.send_signal(signal.SIGCONT)

    def _signal_engine(self, number: signal.Signals) -> None:
        for children in Path(f"/proc/{self._process.pid}/task").glob("*/children"):
            for child in children.read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(child), number)

    def terminate(self) -> None:
        """Terminates the client as the kubelet does."""
        self._process.send_signal(signal.SIGTERM)

    def outcome(self) -> Outcome:
        """Waits until the client has ended, and returns its outcome."""
        try:
            code = self._process.wait(HANG_SECONDS)
        finally:
            self._process.kill()
        log = self._log.read_text()
        lines = [json.loads(line) for line in log.splitlines()]
        seal = json.loads(self._termination.read_text())
        for body in (*lines, seal):
            CONTRACT.validate(body)
        return Outcome(code, log, [line for line in lines if line["record"] == "Trial"], seal)


_TARGET = {"url", "topic", "case", "deadlineSeconds", "usernameFile", "passwordFile", "caFile", "agent"}
_PACES: dict[str, Callable[[int], Plan]] = {
    "inFlight": lambda number: {"type": "ClosedLoop", "inFlight": number},
    "unacknowledged": lambda number: {"type": "Acknowledged", "inFlight": number},
    "asFastAsPossible": lambda _: {"type": "AsFastAsPossible"},
    "intervalMilliseconds": lambda number: {"type": "OpenLoop", "intervalNanoseconds": number * 10**6},
    "messagesPerSecond": lambda number: {"type": "OpenLoop", "intervalNanoseconds": 10**9 // number},
}


def plan(broker: Mosquitto, *others: Plan, **changes: Any) -> Plan:
    """Returns a plan for a broker, with changes. None removes a field. `others` has the changes of further targets.

    `trials` is the schedule, as pairs of case and trial, or the number of trials of each target. A pace is one of
    _PACES, in snake_case.
    """
    wanted: dict[str, Any] = {
        "engine": "paho",
        "url": f"mqtt://127.0.0.1:{broker.plain}",
        "username_file": broker.folder / "username",
        "password_file": broker.folder / "password",
        "topic": "tierbench/test",
        "pairs": 2,
        "delivery": "AtLeastOnce",
        "in_flight": 8,
        "messages": 200,
        "delivery_timeout_milliseconds": 60_000,
        "ready_milliseconds": 60_000,
        "warm_rounds": 0,
        "trials": 1,
        **changes,
    }
    fields = {to_camel(name): _json(value) for name, value in wanted.items() if value is not None}
    target = {name: fields.pop(name) for name in _TARGET & set(fields)}
    targets = [target, *(target | other for other in others)]
    trials = fields.pop("trials")
    cases = [each.get("case", 0) for each in targets]
    in_turn = [(case, trial) for trial in range(1, trials + 1) for case in cases] if isinstance(trials, int) else trials
    load = {name: fields.pop(name) for name in ("messages", "durationSeconds") if name in fields}
    (pace, *_) = [_PACES[name](fields.pop(name)) for name in list(_PACES) if name in fields] or [{}]
    schedule = [{"case": case, "trial": trial} for case, trial in in_turn]
    common = {"contract": 1, "kind": "Broker", "targets": targets, "schedule": schedule, "load": load}
    return {**common, **({"pacing": pace} if pace else {}), **fields}


def _json(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def outcome_of(broker: Mosquitto, *others: Plan, **changes: Any) -> Outcome:
    """Runs a changed plan in a temporary folder."""
    with TemporaryDirectory() as folder:
        return Engine(Path(folder), plan(broker, *others, **changes)).outcome()


def trial_of(broker: Mosquitto, **changes: Any) -> dict[str, Any]:
    """Runs a changed plan, and returns its only trial."""
    outcome = outcome_of(broker, **changes)
    assert outcome.code == 0, outcome.failure
    (trial,) = outcome.trials
    return trial


def failure_of(broker: Mosquitto, *others: Plan, **changes: Any) -> dict[str, Any]:
    """Runs a changed plan. Returns the failure that ends the client before its first trial."""
    outcome = outcome_of(broker, *others, **changes)
    assert (outcome.code, outcome.trials) == (1, [])
    return outcome.failure
