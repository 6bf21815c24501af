"""The chart, the images and their programs have one version."""

import re
import tomllib

import yaml

from images.build import ROOT
from images.naming import CHART, reference, version


def test_images_have_the_version_of_the_chart() -> None:
    chart = yaml.safe_load(CHART.read_text())
    assert chart["version"] == chart["appVersion"] == version()
    assert reference("nginx") == f"ghcr.io/tierbench/nginx:{version()}"


def test_programs_have_the_version_of_the_chart() -> None:
    for project in ("operator", "images/paho", "images/sinetstream"):
        assert tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"]["version"] == version()
    for name in ("paho", "sinetstream"):
        source = (ROOT / f"images/{name}/src/tierbench_{name}/__init__.py").read_text()
        assert re.findall(r'^VERSION: Final = "(.*)"$', source, re.MULTILINE) == [version()]
