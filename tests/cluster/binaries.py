"""Builds Kubernetes and its tools from Go modules once, and caches them by the hash of their sources.

kube/ has the modules of each minor version, such as 1.34.mod. They include the tools: etcd, Helm, and containerd if
Debian's is too old. kube-router/ and kwok/ have programs for clusters of all versions.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from images.architectures import Architecture, host
from tests.cluster.errors import ClusterError

DEFAULT = "1.34"
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")

_GO = Path(__file__).parents[2] / "tools" / "go"
_SOURCE = Path(__file__).parent / "kube"
_VERSION = "k8s.io/component-base/version"
_MINOR = (  # variables for the minor version
    f"{_VERSION}.gitMinor",
    "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor",
    "helm.sh/helm/v4/pkg/chart/common.k8sVersionMinor",
)
_NAMES = dict.fromkeys(COMPONENTS, "kube") | {"etcd": "server"}  # the names of Go packages
# Debug information that is not needed, and inlining, would take a third of the compiler's time.
_COMPILER = ("-gcflags=all=-dwarf=false -l", "-gcflags=std=-dwarf=false")
_LINES = 20  # lines of Go's output in an error


def cache() -> Path:
    """Returns the folder of files that are created once for all clusters."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tierbench"


def known() -> list[str]:
    """Returns the minor versions that can be built, oldest first."""
    return sorted((path.stem for path in _SOURCE.glob("1.*.mod")), key=lambda minor: int(minor.removeprefix("1.")))


def asked() -> str:
    """Returns the minor version that the variable KUBERNETES names. Raises ClusterError for an unknown one."""
    minor = os.environ.get("KUBERNETES") or DEFAULT
    if minor not in known():
        raise ClusterError(f"KUBERNETES={minor} is not known; there are {', '.join(known())}")
    return minor


def version(minor: str) -> str:
    """Returns the version that is built for this minor version: 1.34.4 for 1.34."""
    modules = (_SOURCE / f"{minor}.mod").read_text()
    return modules.partition("k8s.io/kubernetes v")[2].split()[0]


def build(minor: str, architecture: Architecture | None = None) -> Path:
    """Returns the folder with etcd, kube-apiserver, kubelet, kubectl, coredns, helm …, built if it is not cached.

    The programs run on the architecture, by default this machine's.
    """
    target = architecture or host()
    options = _options(minor)
    files = [*sorted(_SOURCE.rglob("*.go")), *sorted(_SOURCE.glob(f"{minor}.*"))]
    folder = cache() / f"kubernetes-{version(minor)}-{target.name}-{_recipe((options, _NAMES), files)}"

    def make() -> None:
        _build(_SOURCE, options, ("./...", "tool"), folder, target)
        for name, program in _NAMES.items():
            (folder / name).unlink(missing_ok=True)
            if (folder / program).exists():
                (folder / name).symlink_to(program)

    return _once(folder, f"Kubernetes {version(minor)} for {target.name}", make)


def tool(name: str) -> Path:
    """Returns the path of the program kube-router or kwok for this machine, which is built if it is not cached."""
    source = Path(__file__).parent / name
    options = ["-trimpath", *_COMPILER, "-ldflags=-s -w"]
    folder = cache() / f"{name}-{host().name}-{_recipe(options, [source / 'go.mod', source / 'go.sum'])}"
    return _once(folder, name, lambda: _build(source, options, ("tool",), folder, host())) / name


def client() -> Path:
    """Returns the path of tierbench-client for this machine, which is built if it is not cached."""
    source = _GO.parents[1] / "images" / "client"
    options = ["-trimpath", "-buildvcs=false", "-ldflags=-s -w"]
    files = [path for path in sorted(source.rglob("*.go")) if not path.name.endswith("_test.go")]
    folder = cache() / f"client-{host().name}-{_recipe(options, [*files, source / 'go.mod'])}"
    return _once(folder, "the client", lambda: _build(source, options, (".",), folder, host())) / "client"


def _recipe(options: object, files: Sequence[Path]) -> str:
    content = b"".join(file.read_bytes() for file in files)
    return hashlib.sha256(repr(options).encode() + content).hexdigest()[:12]


def _once(folder: Path, what: str, make: Callable[[], None]) -> Path:
    """Returns the folder. The first process that needs it creates it."""
    if (folder / "built").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "built").exists():
            print(f"building {what} (once, minutes) …", file=sys.stderr, flush=True)
            make()
            (folder / "built").touch()
    return folder


def _options(minor: str) -> list[str]:
    stamp = {f"{_VERSION}.gitVersion": f"v{version(minor)}", f"{_VERSION}.gitMajor": "1"}
    stamp |= dict.fromkeys(_MINOR, minor.removeprefix("1."))
    linker = ["-s", "-w", *(f"-X {name}={value}" for name, value in stamp.items())]
    return [f"-modfile={minor}.mod", "-trimpath", "-tags=providerless", *_COMPILER, f"-ldflags={' '.join(linker)}"]


def _build(source: Path, options: list[str], packages: Sequence[str], folder: Path, target: Architecture) -> None:
    """Builds all programs at once, so that packages of several programs are compiled once."""
    command, log = [str(_GO), "build", *options, f"-o={folder}/", *packages], folder / "build.log"
    # Without C the standard library equals the client's (images/compile), and is compiled once.
    environment = {**os.environ, "GOARCH": target.debian, "CGO_ENABLED": "0", "GOGC": "400"}
    with log.open("wb") as output:
        done = subprocess.run(command, cwd=source, env=environment, stdout=output, stderr=output, check=False)
    if done.returncode != 0:
        lines = log.read_text(errors="replace").splitlines()[-_LINES:]
        reach = "the first build needs a Go module proxy"
        raise ClusterError("\n".join([f"go build failed ({reach}; the whole output is in {log}):", *lines]))
