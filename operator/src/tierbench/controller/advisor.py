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
from tierbench.kube.client import REQUEST_ERRORS, NotFoundError, is_permanent
from tierbench.workloads.workload import Owner

_ERROR_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.5
_MOST_PAUSE_SECONDS: Final = 10.0
_PAUSE_SHARE: Final = 10
"""The pause after answers, as a multiple of the time that they took. So many results leave time for the runs."""

Key = tuple[str, str]
_logger = logging.getLogger(__name__)


class Advisor:
    """The controller of PlacementAdvices. It decompresses the results of an advice again for each answer."""

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
            _logger.warning("ignoring invalid object", extra=_fields(key, error))
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
        """Answers the advices in the workqueue, without end."""
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
            _logger.info("advice is gone", extra=_fields(key))
        except REQUEST_ERRORS as error:
            if is_permanent(error):
                self._definitions.in_doubt.set()
                if self._retries.failed(attempt, error):
                    await self._suspend(key, advice, error)
                    return
            _logger.warning("cannot write the answer; retrying", extra=_fields(key, error))
            asyncio.get_running_loop().call_later(_ERROR_SECONDS, self._add, key)
        except Exception:
            _logger.exception("cannot answer; retrying after the next change", extra=_fields(key))

    async def _suspend(self, key: Key, advice: PlacementAdvice, error: Exception) -> None:
        """Records that the API server rejects the answer, and suspends the advice."""
        asyncio.get_running_loop().call_later(SUSPENDED_SECONDS, self._add, key)
        message = f"The API server rejects the answer: {error}. It is retried every ten minutes."
        _logger.warning("answer rejected; retrying in ten minutes", extra=_fields(key, error))
        with contextlib.suppress(*REQUEST_ERRORS):
            owner = Owner(PlacementAdvice.KIND.kind, *key, advice.metadata.uid)
            await recorder_of(self._kube, owner).event(reasons.ANSWER_REFUSED, message, warning=True)

    async def _answer(self, key: Key, advice: PlacementAdvice) -> None:
        compressed = self._results.compressed(advice.metadata.namespace or "", advice.spec.benchmarks.names)
        status = await asyncio.to_thread(self._answer_from, compressed, advice, self._kube.now())
        if status == advice.status:
            return
        metadata, kind = advice.metadata, PlacementAdvice.KIND.kind
        applied = {"name": metadata.name, "namespace": metadata.namespace, "resourceVersion": metadata.resource_version}
        body = {"apiVersion": API_VERSION, "kind": kind, "metadata": applied, "status": status.to_json()}
        written = await self._kube.apply_status(ADVICES, metadata.namespace, body)
        version = {"resource_version": written["metadata"]["resourceVersion"]}
        self._advices[key] = advice.model_copy(
            update={"status": status, "metadata": metadata.model_copy(update=version)}
        )
        recorder = recorder_of(self._kube, Owner(kind, *key, metadata.uid))
        for event in advice_events(advice.status, status):
            await recorder.event(event.reason, event.message, warning=event.warning)

    def _answer_from(
        self, compressed: Sequence[bytes], advice: PlacementAdvice, now: datetime
    ) -> PlacementAdviceStatus:
        classes = tuple(self._cluster.classes.values())
        return advice_status(advice, self._projected(compressed, advice.spec), classes, now)

    def _projected(self, compressed: Sequence[bytes], spec: PlacementAdviceSpec) -> Iterator[BenchmarkResult]:
        """Yields the parts of each valid result that the answer needs."""
        for each in compressed:
            raw = self._results.decompress(each)
            try:
                yield project_result(spec, raw)
            except ValidationError as error:
                fields = {"kind": BenchmarkResult.KIND.kind, "object": raw["metadata"]["name"], "error": str(error)}
                _logger.warning("ignoring invalid object", extra=fields)


def _fields(key: Key, error: Exception | None = None) -> dict[str, str]:
    fields = {"kind": PlacementAdvice.KIND.kind, "object": "/".join(key)}
    return fields if error is None else {**fields, "error": str(error)}
