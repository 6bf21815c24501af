"""Builds the image folders next to this file into OCI archives: python3 -m images.build --help.

A folder has a Dockerfile, and optionally a program `context`. The program fills a folder with the files that the
Dockerfile copies for the architecture, such as compiled programs. Without the program, the image's folder is the
context. The same Dockerfile builds with docker or podman: `docker build build/images/NAME`.
"""

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from images import base, naming, packages
from images.architectures import KNOWN, Architecture, host
from images.shell import BuildError, run

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "build" / "images"
# All checkouts share the archives, by the hash of their sources.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tierbench" / "images"
# One build at a time on this machine: builds share buildah's storage, and the names in it.
LOCK = CACHE.with_suffix(".lock")

SANDBOX = {"pause": "registry.k8s.io/pause:3.10"}  # containerd asks for it by this name
# The sources of an image besides its own folder. It is rebuilt when any of them has changed.
_COMPILED = ("images/compile", "tools/go", "images/architectures.py")
_BASE = ("images/base.py", "images/packages.py", "images/architectures.py")
_CLIENT = ("images/client", "operator/pyproject.toml", *_COMPILED)
_SOURCES = {
    "client": _CLIENT,
    "kafka": (*_BASE, "tools/kafka"),
    "mosquitto": _BASE,
    "network": (*_BASE, *_CLIENT),
    "nginx": _BASE,
    "operator": (*_BASE, "operator/pyproject.toml", "operator/constraints.txt", "operator/src"),
    "paho": (*_BASE, *_CLIENT, "images/engine"),
    "pause": _COMPILED,
    "sinetstream": (*_BASE, *_CLIENT, "images/engine"),
    "transfer": (*_BASE, *_CLIENT),
}
_SEALING = "sealing memfd copy"
_ATTEMPTS = 3
_KEPT = 4  # archives of one image and architecture in the cache
# Other images are built for all architectures. Of the operator's dependencies, pip has no compiled ones for armv7.
_ONLY = {"armv7": ("client", "mosquitto", "network", "nginx", "pause", "transfer")}


def main() -> int:
    """Builds what the command line asks for, and prints each archive."""
    parser = argparse.ArgumentParser(prog="python3 -m images.build", description="Build images into OCI archives.")
    parser.add_argument("images", nargs="*", metavar="IMAGE", help="folders of images/ (all for the architecture)")
    parser.add_argument("--arch", choices=KNOWN, help="what the images run on (this machine's architecture)")
    arguments = parser.parse_args()
    try:
        architecture = KNOWN[arguments.arch] if arguments.arch else host()
        for archive in build_each(arguments.images or known(architecture), architecture):
            print(archive, flush=True)
    except BuildError as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    return 0


def build_each(images: Iterable[str], architecture: Architecture) -> Iterator[Path]:
    """Yields the OCI archive of each image."""
    BUILT.mkdir(parents=True, exist_ok=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for image in images:
            yield build(image, architecture)


def build(image: str, architecture: Architecture) -> Path:
    """Returns the OCI archive of images/IMAGE. It is built unless the cache has one of the same sources."""
    dockerfile = ROOT / "images" / image / "Dockerfile"
    if not dockerfile.exists():
        raise BuildError(f"no {dockerfile.relative_to(ROOT)}")
    name = SANDBOX.get(image) or naming.reference(image)
    context, archive = BUILT / image, archives(architecture) / f"{image}.tar"
    stamp = archive.with_suffix(".sha256")
    digest = _digest(image, name, architecture.platform)
    if archive.exists() and stamp.exists() and stamp.read_text() == digest:
        return archive
    cached = CACHE / f"{image}-{architecture.name}-{digest[:16]}.tar"
    if not cached.exists():
        print(f"building {name} for {architecture.platform} …", file=sys.stderr, flush=True)
        _fill(image, context, architecture)
        origin = base.ensure(architecture) if _starts_from(dockerfile, base.NAME) else ""
        _buildah(context, name, architecture.platform, origin, cached)
    os.utime(cached)
    _prune(f"{image}-{architecture.name}-*.tar")
    archive.parent.mkdir(parents=True, exist_ok=True)
    _link(cached, archive)
    stamp.write_text(digest)
    return archive


def _prune(pattern: str) -> None:
    """Removes all archives except those that were used last."""
    by_use = sorted(CACHE.glob(pattern), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in by_use[_KEPT:]:
        path.unlink()


def _link(cached: Path, archive: Path) -> None:
    """Gives the file both names, or copies it if they are on different file systems."""
    archive.unlink(missing_ok=True)
    try:
        archive.hardlink_to(cached)
    except OSError:
        shutil.copyfile(cached, archive)


def archives(architecture: Architecture) -> Path:
    """Returns the folder of the archives for the architecture."""
    return BUILT if architecture == host() else BUILT / architecture.name


def known(architecture: Architecture) -> list[str]:
    """Returns all images that are built for the architecture."""
    every = sorted(path.parent.name for path in ROOT.glob("images/*/Dockerfile"))
    return [image for image in every if image in _ONLY.get(architecture.name, every)]


def _fill(image: str, context: Path, architecture: Architecture) -> None:
    source = ROOT / "images" / image
    shutil.rmtree(context, ignore_errors=True)
    if not (source / "context").exists():
        shutil.copytree(source, context)
        return
    context.mkdir()
    environment = {**os.environ, "PATH": f"{ROOT / 'tools'}:{os.environ['PATH']}"}
    if (
        subprocess.run(
            [source / "context", context, architecture.name], cwd=ROOT, env=environment, stdout=sys.stderr, check=False
        ).returncode
        != 0
    ):
        raise BuildError(f"images/{image}/context failed: see above")
    shutil.copy(source / "Dockerfile", context)


def _starts_from(dockerfile: Path, name: str) -> bool:
    pattern = rf"^FROM\s+(--\S+\s+)*{re.escape(name)}(\s|$)"
    return re.search(pattern, dockerfile.read_text(), re.MULTILINE | re.IGNORECASE) is not None


def _digest(image: str, *parts: str) -> str:
    total = hashlib.sha256(repr(parts).encode())
    for source in (f"images/{image}", *_SOURCES.get(image, ())):
        top = ROOT / source
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts:
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                total.update(repr((str(path.relative_to(ROOT)), path.stat().st_mode & 0o111, content)).encode())
    return total.hexdigest()


def _buildah(context: Path, name: str, platform: str, origin: str, archive: Path) -> None:
    origins = [f"--build-context={base.NAME}=container-image://{origin}"] if origin else []
    with tempfile.TemporaryDirectory() as folder:
        identity = Path(folder, "identity")
        volumes = [f"--volume={source}:{place}:ro" for source, place in packages.volumes(Path(folder)).items()]
        command = ["buildah", "bud", "--layers", "--isolation", "chroot", "--network", "host", "--format", "oci"]
        command += ["--pull-never", *volumes, *origins, "--platform", platform, "--iidfile", str(identity)]
        _persist(*command, str(context))
        built = identity.read_text()
    partial = archive.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    run("buildah", "push", "--quiet", built, f"oci-archive:{partial}:{name}")
    partial.rename(archive)


def _persist(*command: str) -> None:
    """Runs buildah again if it could not seal its own program: the kernel refuses that while it moves pages."""
    for attempt in range(_ATTEMPTS):
        try:
            run(*command)
        except BuildError as error:
            if _SEALING not in str(error) or attempt == _ATTEMPTS - 1:
                raise
        else:
            return


if __name__ == "__main__":
    sys.exit(main())
