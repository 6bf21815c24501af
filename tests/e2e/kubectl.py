"""Wraps kubectl for tests: creates and reads objects, and waits for conditions."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from kubernetes.client import ApiException, CoreV1Api
from kubernetes.config import new_client_from_config
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ResourceNotFoundError
from urllib3.exceptions import HTTPError

from tests.timeouts import TIMEOUT_FACTOR, pause

POLL_SECONDS = 0.25
ANSWER_SECONDS = 30 * TIMEOUT_FACTOR

_new_client: Callable[..., Any] = new_client_from_config
_dynamic_client: Callable[..., Any] = DynamicClient


class KubectlError(Exception):
    """The API server rejected a request or did not respond. The text is its message."""


@dataclass(frozen=True)
class Kubectl:
    """A cluster by its kubeconfig, a namespace, and optionally a user to impersonate."""

    environment: dict[str, str]
    namespace: str = "default"
    user: str = ""

    def __call__(self, *arguments: str, stdin: str | None = None, timeout: float = 120) -> str:
        command = ["kubectl", "--namespace", self.namespace, *(["--as", self.user] if self.user else []), *arguments]
        limit = timeout * TIMEOUT_FACTOR
        done = subprocess.run(
            command, env=self.environment, input=stdin, capture_output=True, text=True, timeout=limit, check=False
        )
        if done.returncode:
            raise KubectlError(done.stderr.strip())
        return done.stdout

    def inside(self, namespace: str) -> "Kubectl":
        """Returns a kubectl for another namespace of the same cluster."""
        return replace(self, namespace=namespace)

    def as_user(self, user: str) -> "Kubectl":
        """Returns a kubectl that runs commands as another user. `get`, `list` and `log` ignore the user."""
        return replace(self, user=user)

    def create_namespace(self, security: str = "privileged") -> None:
        """Creates the namespace with this Pod Security Standard, and waits for the service account that pods need."""
        labels = {"pod-security.kubernetes.io/enforce": security}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": labels}})
        wait_for(f"the service account of {self.namespace}", lambda: self.get("serviceaccount", "default"))

    def apply(self, *objects: dict[str, Any]) -> None:
        """Applies objects."""
        self("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def get(self, singular: str, name: str) -> dict[str, Any]:
        """Returns one object."""
        return self._read({"singular_name": singular}, name=name)

    def list(self, plural: str, labels: str = "", fields: str = "") -> list[dict[str, Any]]:
        """Returns all objects of a kind in the namespace that match the selectors."""
        found = self._read({"name": plural}, label_selector=labels, field_selector=fields)
        items: list[dict[str, Any]] = found["items"]
        return items

    def log(self, pod: str) -> str:
        """Returns the output of a pod with one container."""
        read: Callable[..., Any] = CoreV1Api(self._client.client).read_namespaced_pod_log
        with _api_errors():
            answer = read(pod, self.namespace, _preload_content=False, _request_timeout=ANSWER_SECONDS)
        text: str = answer.data.decode()
        return text

    def _read(self, kind: dict[str, str], **query: str) -> dict[str, Any]:
        with _api_errors():
            resource = self._client.resources.get(**kind)
            found = resource.get(namespace=self.namespace, _request_timeout=ANSWER_SECONDS, **query)
        read: dict[str, Any] = found.to_dict()
        return read

    @property
    def _client(self) -> Any:
        return _client_of(self.environment.get("KUBECONFIG"))


@cache
def _client_of(kubeconfig: str | None) -> Any:
    """Returns one client for all reads. A kubectl process would cost a sixth of a second of CPU for each."""
    known = Path(tempfile.mkdtemp(), "resources.json")  # no file that a previous cluster has left
    return _dynamic_client(_new_client(config_file=kubeconfig), cache_file=str(known))


@contextmanager
def _api_errors() -> Iterator[None]:
    try:
        yield
    except (ApiException, ResourceNotFoundError, HTTPError) as error:
        raise KubectlError(str(error)) from error


def tierbench(kubectl: Kubectl, *arguments: str) -> str:
    """Returns the output of `kubectl tierbench`."""
    program = "import sys; from tierbench.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=kubectl.environment, capture_output=True, text=True, check=False).stdout


T = TypeVar("T")


def wait_for(what: str, probe: Callable[[], T | None], seconds: float = 60) -> T:
    """Waits until `probe` returns a true result, and returns that. Errors count as no result."""
    seconds *= TIMEOUT_FACTOR
    end = time.monotonic() + seconds
    last: object = None
    while (start := time.monotonic()) < end:
        try:
            found = probe()
        except KubectlError as error:
            last = error
        else:
            if found:
                return found
            last = found
        time.sleep(pause(time.monotonic() - start, POLL_SECONDS))
    raise AssertionError(f"{what}: not within {seconds} s. The last result was {last}")
