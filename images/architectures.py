"""The processor architectures that images are built for, as each program involved calls them."""

import os
from dataclasses import dataclass

from images.shell import BuildError


@dataclass(frozen=True)
class Architecture:
    """One of them: by its name here, as an OCI platform, and as Debian, QEMU and uname say it."""

    name: str
    platform: str
    debian: str
    qemu: str
    machine: str


KNOWN = {
    one.name: one
    for one in (
        Architecture("amd64", "linux/amd64", "amd64", "x86_64", "x86_64"),
        Architecture("arm64", "linux/arm64", "arm64", "aarch64", "aarch64"),
        Architecture("armv7", "linux/arm/v7", "armhf", "arm", "armv7l"),
    )
}


def host() -> Architecture:
    """This machine's own. Raises BuildError when it is none of the known."""
    machine = os.uname().machine
    for one in KNOWN.values():
        if one.machine == machine:
            return one
    raise BuildError(f"no images for the architecture {machine}: known are {', '.join(KNOWN)}")
