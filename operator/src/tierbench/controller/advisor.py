"""Answers each PlacementAdvice again when something that it depends on has changed."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from tierbench.advice.selection import project_result
from tierbench.api.advice_answer import PlacementAdviceStatus
from tierbench.api.model import API_VERSION
from tierbench.api.placement_advice import ADVICES, PlacementAdvice, PlacementAdviceSpec
from tierbench.api.result import BenchmarkResult
from tierbench.controller.context import SUSPENDED_SECONDS, Context, RetryTracker, recorder_of
from tierbench.domain import reasons
from tierbench.domain.status import advice_events, advice_status
from tierbench.kube.errors import REQUEST_ERRORS, NotFoundError, UnknownFieldError, is_permanent
from tierbench.workloads.names import Owner

_ERROR_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.5
_MOST_PAUSE_SECONDS: Final = 10.0
_PAUSE_SHARE: Final = 10
"""Times as long as the answers took, within bounds: with ever so many results, the operator has time for its runs, and
an API server that was slow for once holds up no answer."""

Key = tuple[str, str]
_logger = logging.getLogger(__name__)


class Advisor:
    """Knows all advices by namespace and name, and which are due. What results say is unpacked anew for each answer."""

    def __init__(self, context: Context) -> None:
        self._kube = context.kube
        self._results = context.results
        self._cluster = context.cluster
        self._metrics = context.metrics
        self._advices: dict[Key, PlacementAdvice] = {}
        self._due: set[Key] = set()
        self._retries = RetryTracker()
        self._definitions = context.definitions
        self._event = asyncio.Event()

    def observe(self, raw: Mapping[str, Any], *, deleted: bool) -> None:
        """Handles an event of an advice."""
        key = (raw["metadata"]["namespace"], raw["metadata"]["name"])
        before = self._advices.pop(key, None)
        if deleted:
            return
        try:
            advice = PlacementAdvice.model_validate(raw)
        except ValidationError as error:
            _logger.warning("PlacementAdvice %s/%s cannot be understood: %s", *key, error)
            return
        self._advices[key] = advice
        if before is None or advice.metadata.generation != advice.status.observed_generation:
            self._add(key)

    def known(self) -> tuple[Key, ...]:
        """Returns the names of all valid advices."""
        return tuple(self._advices)

    def add_all(self, namespace: str | None = None) -> None:
        """Adds the advices of one namespace, or of all, to the workqueue."""
        for key in self._advices:
            if namespace in {None, key[0]}:
                self._add(key)

    def _add(self, key: Key) -> None:
        self._due.add(key)
        self._event.set()

    async def run(self) -> None:
        """Answers what is due, for ever."""
        while True:
            await self._event.wait()
            self._event.clear()
            started = time.monotonic()
            for key in sorted(self._due):
                self._due.discard(key)
                with self._metrics.track("advisor"):
                    await self._answer_or_retry(key)
            took = time.monotonic() - started
            await asyncio.sleep(min(max(_PAUSE_SECONDS, _PAUSE_SHARE * took), _MOST_PAUSE_SECONDS))

    async def _answer_or_retry(self, key: Key) -> None:
        advice = self._advices.get(key)
        if advice is None:
            return
        attempt = f"{'/'.join(key)} {advice.metadata.generation}"
        self._retries.set_reset_key(self._definitions.digest)
        if self._definitions.missing or self._retries.suspended(attempt):
            return
        try:
            await self._answer(key, advice)
        except NotFoundError:
            _logger.info("PlacementAdvice %s/%s is gone", *key)
        except REQUEST_ERRORS as error:
            if is_permanent(error):
                self._definitions.in_doubt.set()
                if not isinstance(error, UnknownFieldError) and self._retries.failed(attempt):
                    await self._give_up(key, advice, error)
                    return
            _logger.warning("PlacementAdvice %s/%s: %s; trying again", *key, error)
            asyncio.get_running_loop().call_later(_ERROR_SECONDS, self._add, key)
        except Exception:
            _logger.exception("PlacementAdvice %s/%s has no answer until something that it rests on changes", *key)

    async def _give_up(self, key: Key, advice: PlacementAdvice, error: Exception) -> None:
        """Says that the answer is not taken, whatever it is: it is tried again when something has changed, or later."""
        asyncio.get_running_loop().call_later(SUSPENDED_SECONDS, self._add, key)
        message = f"The API server rejects the answer: {error}. It is retried every ten minutes."
        _logger.warning("PlacementAdvice %s/%s: %s", *key, message)
        with contextlib.suppress(*REQUEST_ERRORS):
            owner = Owner(PlacementAdvice.KIND.kind, *key, advice.metadata.uid)
            await recorder_of(self._kube, owner).event(reasons.ANSWER_REFUSED, message, warning=True)

    async def _answer(self, key: Key, advice: PlacementAdvice) -> None:
        packed = self._results.compressed(advice.metadata.namespace or "", advice.spec.benchmarks.names)
        status = await asyncio.to_thread(self._answer_from, packed, advice, self._kube.now())
        if status == advice.status:
            return
        metadata, kind = advice.metadata, PlacementAdvice.KIND.kind
        head = {"name": metadata.name, "namespace": metadata.namespace, "resourceVersion": metadata.resource_version}
        body = {"apiVersion": API_VERSION, "kind": kind, "metadata": head, "status": status.to_json()}
        written = await self._kube.apply_status(ADVICES, metadata.namespace, body)
        version = {"resource_version": written["metadata"]["resourceVersion"]}
        self._advices[key] = advice.model_copy(
            update={"status": status, "metadata": metadata.model_copy(update=version)}
        )
        recorder = recorder_of(self._kube, Owner(kind, *key, metadata.uid))
        for event in advice_events(advice.status, status):
            await recorder.event(event.reason, event.message, warning=event.warning)

    def _answer_from(self, packed: Sequence[bytes], advice: PlacementAdvice, now: datetime) -> PlacementAdviceStatus:
        classes = tuple(self._cluster.classes.values())
        return advice_status(advice, self._understood(packed, advice.spec), classes, now)

    def _understood(self, packed: Sequence[bytes], spec: PlacementAdviceSpec) -> Iterator[BenchmarkResult]:
        """What the answer needs of each result."""
        for each in packed:
            raw = self._results.decompress(each)
            try:
                yield project_result(spec, raw)
            except ValidationError as error:
                _logger.warning("Result %s is left out of advices: %s", raw["metadata"]["name"], error)
