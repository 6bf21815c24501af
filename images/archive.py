"""Writes the chart's images into one file per architecture, which clusters import: make images-archive.

The file is what `docker save` writes. It is the only format for several images that every tool reads: ctr, K3s, kind,
minikube, docker and podman.
"""

import argparse
import io
import json
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from images import release
from images.architectures import Architecture
from images.build import ROOT
from images.naming import reference, version
from images.shell import BuildError


def main() -> int:
    """Writes the archives that the command line asks for, and prints each path."""
    parser = argparse.ArgumentParser(prog="python3 -m images.archive", description="Write images for import.")
    parser.add_argument("images", nargs="*", metavar="IMAGE", help="folders of images/ (all that the chart names)")
    parser.add_argument("--platforms", default="", metavar="linux/amd64,…", help="what to run on (this machine's)")
    arguments = parser.parse_args()
    try:
        architectures = release.architectures(arguments.platforms)
        release.install_tools(architectures)
        for architecture in architectures:
            print(write(arguments.images or release.images(architecture), architecture), flush=True)
    except BuildError as error:
        print(f"images-archive: {error}", file=sys.stderr)
        return 1
    return 0


def write(images: Iterable[str], architecture: Architecture) -> Path:
    """Writes the images of the architecture, which are built if they are missing. Raises BuildError."""
    path = ROOT / "build" / f"tierbench-{version()}-{architecture.name}.tar"
    archives = {reference(image): release.archive(image, architecture) for image in images}
    partial = path.with_suffix(".partial")
    with tarfile.open(partial, "w") as target:
        manifest = [_copy(source, name, target) for name, source in archives.items()]
        _add(target, "manifest.json", io.BytesIO(json.dumps(manifest).encode()))
    partial.rename(path)
    return path


def _copy(archive: Path, name: str, target: tarfile.TarFile) -> dict[str, Any]:
    """Copies the only image of an OCI archive, except for blobs that exist; returns its entry of manifest.json."""
    with tarfile.open(archive) as source:
        (image,) = json.load(_member(source, "index.json"))["manifests"]
        manifest = json.load(_member(source, _path(image)))
        config, layers = _path(manifest["config"]), [_path(layer) for layer in manifest["layers"]]
        for path in (config, *layers):
            if path not in target.getnames():
                _add(target, path, _member(source, path))
        return {"Config": config, "RepoTags": [name], "Layers": layers}


def _member(archive: tarfile.TarFile, path: str) -> IO[bytes]:
    file = archive.extractfile(path)
    if file is None:
        raise BuildError(f"{archive.name!r} is no OCI archive: {path} is no file in it")
    return file


def _path(descriptor: dict[str, Any]) -> str:
    return f"blobs/{descriptor['digest'].replace(':', '/')}"


def _add(target: tarfile.TarFile, name: str, content: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size = content.seek(0, io.SEEK_END)
    content.seek(0)
    target.addfile(member, content)


if __name__ == "__main__":
    sys.exit(main())
