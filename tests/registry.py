"""A real registry of container images, as a process: Debian's docker-registry, over plain HTTP."""

import json
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


@contextmanager
def serving(address: str) -> Iterator[None]:
    """An empty registry at HOST:PORT, while the context lasts."""
    with tempfile.TemporaryDirectory() as folder:
        storage = {"filesystem": {"rootdirectory": f"{folder}/images"}}
        configuration = {"version": 0.1, "log": {"level": "error"}, "storage": storage, "http": {"addr": address}}
        file = Path(folder, "config.json")
        file.write_text(json.dumps(configuration))
        command = ["docker-registry", "serve", str(file)]
        with Path(folder, "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                wait_for(f"the registry at {address}", lambda: process.poll() is not None or _answers(address))
                assert process.poll() is None, Path(folder, "log").read_text()
                yield
            finally:
                process.kill()


def index(address: str, repository: str, tag: str) -> Any:
    """The index of an image of several architectures, as the registry has it."""
    request = urllib.request.Request(f"http://{address}/v2/{repository}/manifests/{tag}", headers={"Accept": _INDEX})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/v2/"):
            return True
    except urllib.error.URLError:
        return False
