"""Sizes of images against their limits."""

import json
import tarfile
from pathlib import Path

from tests.bench.measure import ROOT, Comparison, limit

LIMITS_MB = {"client": 15, "operator": 250}


def comparisons() -> list[Comparison]:
    """Unpacked size of each image that is built."""
    archives = {name: ROOT / "build" / "images" / f"{name}.tar" for name in LIMITS_MB}
    return [
        limit(f"{name} image", "MB", unpacked(path) / 1e6, LIMITS_MB[name])
        for name, path in archives.items()
        if path.exists()
    ]


def unpacked(archive: Path) -> int:
    """Bytes of all files in the layers of an OCI archive."""
    with tarfile.open(archive) as outer:

        def blob(digest: str) -> bytes:
            member = outer.extractfile("blobs/" + digest.replace(":", "/"))
            assert member is not None
            return member.read()

        index = outer.extractfile("index.json")
        assert index is not None
        manifest = json.loads(blob(json.loads(index.read())["manifests"][0]["digest"]))
        total = 0
        for layer in manifest["layers"]:
            stream = outer.extractfile("blobs/" + layer["digest"].replace(":", "/"))
            with tarfile.open(fileobj=stream) as inner:
                total += sum(member.size for member in inner if member.isfile())
        return total
