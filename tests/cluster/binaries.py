"""Kubernetes and its tools, built from Go modules once and kept by the hash of what they are built from.

kube/ has the modules of each minor version, such as 1.34.mod. The tools that they name are built with it:
etcd and Helm, and where Debian's is too old for it, containerd. kube-router/ and kwok/ have those of programs that
stand beside a cluster of any version.
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
_MINOR = (  # what the programs are told of the minor version
    f"{_VERSION}.gitMinor",
    "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor",
    "helm.sh/helm/v4/pkg/chart/common.k8sVersionMinor",
)
_NAMES = dict.fromkeys(COMPONENTS, "kube") | {"etcd": "server"}  # as Go calls the program
# A third of the compiler's time would go into debug information that nobody looks at, and into inlining.
_COMPILER = ("-gcflags=all=-dwarf=false -l", "-gcflags=std=-dwarf=false")
_LINES = 20  # of Go's output that an error shows


def cache() -> Path:
    """The folder of everything that is made once and kept for all clusters."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tierbench"


def known() -> list[str]:
    """The minor versions that can be built, oldest first."""
    return sorted((path.stem for path in _SOURCE.glob("1.*.mod")), key=lambda minor: int(minor.removeprefix("1.")))


def asked() -> str:
    """The minor version that KUBERNETES in the environment names. Raises ClusterError for an unknown one."""
    minor = os.environ.get("KUBERNETES") or DEFAULT
    if minor not in known():
        raise ClusterError(f"KUBERNETES={minor} is not known; there are {', '.join(known())}")
    return minor


def version(minor: str) -> str:
    """The version that is built for this minor one: 1.34.4 for 1.34."""
    modules = (_SOURCE / f"{minor}.mod").read_text()
    return modules.partition("k8s.io/kubernetes v")[2].split()[0]


def build(minor: str, architecture: Architecture | None = None) -> Path:
    """The folder with etcd, kube-apiserver, kubelet, kubectl, coredns, helm …, built when they are not in the cache.

    They run on the architecture, or on this machine's.
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
    """The program of this name, kube-router or kwok, for this machine, built when it is not in the cache."""
    source = Path(__file__).parent / name
    options = ["-trimpath", *_COMPILER, "-ldflags=-s -w"]
    folder = cache() / f"{name}-{host().name}-{_recipe(options, [source / 'go.mod', source / 'go.sum'])}"
    return _once(folder, name, lambda: _build(source, options, ("tool",), folder, host())) / name


def _recipe(options: object, files: Sequence[Path]) -> str:
    content = b"".join(file.read_bytes() for file in files)
    return hashlib.sha256(repr(options).encode() + content).hexdigest()[:12]


def _once(folder: Path, what: str, make: Callable[[], None]) -> Path:
    """The folder, made by whoever comes first."""
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
    """Build everything at once: packages that several programs share are compiled once, and no processor waits."""
    command, log = [str(_GO), "build", *options, f"-o={folder}/", *packages], folder / "build.log"
    # Without C the standard library is the same that the client is built with (images/compile), and is compiled once.
    environment = {**os.environ, "GOARCH": target.debian, "CGO_ENABLED": "0", "GOGC": "400"}
    with log.open("wb") as output:
        done = subprocess.run(command, cwd=source, env=environment, stdout=output, stderr=output, check=False)
    if done.returncode != 0:
        said = log.read_text(errors="replace").splitlines()[-_LINES:]
        reach = "a Go module proxy has to be in reach for the first build"
        raise ClusterError("\n".join([f"go build failed ({reach}; all it said is in {log}):", *said]))
