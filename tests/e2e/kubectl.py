"""kubectl as the tests use it: objects in and out, and waiting for conditions."""

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
    """The API server said no, or nothing; the text is what was said."""


@dataclass(frozen=True)
class Kubectl:
    """One cluster, by its kubeconfig, one namespace of it, and perhaps another user than the kubeconfig's."""

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
        """The same cluster, another namespace."""
        return replace(self, namespace=namespace)

    def as_user(self, user: str) -> "Kubectl":
        """The same, as somebody else sees it who does what is done by the command kubectl."""
        return replace(self, user=user)

    def create_namespace(self, security: str = "privileged") -> None:
        """The namespace, with this Pod Security Standard; pods are refused until a controller has made an account."""
        labels = {"pod-security.kubernetes.io/enforce": security}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": labels}})
        wait_for(f"the service account of {self.namespace}", lambda: self.get("serviceaccount", "default"))

    def apply(self, *objects: dict[str, Any]) -> None:
        """Applies objects."""
        self("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def get(self, singular: str, name: str) -> dict[str, Any]:
        """One object."""
        return self._read({"singular_name": singular}, name=name)

    def list(self, plural: str, labels: str = "", fields: str = "") -> list[dict[str, Any]]:
        """All objects of a kind in the namespace, or those that selectors choose."""
        found = self._read({"name": plural}, label_selector=labels, field_selector=fields)
        items: list[dict[str, Any]] = found["items"]
        return items

    def log(self, pod: str) -> str:
        """What a pod of one container has printed."""
        read: Callable[..., Any] = CoreV1Api(self._client.client).read_namespaced_pod_log
        with _told():
            answer = read(pod, self.namespace, _preload_content=False, _request_timeout=ANSWER_SECONDS)
        text: str = answer.data.decode()
        return text

    def _read(self, kind: dict[str, str], **query: str) -> dict[str, Any]:
        with _told():
            resource = self._client.resources.get(**kind)
            found = resource.get(namespace=self.namespace, _request_timeout=ANSWER_SECONDS, **query)
        read: dict[str, Any] = found.to_dict()
        return read

    @property
    def _client(self) -> Any:
        return _client_of(self.environment.get("KUBECONFIG"))


@cache
def _client_of(kubeconfig: str | None) -> Any:
    """One for all looks: a kubectl for each would cost a sixth of a second of CPU, which others measure with."""
    known = Path(tempfile.mkdtemp(), "resources.json")  # not the one that clusters before have left behind
    return _dynamic_client(_new_client(config_file=kubeconfig), cache_file=str(known))


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (ApiException, ResourceNotFoundError, HTTPError) as error:
        raise KubectlError(str(error)) from error


def tierbench(kubectl: Kubectl, *arguments: str) -> str:
    """What `kubectl tierbench` prints."""
    program = "import sys; from tierbench.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=kubectl.environment, capture_output=True, text=True, check=False).stdout


T = TypeVar("T")


def wait_for(what: str, probe: Callable[[], T | None], seconds: float = 60) -> T:
    """What `probe` gives once it gives something; errors count as nothing."""
    seconds *= TIMEOUT_FACTOR
    end = time.monotonic() + seconds
    last: object = None
    while (began := time.monotonic()) < end:
        try:
            found = probe()
        except KubectlError as error:
            last = error
        else:
            if found:
                return found
            last = found
        time.sleep(pause(time.monotonic() - began, POLL_SECONDS))
    raise AssertionError(f"{what}: not within {seconds} s; last seen: {last}")
