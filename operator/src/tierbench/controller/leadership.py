"""No two operators run the same benchmarks: one pod of a release leads, others stand by; a release that comes second
waits, and says for whom."""

import asyncio
import contextlib
import logging
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from tierbench.kube.claims import Candidate, Rival
from tierbench.kube.client import UNANSWERED, ConflictError
from tierbench.kube.fence import DeposedError, Fence
from tierbench.metrics.operator import OperatorMetrics

_RENEW_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 0.5
_LOOK_SECONDS: Final = 1.0
_AGAIN_SECONDS: Final = (2.0, 4.0)
_TASK: Final = "leader election"
_logger = logging.getLogger(__name__)


def end_process() -> None:
    """At once, whatever its threads and tasks are about: Kubernetes starts another, which stands by."""
    logging.shutdown()
    os._exit(1)


class Leadership:
    """Whether this pod leads. When it cannot go on leading, its process ends: what it was about may write no more."""

    def __init__(self, candidate: Candidate, metrics: OperatorMetrics, end: Callable[[], None] = end_process) -> None:
        self._candidate = candidate
        self._metrics = metrics
        self._end = end
        self.won = asyncio.Event()
        """Set once this pod leads."""

    async def run(self) -> None:
        """Stands by until nobody else leads, then leads, for ever."""
        while True:
            wait = await self._stand()
            if wait is None:
                break
            await asyncio.sleep(wait)
        _logger.info("This operator leads")
        with _watched(self._candidate.fence, self._depose):
            self.won.set()
            while True:
                wait = await self._renew()
                await asyncio.sleep(wait)

    async def leave(self) -> None:
        """Lets another lead at once; if that fails, it leads when the Lease has run out."""
        self._metrics.leads(False)
        with contextlib.suppress(*UNANSWERED):
            await self._candidate.withdraw()

    async def _stand(self) -> float | None:
        """After how long to look again; None once this pod leads."""
        try:
            with self._metrics.working(_TASK):
                rival = await self._candidate.stand()
        except (ConflictError, DeposedError) as error:  # another was faster, or this one too slow
            _logger.debug("%s", error)
            return _LOOK_SECONDS
        except UNANSWERED as error:
            self._wait_for(f"Who else runs these benchmarks cannot be read yet: {error}")
        else:
            if rival is None:
                self._wait_for("")
                self._metrics.leads(True)
                return None
            if rival.claim.release == self._candidate.claim.release:
                self._stand_by(rival)
                return _LOOK_SECONDS
            self._wait_for(_words(rival))
        return random.uniform(*_AGAIN_SECONDS)  # noqa: S311 (two that stepped back from each other do not meet again)

    async def _renew(self) -> float:
        """After how long to renew again."""
        try:
            with self._metrics.working(_TASK):
                await self._candidate.renew()
        except DeposedError as error:
            self._depose(str(error))
        except UNANSWERED as error:
            _logger.warning("The Lease of the leader is not renewed: %s; trying again", error)
            return _RETRY_SECONDS
        return _RENEW_SECONDS

    def _depose(self, why: str) -> None:
        _logger.error("This operator leads no more, and ends: %s. Kubernetes starts it anew, to stand by.", why)
        self._end()

    def _stand_by(self, rival: Rival) -> None:
        """While the leader itself waits for another release, so does this one, as it said before."""
        if rival.good:
            self._wait_for("")
        self._metrics.leader = rival.claim.pod

    def _wait_for(self, what: str) -> None:
        if what and self._metrics.waits_for != what:
            _logger.warning("%s", what)
        self._metrics.waits_for = what


@contextmanager
def _watched(fence: Fence, depose: Callable[[str], None]) -> Iterator[None]:
    """A thread that looks whether the Lease has run out, as the loop may hang."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(min(max(fence.left, 0.01), 1.0)):  # the wait does not count what the fence does
            if fence.left <= 0:
                depose("its Lease has run out, and the API server did not renew it")
                return

    threading.Thread(target=watch, name=_TASK, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _words(rival: Rival) -> str:
    return (
        f"Another operator runs these benchmarks: release {rival.claim}. Name other namespaces for each in "
        "watchNamespaces, or uninstall one of them; this one waits until then."
    )
