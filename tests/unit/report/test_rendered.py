"""Pages in a real Chromium: light ones on a phone, and dark ones in a wide window.

The layout depends only on the width, and contrasts depend only on the colour scheme.
"""

import json
import re
import subprocess
from collections.abc import Callable
from html import escape, unescape
from typing import Any, NamedTuple

import pytest

from tests.unit.report import papers
from tests.unit.report.brokers import three_classes
from tests.unit.report.published import published
from tests.unit.report.test_page import page
from tierbench.api.result import BenchmarkResult

PROBE = """
<script>
for (const details of document.querySelectorAll("details")) details.open = true;
const box = (element) => element.getBoundingClientRect();
const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top + 2 || b.bottom <= a.top + 2;
const light = (colour) => {
  const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (one, other) => {
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const found = {width: document.documentElement.scrollWidth, window: innerWidth, plots: 0, touching: [], outside: [],
               smallest: 99, page: light(getComputedStyle(document.body).backgroundColor), contrasts: []};
for (const figure of document.querySelectorAll("figure")) {
  const svg = figure.querySelector(":scope > svg"), title = figure.querySelector("h4").textContent;
  const card = getComputedStyle(figure).backgroundColor, texts = [...svg.querySelectorAll("text")];
  found.plots += 1;
  for (const text of texts) {
    const at = box(text);
    if (at.left < box(figure).left || at.right > box(figure).right) found.outside.push(`${title}: ${text.textContent}`);
    found.smallest = Math.min(found.smallest, at.height);
    found.contrasts.push(contrast(getComputedStyle(text).fill, card));
    for (const other of texts.filter((each) => each !== text && !apart(at, box(each))))
      found.touching.push(`${title}: ${text.textContent} / ${other.textContent}`);
  }
  for (const line of svg.querySelectorAll(".line")) found.contrasts.push(contrast(getComputedStyle(line).stroke, card));
}
document.body.dataset.found = JSON.stringify(found);
</script>
"""
PAGES: dict[str, Callable[[], list[BenchmarkResult]]] = {
    "brokers": three_classes,
    "files": published,
    "access networks": papers.access_networks,
    "ratios": papers.ratios,
    "deliveries": papers.deliveries,
}
COLLECT = """
<script>
onload = () => {
  const frames = [...document.querySelectorAll("iframe")];
  document.body.dataset.found = JSON.stringify(
    Object.fromEntries(frames.map((frame) => [frame.title, JSON.parse(frame.contentDocument.body.dataset.found)])));
  for (const frame of frames) frame.remove();
};
</script>
"""


class Rendering(NamedTuple):
    width: int
    dark: bool
    found: dict[str, Any]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {kind: page(make()).replace("</body>", f"{PROBE}</body>") for kind, make in PAGES.items()}


@pytest.fixture(scope="module", params=[(360, False), (1280, True)], ids=["phone, light", "wide, dark"])
def rendering(
    pages: dict[str, str], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Rendering:
    """Returns what the probe finds in each page. All pages use one browser."""
    width, dark = request.param
    folder = tmp_path_factory.mktemp("rendered")
    frames = [
        f'<iframe title="{kind}" width="{width}" height="900" style="border: 0" srcdoc="{escape(html)}"></iframe>'
        for kind, html in pages.items()
    ]
    file = folder / "reports.html"
    file.write_text(f'<meta charset="utf-8">{"".join(frames)}{COLLECT}')
    flags = ["--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    command = ["chromium-headless-shell", *flags, scheme, "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    match = re.search(r'data-found="([^"]*)"', done.stdout)
    assert match is not None, done.stderr
    return Rendering(width, dark, json.loads(unescape(match[1])))


@pytest.mark.parametrize("kind", PAGES)
def test_page_is_readable(kind: str, rendering: Rendering) -> None:
    found = rendering.found[kind]
    assert found["plots"] >= 8
    assert found["window"] == rendering.width
    assert found["width"] <= rendering.width, "the page is wider than the window"
    assert found["touching"] == []
    assert found["outside"] == []
    assert found["smallest"] >= 9
    assert min(found["contrasts"]) >= 3
    assert (found["page"] < 0.1) is rendering.dark
