"""The processor architectures that images are built for, by the names that each program uses."""

import os
from dataclasses import dataclass

from images.shell import BuildError


@dataclass(frozen=True)
class Architecture:
    """An architecture: its name here, its OCI platform, and its names in Debian, QEMU and uname."""

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
    """Returns the architecture of this machine. Raises BuildError if it is unknown."""
    machine = os.uname().machine
    for one in KNOWN.values():
        if one.machine == machine:
            return one
    raise BuildError(f"no images for the architecture {machine}: known are {', '.join(KNOWN)}")
