"""The operator's own metrics."""

import time
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector

PATIENCE_SECONDS: Final = 180.0


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
        self._heartbeat = Gauge(
            "tierbench_operator_heartbeat_timestamp_seconds", "When a pass last ended.", registry=self.registry
        )
        self._due: dict[object, float] = {}

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

    def expect(self, loop: object, within_seconds: float) -> None:
        """`loop` will begin its next pass within so long."""
        self._due[loop] = time.monotonic() + within_seconds

    def forget(self, loop: object) -> None:
        """`loop` has ended."""
        self._due.pop(loop, None)

    def stuck(self) -> bool:
        """Whether a loop should have begun a pass long ago: then only a restart helps."""
        return any(time.monotonic() > due + PATIENCE_SECONDS for due in self._due.values())
