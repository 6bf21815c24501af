"""A benchmark with its reconciler."""

import pytest

from tests.unit.controller.reconciling import Demo, WaitError
from tierbench.controller import reconciler


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Demo:
    """A benchmark whose reconciler raises WaitError instead of waiting."""

    async def end_reconcile(*_: object) -> None:
        raise WaitError

    monkeypatch.setattr(reconciler, "wait_for_event", end_reconcile)
    monkeypatch.setattr(reconciler, "_CLEANUP_SECONDS", 0.01)
    return Demo()
