"""Replays clients on simulated nodes. kwok runs their pods, but without logs, and they do not end."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Final

from tests.operator.player import Client, Player, Pod
from tierbench.kube.client import Kube
from tierbench.workloads.plan import ScheduledTrial
from tierbench.workloads.workload import LABEL_ROLE, ROLE_CLIENT

PORT: Final = 10250
SIMULATED: Final = "sim-"
"""The prefix of the names of simulated nodes."""
CLIENTS: Final = f"{LABEL_ROLE}={ROLE_CLIENT}"


@dataclass
class Seen:
    """Times of the monotonic clock.

    `printed` has the end of each trial by namespace, benchmark, case and number. `appeared` and `ended` have the times
    of pods by namespace, benchmark and first case.
    """

    printed: dict[tuple[str, str, int, int], float] = field(default_factory=dict)
    appeared: dict[tuple[str, str, int], float] = field(default_factory=dict)
    ended: dict[tuple[str, str, int], float] = field(default_factory=dict)


class Kubelet(Player):
    """Replays every client on simulated nodes. A trial takes `pace` seconds, and starts only while `go` is set."""

    def __init__(self, kube: Kube) -> None:
        super().__init__(kube, SIMULATED)
        self.pace = 1.0
        self.go = asyncio.Event()
        self.go.set()
        self.seen = Seen()

    def observe(self, pod: Pod, *, deleted: bool) -> None:
        self.seen.appeared.setdefault(_case(Client.of(pod)), time.monotonic())
        super().observe(pod, deleted=deleted)

    async def may_begin(self, client: Client, scheduled: ScheduledTrial) -> None:
        await self.go.wait()

    async def may_end(self, client: Client, scheduled: ScheduledTrial) -> None:
        await asyncio.sleep(self.pace)
        self.seen.printed[client.namespace, client.benchmark, scheduled.case, scheduled.trial] = time.monotonic()

    async def end(self, pod: Pod, exit_code: int, message: str) -> None:
        self.seen.ended[_case(Client.of(pod))] = time.monotonic()
        await super().end(pod, exit_code, message)


def _case(client: Client) -> tuple[str, str, int]:
    return client.namespace, client.benchmark, client.case
