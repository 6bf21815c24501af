"""Runs a real registry of container images: Debian's docker-registry, over plain HTTP."""

import json
import os
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.kubectl import wait_for

_INDEX = "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json"


USER, PASSWORD = "user", "secret"
_ACCOUNT = "user:$2b$05$gcAm1oHhmC3leE1VtDlxX./VxHkmaIn25UPDp4iczToTugmfble7S"
"""The user and the password as the registry reads them, hashed with bcrypt."""


@contextmanager
def serving(address: str, *, closed: bool = False) -> Iterator[None]:
    """Runs an empty registry at HOST:PORT until the block ends. A closed one requires USER and PASSWORD."""
    with tempfile.TemporaryDirectory() as folder:
        storage = {"filesystem": {"rootdirectory": f"{folder}/images"}}
        accounts = Path(folder, "accounts")
        accounts.write_text(_ACCOUNT)
        configuration = {
            "version": 0.1,
            "log": {"level": "error"},
            "storage": storage,
            "http": {"addr": address},
            **({"auth": {"htpasswd": {"realm": "tests", "path": str(accounts)}}} if closed else {}),
        }
        file = Path(folder, "config.json")
        file.write_text(json.dumps(configuration))
        command = ["docker-registry", "serve", str(file)]
        # The registry would read buildah's REGISTRY_AUTH_FILE as a part of its configuration.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("REGISTRY_")}
        with (
            Path(folder, "log").open("w") as log,
            subprocess.Popen(command, env=environment, stdout=log, stderr=log) as process,
        ):
            try:
                wait_for(f"the registry at {address}", lambda: process.poll() is not None or _answers(address))
                assert process.poll() is None, Path(folder, "log").read_text()
                yield
            finally:
                process.kill()


def index(address: str, repository: str, tag: str) -> Any:
    """Returns the registry's index of an image for several architectures."""
    request = urllib.request.Request(f"http://{address}/v2/{repository}/manifests/{tag}", headers={"Accept": _INDEX})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/v2/"):
            return True
    except urllib.error.HTTPError:
        return True
    except urllib.error.URLError:
        return False
