"""Debian's base image without a registry: made with mmdebstrap, for what the Dockerfiles call `debian:bookworm-slim`.

It has what that image has: Debian's minimal set with apt, without documentation.
"""

import hashlib
import platform
import subprocess
import tempfile
from pathlib import Path

from images import emulation
from images.architectures import Architecture
from images.packages import apt_configuration
from images.shell import output, run

RELEASE = "bookworm"
NAME = f"debian:{RELEASE}-slim"

_SUITES = ("", "-updates", "-security")
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/lintian/*")
_KEPT = ("/usr/share/doc/*/copyright",)


def ensure(architecture: Architecture) -> str:
    """The identity of the base image in buildah's storage; makes it when it is not there.

    Raises BuildError when programs of the architecture cannot run here.
    """
    emulation.ensure(architecture)
    recipe = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    name = f"localhost/tierbench/{NAME}-{architecture.name}-{recipe}"
    found = subprocess.run(
        ["buildah", "images", "--quiet", "--no-trunc", name], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or _make(name, architecture)


def sources(release: str) -> list[str]:
    """apt's sources of Debian's release, from where this machine gets its own; none leaves the choice to mmdebstrap.

    They are the same for all architectures.
    """
    here = platform.freedesktop_os_release()
    own = here.get("VERSION_CODENAME") if here["ID"] == "debian" else release
    suites = {f"{own}{suite}": f"{release}{suite}" for suite in _SUITES}
    lines = output("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
    targets = sorted({(uri, suite) for uri, suite, part in map(str.split, lines.splitlines()) if part == "main"})
    found = [f"deb {uri} {suites[suite]} main" for uri, suite in targets if suite in suites]
    return found if any(f" {release} " in source for source in found) else []


def _make(name: str, architecture: Architecture) -> str:
    print(f"making {name} with mmdebstrap (once) …", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "base.tar")
        _install(root, architecture, Path(folder, "apt.conf"))
        container = output("buildah", "from", "--platform", architecture.platform, "scratch").strip()
        try:
            run("buildah", "add", "--quiet", container, str(root), "/")
            run(
                "buildah",
                "config",
                "--cmd",
                "bash",
                "--env",
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                container,
            )
            return output("buildah", "commit", "--quiet", container, name).strip()
        finally:
            run("buildah", "rm", container)


def _install(root: Path, architecture: Architecture, apt: Path) -> None:
    apt.write_text(apt_configuration())
    paths = [f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT] + [
        f"--dpkgopt=path-include={path}" for path in _KEPT
    ]
    run(
        "mmdebstrap",
        "--variant=minbase",
        f"--architectures={architecture.debian}",
        "--skip=check/qemu",  # emulation.ensure has made sure
        f"--aptopt={apt}",
        "--dpkgopt=force-unsafe-io",
        "--hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr",  # else usrmerge comes, and all of Perl with it
        *paths,
        '--customize-hook=rm -f "$1/etc/apt/apt.conf.d/99mmdebstrap"',
        RELEASE,
        str(root),
        *sources(RELEASE),
    )
