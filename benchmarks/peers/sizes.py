"""Compares sizes of programs and images with their limits."""

import json
import tarfile
from pathlib import Path
from typing import Any

from benchmarks.peers.measure import ROOT, Comparison, limit

CLIENT_MB = 15
LIMITS_MB = {"client": CLIENT_MB, "operator": 260}
"""The limits of images. In the operator's image, the package kubernetes takes 75 MB."""


def comparisons(client: Path) -> list[Comparison]:
    """Measures the client program, and each image as it is unpacked on a node."""
    program = limit("client program", "MB", client.stat().st_size / 1e6, CLIENT_MB)
    images = [limit(f"{name} image", "MB", _unpacked(name) / 1e6, bound) for name, bound in LIMITS_MB.items()]
    return [program, *images]


def _unpacked(image: str) -> int:
    path = ROOT / "build" / "images" / f"{image}.tar"
    if not path.exists():
        raise SystemExit(f"bench: {path.relative_to(ROOT)} is missing: run make images")
    with tarfile.open(path) as archive:
        return _content(archive, json.loads(_read(archive, "index.json")))


def _content(archive: tarfile.TarFile, document: dict[str, Any]) -> int:
    """Returns the bytes of all files in the layers of an OCI manifest, or of the largest platform of an index."""
    if "manifests" in document:
        inner = [json.loads(_read(archive, _blob(entry))) for entry in document["manifests"]]
        return max(_content(archive, one) for one in inner)
    return sum(_files(archive, _blob(layer)) for layer in document["layers"])


def _files(archive: tarfile.TarFile, name: str) -> int:
    with tarfile.open(fileobj=archive.extractfile(name)) as layer:
        return sum(member.size for member in layer if member.isfile())


def _blob(entry: dict[str, Any]) -> str:
    return "blobs/" + str(entry["digest"]).replace(":", "/")


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None, name
    return file.read()
