"""Objects as the API server has them.

Tests look all the time, and a kubectl for each look would cost a sixth of a second of CPU, which others measure with.
"""

import atexit
import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class ReadError(Exception):
    """The API server said no, or nothing."""


class Reader:
    """Reads through a `kubectl proxy`, which ends with this process."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._proxy = subprocess.Popen(
            ["kubectl", "proxy", "--port=0"], env=environment, stdout=subprocess.PIPE, text=True
        )
        atexit.register(self._proxy.terminate)
        assert self._proxy.stdout is not None
        self._url = f"http://{self._proxy.stdout.readline().split()[-1]}"
        self._paths: dict[str, tuple[str, str]] = {}

    def objects(self, kind: str, namespace: str, name: str = "", **query: str) -> dict[str, Any]:
        """One object, or the list of all, of a kind by any of the names that kubectl knows."""
        if kind not in self._paths:
            self._discover()
        if kind not in self._paths:
            raise ReadError(f"the server doesn't have a resource type {kind!r}")
        group, plural = self._paths[kind]
        path = f"{group.replace('NAMESPACE', namespace)}/{plural}" + (f"/{name}" if name else "")
        found: dict[str, Any] = json.loads(self._read(path, **query))
        return found

    def log(self, namespace: str, pod: str) -> str:
        """What a pod of one container has printed."""
        return self._read(f"/api/v1/namespaces/{namespace}/pods/{pod}/log").decode()

    def _discover(self) -> None:
        groups = [group for root in ("/apis", "/api") for group in json.loads(self._read(root, _DISCOVERY))["items"]]
        for group in groups:
            name, version = group["metadata"].get("name", ""), group["versions"][0]
            root = f"/apis/{name}/{version['version']}" if name else f"/api/{version['version']}"
            for resource in version["resources"]:
                plural, singular = resource["resource"], resource.get("singularResource", "")
                path = f"{root}/namespaces/NAMESPACE" if resource["scope"] == "Namespaced" else root
                for known in (plural, singular, *resource.get("shortNames", [])):
                    self._paths[known] = path, plural

    def _read(self, path: str, accept: str = "application/json", **query: str) -> bytes:
        address = f"{self._url}{path}?{urllib.parse.urlencode(query)}"
        request = urllib.request.Request(address, headers={"Accept": accept})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                body: bytes = answer.read()
        except urllib.error.HTTPError as error:
            raise ReadError(error.read().decode(errors="replace")) from error
        except OSError as error:
            raise ReadError(str(error)) from error
        return body
