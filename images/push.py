"""Pushes the chart's images to a registry, one image for all architectures under each name: make push."""

import argparse
import os
import re
import sys

from images import build, release
from images.architectures import Architecture
from images.naming import reference
from images.shell import BuildError, run

_REGISTRY = re.compile(
    r"(localhost|[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+|[a-zA-Z0-9.-]+(?=:))(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
)


def main() -> int:
    """Pushes what the command line asks for. Prints each reference, and the option of Helm that pulls them."""
    parser = argparse.ArgumentParser(prog="python3 -m images.push", description="Push images to a registry.")
    parser.add_argument("images", nargs="*", metavar="IMAGE", help="folders of images/ (all that the chart names)")
    parser.add_argument(
        "--registry", default="", metavar="HOST/PATH", help="where to: the chart's global.imageRegistry"
    )
    parser.add_argument("--platforms", default="", metavar="linux/amd64,…", help="what to run on (this machine's)")
    parser.add_argument(
        "--insecure", action="store_true", help="the registry has plain HTTP, or an unknown certificate"
    )
    arguments = parser.parse_args()
    try:
        registry = checked(arguments.registry)
        architectures = release.architectures(arguments.platforms)
        release.install_tools(architectures)
        for image in arguments.images or sorted({name for one in architectures for name in release.images(one)}):
            built = [one for one in architectures if image in build.known(one)]
            push(image, registry, built, insecure=arguments.insecure)
            print(reference(image, registry), *(one.platform for one in built), flush=True)
    except BuildError as error:
        print(f"push: {error}", file=sys.stderr)
        return 1
    print(f"\nInstall the chart with --set global.imageRegistry={registry}")
    return 0


def checked(registry: str) -> str:
    """Returns the registry without a trailing slash. Raises BuildError if it is invalid."""
    if not registry:
        raise BuildError("no registry: write REGISTRY=HOST/PATH, such as registry.example/team or 192.0.2.1:5000")
    if not _REGISTRY.fullmatch(registry.rstrip("/")):
        raise BuildError(
            f"REGISTRY={registry} is no registry: write HOST or HOST/PATH, such as registry.example/team or "
            "192.0.2.1:5000, without https://"
        )
    return registry.rstrip("/")


def push(image: str, registry: str, architectures: list[Architecture], *, insecure: bool) -> None:
    """Builds the image for each architecture, and pushes one index of them. Raises BuildError."""
    if not architectures:
        raise BuildError(f"no image {image} for these platforms")
    index = f"localhost/tierbench-push-{os.getpid()}"
    archives = [release.archive(image, one) for one in architectures]
    run("buildah", "manifest", "create", index)
    try:
        for archive in archives:
            run("buildah", "manifest", "add", index, f"oci-archive:{archive}")
        tls = ["--tls-verify=false"] if insecure else []
        run("buildah", "manifest", "push", "--all", *tls, index, f"docker://{reference(image, registry)}")
    finally:
        run("buildah", "manifest", "rm", index)


if __name__ == "__main__":
    sys.exit(main())
