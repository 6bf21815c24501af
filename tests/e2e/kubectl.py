"""kubectl as the tests use it: objects in and out, and waiting for conditions."""

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import yaml

from tests.e2e.reader import Reader, ReadError

POLL_SECONDS = 0.25


class KubectlError(Exception):
    """kubectl said no; the text is what it said."""


@dataclass(frozen=True)
class Kubectl:
    """One cluster, by its kubeconfig, and one namespace of it."""

    environment: dict[str, str]
    namespace: str = "default"

    def __call__(self, *arguments: str, stdin: str | None = None, timeout: float = 120) -> str:
        command = ["kubectl", "--namespace", self.namespace, *arguments]
        done = subprocess.run(
            command, env=self.environment, input=stdin, capture_output=True, text=True, timeout=timeout, check=False
        )
        if done.returncode:
            raise KubectlError(done.stderr.strip())
        return done.stdout

    def inside(self, namespace: str) -> "Kubectl":
        """The same cluster, another namespace."""
        return Kubectl(self.environment, namespace)

    def apply(self, *objects: dict[str, Any]) -> None:
        """Applies objects."""
        self("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """One object."""
        return self._reader.objects(kind, self.namespace, name)

    def list(self, kind: str, labels: str = "", fields: str = "") -> list[dict[str, Any]]:
        """All objects of a kind in the namespace, or those that selectors choose."""
        found = self._reader.objects(kind, self.namespace, labelSelector=labels, fieldSelector=fields)
        items: list[dict[str, Any]] = found["items"]
        return items

    def log(self, pod: str) -> str:
        """What a pod of one container has printed."""
        return self._reader.log(self.namespace, pod)

    @property
    def _reader(self) -> Reader:
        return _reader_in(frozenset(self.environment.items()))


@cache
def _reader_in(environment: frozenset[tuple[str, str]]) -> Reader:
    return Reader(dict(environment))


T = TypeVar("T")


def wait_for(what: str, probe: Callable[[], T | None], seconds: float = 60) -> T:
    """What `probe` gives once it gives something; errors of the API server count as nothing."""
    end = time.monotonic() + seconds
    last: object = None
    while time.monotonic() < end:
        try:
            found = probe()
        except (KubectlError, ReadError) as error:
            last = error
        else:
            if found:
                return found
            last = found
        time.sleep(POLL_SECONDS)
    raise AssertionError(f"{what}: not within {seconds} s; last seen: {last}")
