"""Links between documents have targets, and indexes are complete."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "examples", "charts/tierbench", "tests")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def headings(page: Path) -> set[str]:
    """Returns the anchors of a page, as GitHub makes them."""
    found = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in found]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", page.read_text())):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if link.startswith(("http://", "https://")):
            continue
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in headings(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("folder", sorted((ROOT / "docs").glob("*/")), ids=lambda folder: folder.name)
def test_the_index_of_a_folder_lists_every_page(folder: Path) -> None:
    index = folder / "README.md"
    pages = {page.name for page in folder.glob("*.md")} - {index.name}
    assert pages <= (set(re.findall(r"\]\(([^)#]+)", index.read_text())) if pages else set())
