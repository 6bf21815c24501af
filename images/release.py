"""The images that users install: those of the chart, for the requested platforms."""

from collections.abc import Iterable
from pathlib import Path

from images import build
from images.architectures import KNOWN, Architecture, host
from images.shell import BuildError, run


def architectures(platforms: str) -> list[Architecture]:
    """Parses "linux/amd64,linux/arm64"; the default is this machine's. Raises BuildError for an unknown platform."""
    by_platform = {one.platform: one for one in KNOWN.values()}
    asked = [platform.strip() for platform in platforms.split(",") if platform.strip()] or [host().platform]
    for platform in asked:
        if platform not in by_platform:
            raise BuildError(
                f"no images for the platform {platform}: write PLATFORMS={','.join(by_platform)} or some of them"
            )
    return [by_platform[platform] for platform in dict.fromkeys(asked)]


def images(architecture: Architecture) -> list[str]:
    """Returns the chart's images that are built for the architecture."""
    return [image for image in build.known(architecture) if image not in build.SANDBOX]


def install_tools(asked: Iterable[Architecture]) -> None:
    """Installs the tools that build images for these architectures on this machine."""
    emulation = ["emulation"] if set(asked) - {host()} else []
    run(str(build.ROOT / "tools" / "setup"), "cluster", "kafka", *emulation)


def archive(image: str, architecture: Architecture) -> Path:
    """Returns the OCI archive of the image, which is built if it is missing."""
    (found,) = build.build_each([image], architecture)
    return found
