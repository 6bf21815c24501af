"""The page in a real Chromium: wide and on a phone, light and dark."""

import json
import re
import subprocess
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

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
DARK = 0


def rendered(html: str, folder: Path, width: int, *, dark: bool) -> dict[str, Any]:
    """What the probe finds in the page."""
    file = folder / "report.html"
    file.write_text(html.replace("</body>", f"{PROBE}</body>"))
    scheme = f"--blink-settings=preferredColorScheme={DARK if dark else 1}"
    flags = ["--no-sandbox", "--disable-gpu", f"--window-size={width},900", f"--user-data-dir={folder}/profile", scheme]
    command = ["chromium-headless-shell", *flags, "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    match = re.search(r'data-found="([^"]*)"', done.stdout)
    assert match is not None, done.stderr
    found: dict[str, Any] = json.loads(unescape(match[1]))
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280], ids=["phone", "wide"])
@pytest.mark.parametrize("kind", PAGES)
def test_the_page_can_be_read(kind: str, width: int, dark: bool, tmp_path: Path) -> None:
    found = rendered(page(PAGES[kind]()), tmp_path, width, dark=dark)
    assert found["plots"] >= 8
    assert found["window"] == width
    assert found["width"] <= width, "the page is wider than the window"
    assert found["touching"] == []
    assert found["outside"] == []
    assert found["smallest"] >= 9
    assert min(found["contrasts"]) >= 3
    assert (found["page"] < 0.1) is dark
