"""kubectl as the tests use it: objects in and out, and waiting for conditions."""

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

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
        found: dict[str, Any] = json.loads(self("get", kind, name, "-o", "json"))
        return found

    def list(self, kind: str, *arguments: str) -> list[dict[str, Any]]:
        """All objects of a kind in the namespace."""
        items: list[dict[str, Any]] = json.loads(self("get", kind, "-o", "json", *arguments))["items"]
        return items


T = TypeVar("T")


def wait_for(what: str, probe: Callable[[], T | None], seconds: float = 60) -> T:
    """What `probe` gives once it gives something; errors of kubectl count as nothing."""
    end = time.monotonic() + seconds
    last: object = None
    while time.monotonic() < end:
        try:
            found = probe()
        except KubectlError as error:
            last = error
        else:
            if found:
                return found
            last = found
        time.sleep(POLL_SECONDS)
    raise AssertionError(f"{what}: not within {seconds} s; last seen: {last}")
