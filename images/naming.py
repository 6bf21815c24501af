"""The names of the images in the chart of this checkout."""

import re
from pathlib import Path
from typing import Final

CHART: Final = Path(__file__).parents[1] / "charts" / "tierbench" / "Chart.yaml"
REGISTRY: Final = "ghcr.io"


def version() -> str:
    """Returns the tag of the images: the chart's appVersion."""
    (found,) = re.findall(r"^appVersion: (\S+)$", CHART.read_text(), re.MULTILINE)
    return str(found)


def reference(image: str, registry: str = REGISTRY) -> str:
    """Returns the name of an image in a registry, which is the chart's default if none is given."""
    return f"{registry}/tierbench/{image}:{version()}"
