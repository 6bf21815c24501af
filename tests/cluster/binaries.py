"""Kubernetes and its tools, built from Go modules once and kept by the hash of what they are built from."""

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from images.architectures import Architecture, host
from tests.cluster.errors import ClusterError

KUBERNETES = "1.34.4"
TOOLS = (
    "github.com/coredns/coredns@v1.12.4",
    "helm.sh/helm/v4/cmd/helm@v4.3.1",
)
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")

_GO = Path(__file__).parents[2] / "tools" / "go"
_SOURCE = Path(__file__).parent / "kube"


def cache() -> Path:
    """The folder of everything that is made once and kept for all clusters."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tierbench"


def build(architecture: Architecture | None = None) -> Path:
    """The folder with kube-apiserver, kubelet, kubectl, coredns, helm …; builds them when they are not in the cache.

    For another architecture than this machine's it has Kubernetes alone.
    """
    target = architecture or host()
    files = sorted(_SOURCE.iterdir())
    recipe = hashlib.sha256(
        repr((KUBERNETES, TOOLS, COMPONENTS)).encode() + b"".join(file.read_bytes() for file in files)
    )
    name = f"kubernetes-{KUBERNETES}-{recipe.hexdigest()[:12]}"
    folder = cache() / (name if target == host() else f"{name}-{target.name}")
    if (folder / "built").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "built").exists():
            print(
                f"building Kubernetes {KUBERNETES} for {target.name} (once, about 7 minutes on 2 processors) …",
                file=sys.stderr,
                flush=True,
            )
            _build(folder, target)
            (folder / "built").touch()
    return folder


def _build(folder: Path, target: Architecture) -> None:
    version = "k8s.io/component-base/version"
    major, minor, _ = KUBERNETES.split(".")
    stamp = f"-X {version}.gitVersion=v{KUBERNETES} -X {version}.gitMajor={major} -X {version}.gitMinor={minor}"
    _go(
        "build",
        "-trimpath",
        "-tags",
        "providerless",
        "-ldflags",
        f"-s -w {stamp}",
        "-o",
        str(folder / "kube"),
        ".",
        folder=folder,
        target=target,
    )
    for component in COMPONENTS:
        (folder / component).unlink(missing_ok=True)
        (folder / component).symlink_to("kube")
    for tool in TOOLS if target == host() else ():
        _go("install", tool, folder=folder, target=target)


def _go(*arguments: str, folder: Path, target: Architecture) -> None:
    environment = {**os.environ, "GOBIN": str(folder), "GOARCH": target.debian}
    done = subprocess.run([str(_GO), *arguments], cwd=_SOURCE, env=environment, check=False)
    if done.returncode != 0:
        raise ClusterError(
            f"go {arguments[0]} failed: see above; a Go module proxy has to be in reach for the first build"
        )
