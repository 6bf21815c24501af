"""Loads images from OCI archives, which images/build.py builds, into the cluster."""

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

from images.architectures import Architecture, host
from tests.cluster.errors import ClusterError
from tests.cluster.node import NodeMachine
from tests.cluster.processes import output

_ROOT = Path(__file__).parents[2]


def build(name: str, architecture: Architecture | None = None) -> Path:
    """Returns the archive of the image folder images/NAME, and builds it if it is out of date."""
    command = ["-m", "images.build", name]
    if architecture and architecture != host():
        command.append(f"--arch={architecture.name}")
    done = subprocess.run([sys.executable, *command], cwd=_ROOT, stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise ClusterError(f"python3 {' '.join(command)} failed: see above")
    return for_architecture(_ROOT / "build" / "images" / f"{name}.tar", architecture or host())


def for_architecture(archive: Path, architecture: Architecture) -> Path:
    """Returns the archive's path for the architecture. Each foreign architecture has a folder."""
    return archive if architecture == host() else archive.parent / architecture.name / archive.name


def contents(archive: Path) -> dict[str, str]:
    """Returns the image names in an OCI archive with their digests. Raises ClusterError for another file."""
    try:
        with tarfile.open(archive) as tar:
            file = tar.extractfile("index.json")
            index = json.load(file) if file else {}
    except (OSError, KeyError, tarfile.TarError, ValueError) as error:
        raise ClusterError(
            f"{archive} is not an OCI archive ({error}); build it with python3 -m images.build"
        ) from error
    named = {
        one.get("annotations", {}).get("org.opencontainers.image.ref.name"): one["digest"]
        for one in index.get("manifests", [])
    }
    return {name: digest for name, digest in named.items() if name}


def load(node: NodeMachine, archives: Iterable[Path]) -> list[str]:
    """Loads the archives of the node's architecture that the node lacks. Returns a line per image that it lacked.

    The first pod that needs an image unpacks it, because most nodes never run most images.

    An image that is not built for the node's architecture is not loaded, and has a line, too.
    """
    have = {tuple(line.split()[:3:2]) for line in output(*node.ctr("images", "list")).splitlines()[1:]}
    architecture, lines = node.profile.architecture, []
    for archive in (for_architecture(archive, architecture) for archive in archives):
        if not archive.exists() and architecture != host():
            lines.append(f"{node.profile.name}: no {archive}: make images ARCH={architecture.name}")
            continue
        missing = [name for name, digest in contents(archive).items() if (name, digest) not in have]
        if missing:
            _import(node, archive)
        lines += [f"{node.profile.name}: {name}" for name in missing]
    return lines


def _import(node: NodeMachine, archive: Path) -> None:
    with archive.open("rb") as file:
        done = subprocess.run(
            node.ctr("images", "import", "--no-unpack", "-"), stdin=file, capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        raise ClusterError(f"{archive} into {node.profile.name}: {done.stderr.strip()}")
