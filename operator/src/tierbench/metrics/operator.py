"""The operator's own metrics."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector

from tierbench.domain import reasons

PATIENCE_SECONDS: Final = 180.0

Worker = str | tuple[str, str, str]
"""A task of the operator's own, or the benchmark of a loop: kind, namespace and name."""


class OperatorMetrics:
    """How the operator itself is doing."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._passes = Histogram(
            "tierbench_reconcile_duration_seconds",
            "Time of a pass over one benchmark: observe, decide, write.",
            buckets=[2.0**exponent for exponent in range(-8, 6)],
            registry=self.registry,
        )
        self._errors = Counter(
            "tierbench_reconcile_errors", "Passes that ended early, by reason.", ["reason"], registry=self.registry
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
            "tierbench_operator_heartbeat_timestamp_seconds", "When a pass last ended.", registry=self.registry
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
        self._due: dict[Worker, float] = {}
        self.is_leader = False
        self.leader = ""
        """The pod for which this one stands by, if it does."""
        self.waits_for = ""
        """What keeps the operator from beginning, if anything does."""

    def leads(self, so: bool) -> None:
        """Whether this operator leads its release."""
        self.is_leader = so
        self._leader.set(int(so))

    def passed(self, seconds: float) -> None:
        """A pass has ended after so long."""
        self._passes.observe(seconds)
        self._heartbeat.set_to_current_time()

    def error(self, reason: str) -> None:
        """A pass has ended early."""
        self._errors.labels(reason or "Unknown").inc()

    def api_answered(self, method: str, status: int) -> None:
        """The API server has answered a request."""
        self._requests.labels(method, str(status)).inc()

    def queue_length(self, length: int) -> None:
        """So many benchmarks wait."""
        self._queue.set(length)

    def definitions(self, reason: str) -> None:
        """How the definitions that are served differ from those that the operator knows; empty if they do not."""
        for known in (reasons.DEFINITIONS_OLDER, reasons.DEFINITIONS_NEWER):
            self._definitions.labels(known).set(known == reason)

    def stored(self, size: int, limit: int) -> None:
        """Results and traces take so many bytes, of so many that they may take."""
        self._stored.set(size)
        self._stored_limit.set(limit)

    def expect(self, loop: Worker, within_seconds: float) -> None:
        """`loop` will begin its next pass within so long."""
        self._due[loop] = time.monotonic() + within_seconds

    def forget(self, loop: Worker) -> None:
        """`loop` has ended."""
        self._due.pop(loop, None)

    @contextmanager
    def working(self, task: str) -> Iterator[None]:
        """A task of the operator's own is at work on something that takes no longer than anybody's patience."""
        self.expect(task, 0)
        try:
            yield
        finally:
            self.forget(task)

    def stuck(self) -> tuple[str, ...]:
        """Loops and tasks that should have gone on long ago: then only a restart helps."""
        late = [who for who, due in self._due.items() if time.monotonic() > due + PATIENCE_SECONDS]
        return tuple(sorted(who if isinstance(who, str) else "/".join(who) for who in late))
