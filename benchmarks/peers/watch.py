"""Watches the pods of a namespace, and records when each change was seen."""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.kubectl import Kubectl

Pod = dict[str, Any]


@dataclass
class Watch:
    """The changes that were seen so far."""

    seen: list[tuple[float, Pod]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def read(self, process: "subprocess.Popen[str]") -> None:
        """Reads one event per line until the watch ends."""
        assert process.stdout is not None
        for line in process.stdout:
            with self.changed:
                self.seen.append((time.monotonic(), json.loads(line)["object"]))
                self.changed.notify_all()

    def first(self, what: Callable[[Pod], bool], seconds: float = 0) -> float:
        """Waits for a pod that meets the condition, and returns when it was first seen."""

        def found() -> float | None:
            return next((at for at, pod in self.seen if what(pod)), None)

        with self.changed:
            at = self.changed.wait_for(found, seconds)
        if at is None:
            raise LookupError(f"no such pod was seen within {seconds} s")
        return at


@contextmanager
def watching(kubectl: Kubectl) -> Iterator[Watch]:
    """Watches the pods of a namespace."""
    command = ["kubectl", "-n", kubectl.namespace, "get", "pods", "--watch", "--output-watch-events", "-o", "json"]
    with subprocess.Popen(command, env=kubectl.environment, stdout=subprocess.PIPE, text=True) as process:
        watch = Watch()
        reader = threading.Thread(target=watch.read, args=(process,))
        reader.start()
        try:
            yield watch
        finally:
            process.terminate()
            reader.join()


def succeeded(pod: Pod) -> bool:
    """Returns whether the pod has succeeded."""
    return bool(pod["status"].get("phase") == "Succeeded")


def ready(pod: Pod) -> bool:
    """Returns whether the pod is ready."""
    return any(item["type"] == "Ready" and item["status"] == "True" for item in pod["status"].get("conditions", ()))
