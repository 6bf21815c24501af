"""The metrics of the operator itself, and the state that its probes report."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector

from tierbench.domain import reasons

GRACE_SECONDS: Final = 180.0
"""How long after its deadline a worker is overdue."""

Worker = str | tuple[str, str, str]
"""A task of the operator, or kind, namespace and name of a benchmark."""


class OperatorMetrics:
    """The metrics of the operator, the leader, and the deadlines of the workers."""

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
            "Responses of the API server to the operator, without watches.",
            ["method", "code"],
            registry=self.registry,
        )
        self._queue = Gauge("tierbench_queue_length", "Benchmarks that wait for nodes.", registry=self.registry)
        self._stored = Gauge(
            "tierbench_stored_bytes",
            "Size in etcd of the results and records of all benchmarks.",
            registry=self.registry,
        )
        self._stored_limit = Gauge(
            "tierbench_stored_bytes_limit", "Limit of this size: limits.storedBytes.", registry=self.registry
        )
        self._heartbeat = Gauge(
            "tierbench_operator_heartbeat_timestamp_seconds", "When the last reconcile ended.", registry=self.registry
        )
        self._definitions = Gauge(
            "tierbench_definitions_differ",
            "1 while the CustomResourceDefinitions are older than the operator, so that runs wait.",
            ["reason"],
            registry=self.registry,
        )
        self.set_definitions_differ(False)
        self._leader = Gauge(
            "tierbench_leader", "1 if this operator leads its release, 0 if it is a standby.", registry=self.registry
        )
        self._deadlines: dict[Worker, float] = {}
        self.is_leader = False
        self.leader = ""
        """The leader's pod, while this one is a standby."""
        self.waits_for = ""
        """Why no pod of this release leads; empty if one does."""

    def set_leader(self, is_leader: bool) -> None:
        """Sets whether this operator leads its release."""
        self.is_leader = is_leader
        self._leader.set(int(is_leader))

    def observe_reconcile(self, seconds: float) -> None:
        """Observes the duration of a reconcile that has ended."""
        self._reconciles.observe(seconds)
        self._heartbeat.set_to_current_time()

    def count_error(self, reason: str) -> None:
        """Counts a reconcile that failed."""
        self._errors.labels(reason or "Unknown").inc()

    def count_request(self, method: str, status: int) -> None:
        """Counts a response of the API server."""
        self._requests.labels(method, str(status)).inc()

    def set_queue_length(self, length: int) -> None:
        """Sets the number of queued benchmarks."""
        self._queue.set(length)

    def set_definitions_differ(self, differ: bool) -> None:
        """Sets whether the served definitions lack something that the operator writes."""
        self._definitions.labels(reasons.DEFINITIONS_OLDER).set(int(differ))

    def set_stored_bytes(self, size: int) -> None:
        """Sets the size of results and records."""
        self._stored.set(size)

    def set_stored_limit(self, limit: int) -> None:
        """Sets the limit of that size, in bytes."""
        self._stored_limit.set(limit)

    def set_deadline(self, worker: Worker, within_seconds: float) -> None:
        """Sets within how many seconds a worker starts its next reconcile."""
        self._deadlines[worker] = time.monotonic() + within_seconds

    def forget(self, worker: Worker) -> None:
        """Removes the deadline of a worker that has ended."""
        self._deadlines.pop(worker, None)

    @contextmanager
    def track(self, task: str) -> Iterator[None]:
        """Sets a deadline for a task while the context lasts."""
        self.set_deadline(task, 0)
        try:
            yield
        finally:
            self.forget(task)

    def overdue(self) -> tuple[str, ...]:
        """Returns the workers that are overdue, so that only a restart helps."""
        late = [key for key, end in self._deadlines.items() if time.monotonic() > end + GRACE_SECONDS]
        return tuple(sorted(key if isinstance(key, str) else "/".join(key) for key in late))
