"""Stands in for the kubelets of simulated nodes where kwok says nothing: what a client prints, and how it ends."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Final

from tests.operator.player import Client, Player, Pod
from tierbench.kube.client import Kube
from tierbench.workloads.names import LABEL_ROLE, ROLE_CLIENT
from tierbench.workloads.plan import ScheduledTrial

PORT: Final = 10250
SIMULATED: Final = "sim-"
"""What the names of simulated nodes begin with."""
CLIENTS: Final = f"{LABEL_ROLE}={ROLE_CLIENT}"


@dataclass
class Seen:
    """When what happened, by the monotonic clock: trials by namespace, benchmark, case and number, once all parts have
    printed them; and of pods by namespace, benchmark and first case that they appeared and ended."""

    printed: dict[tuple[str, str, int, int], float] = field(default_factory=dict)
    appeared: dict[tuple[str, str, int], float] = field(default_factory=dict)
    ended: dict[tuple[str, str, int], float] = field(default_factory=dict)


class Kubelet(Player):
    """Plays every client on simulated nodes: a trial takes `pace` seconds. None begins unless `go` is set."""

    def __init__(self, kube: Kube) -> None:
        super().__init__(kube, SIMULATED)
        self.pace = 1.0
        self.go = asyncio.Event()
        self.go.set()
        self.seen = Seen()

    def see(self, pod: Pod, *, deleted: bool) -> None:
        self.seen.appeared.setdefault(_case(Client.of(pod)), time.monotonic())
        super().see(pod, deleted=deleted)

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
