"""Reads the runs that benchmarks.scale.record recorded, and replays the output of their clients.

A replay prints the lines of a real client for the trials of the pod's plan. It replaces case, trial, time and size with
those of the pod. The seal fits these lines.
"""

import hashlib
import json
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from tests.plans import Plan
from tierbench.api.contract import MAXIMUM_SEAL_BYTES
from tierbench.kube.meta import format_micro_time
from tierbench.workloads.plan import ScheduledTrial

FOLDER = Path(__file__).parent / "recorded"

_FROM_DISK = {
    "residentBeforePartsPerMillion": 0,
    "ioPressurePartsPerMillion": 500_000,
    "ioWaitPartsPerMillion": 200_000,
    "cpuPartsPerMillion": 50_000,
    "processCpuNanoseconds": 10_000_000,
    "cpuLimitMillicores": 1000,
}
"""The fields of a server's sample in a trial that waits for the disk."""

Object = dict[str, Any]


@dataclass(frozen=True)
class Client:
    """The output of one pod of a client, and its seal."""

    trials: tuple[Object, ...]
    started: Object
    seal: Object


@dataclass(frozen=True)
class Recorded:
    """A recorded run: its benchmark and results at the end, and the pods of its client."""

    benchmark: Object
    results: tuple[Object, ...]
    clients: tuple[Client, ...]


@cache
def recorded(name: str) -> Recorded:
    """Returns the run with this name."""
    found = json.loads((FOLDER / f"{name}.json").read_text())
    return Recorded(found["benchmark"], tuple(found["results"]), tuple(map(_client, found["clients"])))


def _client(found: Object) -> Client:
    lines = [json.loads(line) for line in found["log"]]
    trials = tuple(line for line in lines if line["record"] == "Trial")
    started = next(line for line in lines if line["record"] == "TrialStarted")
    return Client(trials, started, json.loads(found["termination"]))


class Replay:
    """The output of a pod that measures a plan, line by line, and its seal."""

    def __init__(self, plan: Plan) -> None:
        clients = recorded(_name(plan)).clients
        self.parts: int = plan.get("parts", 1)
        self.barrier: str = plan.get("barrier", "")
        self._plan = plan
        self._client = clients[plan.get("part", 0) % len(clients)]
        self.schedule = tuple(ScheduledTrial(each["case"], each["trial"]) for each in plan["schedule"])
        self._started = datetime.now(UTC)
        self._lines: list[bytes] = []
        self._held: list[bytes] = []

    def begin(self, scheduled: ScheduledTrial, now: datetime) -> bytes:
        """Returns the line that starts a trial."""
        self._started = now
        own = {"case": scheduled.case, "trial": scheduled.trial, "time": format_micro_time(now)}
        return _line({**self._client.started, **own})

    def end(self, scheduled: ScheduledTrial, nanoseconds: int = 0) -> bytes:
        """Returns the line that ends a trial. Its duration is `nanoseconds`, or the recorded one if that is 0."""
        trials = self._client.trials
        trial = self._fitted(trials[(scheduled.trial - 1) % len(trials)])
        duration = nanoseconds or trial["durationNanoseconds"]
        own = {
            "case": scheduled.case,
            "trial": scheduled.trial,
            "startTime": format_micro_time(self._started),
            "durationNanoseconds": duration,
        }
        line = _line({**trial, **own})
        self._lines.append(line)
        left_out = {"traces": [], "tracesLeftOut": True} if trial.get("traces") else {}
        self._held.append(_line({**trial, **own, **left_out}))
        return line

    def _fitted(self, trial: Object) -> Object:
        """Returns the trial with the given file size, cache state, directions and ping under load."""
        if "transfer" in trial and "sizeBytes" in self._plan:
            size = self._plan["sizeBytes"]
            cold = self._plan.get("cacheState") == "Cold"
            read = {**_FROM_DISK, "deviceReadBytes": size} if cold else {}
            transfer = {**trial["transfer"], "bytes": size}
            return {**trial, "transfer": transfer, "server": {**trial["server"], **read}}
        if self._plan.get("ping", {}).get("underLoad"):  # the recorded clients did not send these requests
            network, distributions = trial["network"], trial["distributions"]
            trial = {
                **trial,
                "network": {**network, "pingUnderLoad": network["ping"]},
                "distributions": {**distributions, "pingUnderLoad": distributions["ping"]},
            }
        way = {"Upload": "download", "Download": "upload"}.get(self._plan.get("direction", ""))
        if way is None:
            return trial
        return {**trial, "network": {key: value for key, value in trial["network"].items() if key != way}}

    @property
    def seal(self) -> str:
        """Returns the termination message. It has as many of the last printed lines as fit, without traces."""
        digest = hashlib.sha256(b"".join(self._lines)).hexdigest()
        seal = {**self._client.seal, "trials": len(self._lines), "sha256": digest, "lines": ""}
        packed = (_pack(self._held[first:]) for first in range(len(self._held) + 1))
        room = MAXIMUM_SEAL_BYTES - len(json.dumps(seal))
        return json.dumps({**seal, "lines": next(lines for lines in packed if len(lines) <= room)})


def _line(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def _name(plan: Plan) -> str:
    """Returns the name of the run in which a client with such a plan was recorded."""
    match plan["kind"]:
        case "Transfer":
            return "files"
        case "Network":
            return str(plan["protocol"].lower())
        case _:
            if plan["targets"][0]["url"].startswith("kafka"):
                return "kafka"
            return "brokers" if plan["parts"] > 1 else "mosquitto"


def _pack(lines: Sequence[bytes]) -> str:
    """Packs the lines of a seal, as a client does."""
    return b64encode(zlib.compress(b"".join(lines), 9)).decode()
