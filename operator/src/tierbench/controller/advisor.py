"""Answers each PlacementAdvice again when something that it depends on has changed."""

import asyncio
import contextlib
import logging
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json

from tierbench.advice.selection import project_result
from tierbench.api.advice_answer import PlacementAdviceStatus
from tierbench.api.model import API_VERSION
from tierbench.api.placement_advice import ADVICES, PlacementAdvice, PlacementAdviceSpec
from tierbench.api.result import BenchmarkResult
from tierbench.controller.context import SUSPENDED_SECONDS, Context, RetryTracker, recorder_of
from tierbench.domain import reasons
from tierbench.domain.status import advice_events, advice_status, excess_advice_status
from tierbench.kube.client import REQUEST_ERRORS, NotFoundError, is_permanent
from tierbench.kube.meta import name_of, wait_for_event
from tierbench.workloads.workload import Owner

_ERROR_SECONDS: Final = 5.0
_AGAIN_SECONDS: Final = 60.0
"""An advice that has not changed is answered again at most this often."""
_MOST_PAUSE_SECONDS: Final = 10.0
_PAUSE_SHARE: Final = 3
"""The pause after an answer, as a multiple of the CPU time that it took. So many results leave time for the runs."""
_LEAST_CPU_SECONDS: Final = 0.005
"""The CPU time of the requests of an answer."""

Key = tuple[str, str]
_logger = logging.getLogger(__name__)


@dataclass
class _Advice:
    """What is kept of an advice. `created` is the time and the name: the oldest ones of a namespace are answered."""

    uid: str
    created: tuple[str, str]
    generation: int
    answered: float = -math.inf
    is_excess: bool = False


class Advisor:
    """The controller of PlacementAdvices. It reads an advice, and parses its results again, for each answer.

    Namespaces take turns, so that none waits for the many advices of another one.
    """

    def __init__(self, context: Context) -> None:
        self._kube = context.kube
        self._results = context.results
        self._cluster = context.cluster
        self._metrics = context.metrics
        self._most = context.settings.quotas.advices
        self._advices: defaultdict[str, dict[str, _Advice]] = defaultdict(dict)
        self._due: dict[Key, float] = {}
        """The time from which each advice can be answered."""
        self._turns: dict[str, float] = {}
        """When each namespace had its last turn."""
        self._retries = RetryTracker()
        self._definitions = context.definitions
        self._event = asyncio.Event()
        self._cpu_seconds = _LEAST_CPU_SECONDS
        """The CPU time of the last answer."""

    def observe(self, raw: Mapping[str, Any], *, deleted: bool) -> None:
        """Handles an event of an advice."""
        namespace, name = key = name_of(raw)
        if deleted:
            self._forget(key)
            return
        metadata, observed = raw["metadata"], raw.get("status", {}).get("observedGeneration")
        known = self._advices[namespace].get(name)
        if known is None or known.uid != metadata["uid"]:
            known = _Advice(metadata["uid"], (metadata["creationTimestamp"], name), 0)
            self._advices[namespace][name] = known
        if known.generation == 0 or observed != metadata["generation"]:
            self._add(key, time.monotonic())
        known.generation = metadata["generation"]

    def _forget(self, key: Key) -> None:
        """Forgets a deleted advice. Another one may be answered in its place."""
        namespace, name = key
        advices = self._advices[namespace]
        forgotten = advices.pop(name, None)
        self._due.pop(key, None)
        if not advices:
            del self._advices[namespace]
            self._turns.pop(namespace, None)
        elif forgotten is not None and not forgotten.is_excess:
            excess = [(advice.created, other) for other, advice in advices.items() if advice.is_excess]
            for _, other in sorted(excess)[:1]:
                self._add((namespace, other), time.monotonic())

    def known(self) -> tuple[Key, ...]:
        """Returns the names of all advices."""
        return tuple((namespace, name) for namespace, advices in self._advices.items() for name in advices)

    def add_all(self, namespace: str | None = None) -> None:
        """Adds the advices of one namespace, or of all, to the workqueue."""
        for key in self.known() if namespace is None else [(namespace, name) for name in self._of(namespace)]:
            self._add(key, self._of(key[0])[key[1]].answered + _AGAIN_SECONDS)

    def _of(self, namespace: str) -> Mapping[str, _Advice]:
        return self._advices.get(namespace, {})

    def _add(self, key: Key, after: float) -> None:
        self._due[key] = min(after, self._due.get(key, math.inf))
        self._event.set()

    async def run(self) -> None:
        """Answers the advices in the workqueue, without end."""
        while True:
            now = time.monotonic()
            ready = [key for key, after in self._due.items() if after <= now]
            if not ready:
                self._event.clear()
                await wait_for_event(self._event, min(self._due.values()) - now if self._due else None)
                continue
            key = min(ready, key=lambda one: self._turns.get(one[0], -math.inf))
            del self._due[key]
            self._cpu_seconds = _LEAST_CPU_SECONDS
            self._turns[key[0]] = now
            with self._metrics.track("advisor"):
                await self._answer_or_retry(key)
            await asyncio.sleep(min(_PAUSE_SHARE * self._cpu_seconds, _MOST_PAUSE_SECONDS))

    async def _answer_or_retry(self, key: Key) -> None:
        known = self._advices[key[0]][key[1]]
        attempt = f"{'/'.join(key)} {known.generation}"
        self._retries.set_reset_key(self._definitions.digest)
        if self._definitions.missing or self._retries.suspended(attempt):
            return
        try:
            await self._answer(key, known)
        except REQUEST_ERRORS as error:
            if is_permanent(error):
                self._definitions.in_doubt.set()
                if self._retries.failed(attempt, error):
                    await self._suspend(key, known.uid, error)
                    return
            _logger.warning("cannot write the answer; retrying", extra=_fields(key, error))
            self._retry(key, _ERROR_SECONDS)
        except ValidationError as error:
            _logger.warning("ignoring invalid object", extra=_fields(key, error))
        except Exception:
            _logger.exception("cannot answer; retrying after the next change", extra=_fields(key))

    def _retry(self, key: Key, seconds: float) -> None:
        if key[1] in self._of(key[0]):  # it may have been deleted meanwhile
            self._add(key, time.monotonic() + seconds)

    async def _suspend(self, key: Key, uid: str, error: Exception) -> None:
        """Records that the API server rejects the answer, and suspends the advice."""
        self._retry(key, SUSPENDED_SECONDS)
        message = f"The API server rejects the answer: {error}. It is retried every ten minutes."
        _logger.warning("answer rejected; retrying in ten minutes", extra=_fields(key, error))
        with contextlib.suppress(*REQUEST_ERRORS):
            owner = Owner(PlacementAdvice.KIND.kind, *key, uid)
            await recorder_of(self._kube, owner).event(reasons.ANSWER_REFUSED, message, warning=True)

    async def _answer(self, key: Key, known: _Advice) -> None:
        raw = await self._kube.find(ADVICES, *key)
        if raw is None:
            _logger.info("advice is gone", extra=_fields(key))
            return
        advice = PlacementAdvice.model_validate(raw)
        older = sum(other.created < known.created for other in self._of(key[0]).values())
        known.answered, known.is_excess = time.monotonic(), older >= self._most
        if known.is_excess:
            status = excess_advice_status(advice, self._most, self._kube.now())
        else:
            texts = self._results.texts(key[0], advice.spec.benchmarks.names)
            status = await asyncio.to_thread(self._answer_from, texts, advice, self._kube.now())
        if status == advice.status:
            return
        metadata, kind = advice.metadata, PlacementAdvice.KIND.kind
        applied = {"name": metadata.name, "namespace": metadata.namespace, "resourceVersion": metadata.resource_version}
        body = {"apiVersion": API_VERSION, "kind": kind, "metadata": applied, "status": status.to_json()}
        try:
            await self._kube.apply_status(ADVICES, metadata.namespace, body)
        except NotFoundError:
            _logger.info("advice is gone", extra=_fields(key))
            return
        recorder = recorder_of(self._kube, Owner(kind, *key, metadata.uid))
        for event in advice_events(advice.status, status):
            await recorder.event(event.reason, event.message, warning=event.warning)

    def _answer_from(self, texts: Sequence[bytes], advice: PlacementAdvice, now: datetime) -> PlacementAdviceStatus:
        classes, began = tuple(self._cluster.classes.values()), time.thread_time()
        try:
            return advice_status(advice, self._projected(texts, advice.spec), classes, now)
        finally:
            self._cpu_seconds += time.thread_time() - began

    def _projected(self, texts: Sequence[bytes], spec: PlacementAdviceSpec) -> Iterator[BenchmarkResult]:
        """Yields the parts of each valid result that the answer needs."""
        for text in texts:
            raw = from_json(text)
            try:
                yield project_result(spec, raw)
            except ValidationError as error:
                fields = {"kind": BenchmarkResult.KIND.kind, "object": raw["metadata"]["name"], "error": str(error)}
                _logger.warning("ignoring invalid object", extra=fields)


def _fields(key: Key, error: Exception | None = None) -> dict[str, str]:
    fields = {"kind": PlacementAdvice.KIND.kind, "object": "/".join(key)}
    return fields if error is None else {**fields, "error": str(error)}
