"""Debian's base image without a registry: made with mmdebstrap, under the name that the Dockerfiles write.

It has what `debian:bookworm-slim` has: Debian's minimal set with apt, without documentation.
"""

import subprocess
import tempfile
from pathlib import Path

from images.packages import apt_configuration
from images.shell import output, run

NAME = "docker.io/library/debian:bookworm-slim"

_RELEASE = "bookworm"
_SUITES = (_RELEASE, f"{_RELEASE}-updates", f"{_RELEASE}-security")
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/lintian/*")
_KEPT = ("/usr/share/doc/*/copyright",)


def ensure() -> str:
    """The identity of the base image in buildah's storage; makes it when it is not there."""
    found = subprocess.run(
        ["buildah", "images", "--quiet", "--no-trunc", NAME], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or _make()


def _sources() -> list[str]:
    """This machine's own sources when it runs the same release; none leaves the choice to mmdebstrap."""
    lines = output("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
    targets = sorted({tuple(line.split()) for line in lines.splitlines()})
    sources = [f"deb {' '.join(target)}" for target in targets if target[1] in _SUITES and target[2] == "main"]
    return sources if any(f" {_RELEASE} " in source for source in sources) else []


def _make() -> str:
    print(f"making {NAME} with mmdebstrap (once) …", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        root, apt = Path(folder, "base.tar"), Path(folder, "apt.conf")
        apt.write_text(apt_configuration())
        paths = [f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT] + [
            f"--dpkgopt=path-include={path}" for path in _KEPT
        ]
        hooks = ['--customize-hook=rm -f "$1/etc/apt/apt.conf.d/99mmdebstrap"']
        run(
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            f"--aptopt={apt}",
            *paths,
            *hooks,
            _RELEASE,
            str(root),
            *_sources(),
        )
        container = output("buildah", "from", "scratch").strip()
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
            return output("buildah", "commit", "--quiet", container, NAME).strip()
        finally:
            run("buildah", "rm", container)
