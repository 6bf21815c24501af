"""The names of the images, as the chart of this checkout has them."""

import re
from pathlib import Path
from typing import Final

CHART: Final = Path(__file__).parents[1] / "charts" / "tierbench" / "Chart.yaml"
REGISTRY: Final = "ghcr.io"


def version() -> str:
    """The tag of the images: the chart's appVersion."""
    (found,) = re.findall(r"^appVersion: (\S+)$", CHART.read_text(), re.MULTILINE)
    return str(found)


def reference(image: str, registry: str = REGISTRY) -> str:
    """The name of an image in a registry, without which the chart asks for it in its default."""
    return f"{registry}/tierbench/{image}:{version()}"
