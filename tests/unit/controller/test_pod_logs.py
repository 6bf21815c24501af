"""The printed trials of a client make the operator reconcile."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.controller.reconciling import OWNER
from tests.unit.domain.objects import trial_line
from tierbench.controller import pod_logs
from tierbench.controller.collector import Inbox
from tierbench.controller.pod_logs import LogFollower
from tierbench.domain.views import PodView

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PARTS = ("a", "b")


def part(name: str) -> PodView:
    """A running pod of a client."""
    numbers: dict[str, Any] = dict.fromkeys(("run", "slot", "case", "pass_number", "attempt", "part"), 1)
    texts: dict[str, Any] = dict.fromkeys(("role", "node", "pod_ip", "host_ip", "image_id"), "")
    known: dict[str, Any] = {"name": name, "uid": name, "created": NOW, "problem": None, "terminated": None}
    return PodView(**numbers, **texts, **known, started=True, ready=True, deleting=False, parts=len(PARTS))


class Logs:
    """An API server whose logs never end. It counts how often the operator would reconcile."""

    def __init__(self) -> None:
        self.pieces: dict[str, asyncio.Queue[str]] = defaultdict(asyncio.Queue)
        self.reconciles = 0
        self.reconciled = asyncio.Event()

    async def log(self, _: str, pod: str, container: str, *, follow: bool) -> AsyncGenerator[bytes]:
        """Yields what is printed."""
        assert (container, follow) == ("client", True)
        while True:
            yield (await self.pieces[pod].get()).encode()

    def reconcile(self) -> None:
        """Counts a reconcile."""
        self.reconciles += 1
        self.reconciled.set()


@pytest.fixture
async def logs() -> AsyncGenerator[Logs]:
    """The logs of a client with two parts, which are followed."""
    made: Any = Logs()
    follower = LogFollower(made, OWNER, Inbox(), made.reconcile)
    await follower.read([part(name) for name in PARTS])
    yield made
    follower.close()


async def test_parts_of_a_client_cause_one_reconcile_per_trial(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_logs, "_PARTS_SECONDS", 3600)
    for trial in (1, 2, 3):
        logs.reconciled.clear()
        for name in PARTS:
            logs.pieces[name].put_nowait(trial_line(trial))
        await logs.reconciled.wait()
    assert logs.reconciles == 3


async def test_part_that_prints_nothing_delays_a_reconcile_only_briefly(
    logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_logs, "_PARTS_SECONDS", 0.01)
    logs.pieces["a"].put_nowait(trial_line(1))
    await logs.reconciled.wait()
    assert logs.reconciles == 1


async def test_a_trial_that_is_printed_again_causes_no_reconcile() -> None:
    logs: Any = Logs()
    follower = LogFollower(logs, OWNER, Inbox(), logs.reconcile)
    await follower.read([part("a")])
    for trial in (*[1] * 100, 2):
        logs.reconciled.clear()
        logs.pieces["a"].put_nowait(trial_line(trial))
    while logs.reconciles < 2:
        await logs.reconciled.wait()
        logs.reconciled.clear()
    follower.close()
    assert logs.reconciles == 2
