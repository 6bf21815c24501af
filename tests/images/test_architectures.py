"""Each image for another architecture is one of that architecture, and its program runs, emulated. Needs root."""

import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from images import emulation
from images.architectures import KNOWN, host

_ROOT = Path(__file__).parents[2]
_STORAGE = ("java", "-cp", "/opt/kafka/libs/*", "kafka.tools.StorageTool", "--help")
_IMPORT = ("/opt/tierbench/bin/python", "-c", "import tierbench.controller.main as main; print(main.__name__)")
_PROGRAMS = {  # of each image: one, and what it says
    "client": (("/tierbench-client", "--help"), "measure"),
    "kafka": (_STORAGE, "random-uuid"),
    "mosquitto": (("mosquitto", "-h"), "mosquitto version"),
    "network": (("iperf3", "--version"), "iperf 3"),
    "nginx": (("nginx", "-v"), "nginx version"),
    "operator": (_IMPORT, "tierbench.controller.main"),
    "paho": (("tierbench-client", "--help"), "measure"),
    "sinetstream": (("tierbench-client", "--help"), "measure"),
    "transfer": (("wget", "--version"), "GNU Wget"),
}
_IMAGES = {"arm64": tuple(_PROGRAMS), "armv7": ("client", "mosquitto", "network", "nginx", "transfer")}
_CASES = [(arch, image) for arch, images in _IMAGES.items() if KNOWN[arch] != host() for image in images]


@pytest.mark.parametrize(("arch", "image"), _CASES)
def test_runs_emulated(arch: str, image: str, root: Path) -> None:
    emulation.ensure(KNOWN[arch])
    config = _unpack(_build(image, arch), root)
    parts = [config["os"], config["architecture"], config.get("variant")]
    assert "/".join(filter(None, parts)) == KNOWN[arch].platform
    command, expected = _PROGRAMS[image]
    assert expected in _run(root, dict(entry.split("=", 1) for entry in config["config"]["Env"]), *command)


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder for an image's files; none of them stay, for they are hundreds of megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        (root / "proc").mkdir(parents=True)
        yield root


def _build(image: str, arch: str) -> Path:
    command = [sys.executable, "-m", "images.build", "--arch", arch, image]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.splitlines()[-1])


def _unpack(archive: Path, root: Path) -> Any:
    """The image's files, without what a layer takes away; its OCI configuration."""
    with tarfile.open(archive) as tar:

        def blob(digest: str) -> IO[bytes]:
            file = tar.extractfile(f"blobs/{digest.replace(':', '/')}")
            assert file
            return file

        index = tar.extractfile("index.json")
        assert index
        manifest = json.load(blob(json.load(index)["manifests"][0]["digest"]))
        for layer in manifest["layers"]:
            extract = ["tar", "--extract", "--gzip", "--exclude=.wh.*", f"--directory={root}"]
            subprocess.run(extract, input=blob(layer["digest"]).read(), check=True)
        return json.load(blob(manifest["config"]["digest"]))


def _run(root: Path, environment: dict[str, str], *command: str) -> str:
    inside = ["unshare", "--pid", "--fork", "--mount-proc", f"--root={root}", "--setgid=65530", "--setuid=65530"]
    environment = {"HOME": "/", **environment}  # as a container runtime sets it for a user without a home
    done = subprocess.run([*inside, *command], env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr
