"""The archive of images for a node."""

from pathlib import Path

from images.architectures import KNOWN, host
from tests.cluster import images

ARCHIVE = Path("build/images/nginx.tar")


def test_archive_has_the_architecture_of_the_node() -> None:
    other = next(one for one in KNOWN.values() if one != host())
    assert images.for_architecture(ARCHIVE, host()) == ARCHIVE
    assert images.for_architecture(ARCHIVE, other) == Path(f"build/images/{other.name}/nginx.tar")
