"""The operator's own metrics."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector

from tierbench.domain import reasons

GRACE_SECONDS: Final = 180.0

Worker = str | tuple[str, str, str]
"""A task of the operator, or kind, namespace and name of a benchmark."""


class OperatorMetrics:
    """The metrics of the operator, and the state behind its probes."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._reconciles = Histogram(
            "tierbench_reconcile_duration_seconds",
            "Time of a reconcile of one benchmark: observe, decide, write.",
            buckets=[2.0**exponent for exponent in range(-8, 6)],
            registry=self.registry,
        )
        self._errors = Counter(
            "tierbench_reconcile_errors", "Reconciles that failed, by reason.", ["reason"], registry=self.registry
        )
        self._requests = Counter(
            "tierbench_api_requests",
            "Answers of the API server to the operator, watches apart.",
            ["method", "code"],
            registry=self.registry,
        )
        self._queue = Gauge("tierbench_queue_length", "Benchmarks that wait for nodes.", registry=self.registry)
        self._stored = Gauge(
            "tierbench_stored_bytes", "What results and traces of all benchmarks take in etcd.", registry=self.registry
        )
        self._stored_limit = Gauge(
            "tierbench_stored_bytes_limit", "What they may take: limits.storedBytes.", registry=self.registry
        )
        self._heartbeat = Gauge(
            "tierbench_operator_heartbeat_timestamp_seconds", "When a reconcile last ended.", registry=self.registry
        )
        self._definitions = Gauge(
            "tierbench_definitions_differ",
            "1 while the CustomResourceDefinitions are of another version than the operator, by which is older.",
            ["reason"],
            registry=self.registry,
        )
        self.definitions("")
        self._leader = Gauge(
            "tierbench_leader", "1 if this operator leads its release, 0 if it stands by.", registry=self.registry
        )
        self._deadlines: dict[Worker, float] = {}
        self.is_leader = False
        self.leader = ""
        """The pod that leads, while this one stands by."""
        self.waits_for = ""
        """Why no pod of this release leads, or nothing."""

    def set_leader(self, is_leader: bool) -> None:
        """This operator leads its release, or does not."""
        self.is_leader = is_leader
        self._leader.set(int(is_leader))

    def observe_reconcile(self, seconds: float) -> None:
        """A reconcile has ended after so many seconds."""
        self._reconciles.observe(seconds)
        self._heartbeat.set_to_current_time()

    def error(self, reason: str) -> None:
        """A reconcile has failed."""
        self._errors.labels(reason or "Unknown").inc()

    def api_answered(self, method: str, status: int) -> None:
        """The API server has answered a request."""
        self._requests.labels(method, str(status)).inc()

    def queue_length(self, length: int) -> None:
        """So many benchmarks are queued."""
        self._queue.set(length)

    def definitions(self, reason: str) -> None:
        """How the definitions that are served differ from those that the operator knows; empty if they do not."""
        for known in (reasons.DEFINITIONS_OLDER, reasons.DEFINITIONS_NEWER):
            self._definitions.labels(known).set(known == reason)

    def stored(self, size: int, limit: int) -> None:
        """Results and traces take so many bytes of the limit."""
        self._stored.set(size)
        self._stored_limit.set(limit)

    def set_deadline(self, worker: Worker, within_seconds: float) -> None:
        """A worker will start its next reconcile within so many seconds."""
        self._deadlines[worker] = time.monotonic() + within_seconds

    def forget(self, worker: Worker) -> None:
        """A worker has ended."""
        self._deadlines.pop(worker, None)

    @contextmanager
    def track(self, task: str) -> Iterator[None]:
        """Watches that a task ends in time."""
        self.set_deadline(task, 0)
        try:
            yield
        finally:
            self.forget(task)

    def overdue(self) -> tuple[str, ...]:
        """Returns the workers that are far past their deadline, so that only a restart helps."""
        late = [key for key, end in self._deadlines.items() if time.monotonic() > end + GRACE_SECONDS]
        return tuple(sorted(key if isinstance(key, str) else "/".join(key) for key in late))
