"""Manifests and commands in documents are complete, and name fields, options, values and targets that exist."""

import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.cli.test_examples import MODELS, in_order, missing_fields
from tests.unit.test_documents import DOCUMENTS, ROOT
from tierbench.api.model import API_VERSION
from tierbench.cli.main import parser

BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
HERE = re.compile(r"<<'YAML'\n(.*?)^ *YAML$", re.DOTALL | re.MULTILINE)
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b|…|\$\(")
PAGES = pytest.mark.parametrize(
    "page", [page for page in DOCUMENTS if page.name != "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT))
)


def manifests(page: Path) -> Iterator[dict[str, Any]]:
    """Yields the objects of tierbench's API in a page."""
    for language, block in BLOCK.findall(page.read_text()):
        for text in [block] if language == "yaml" else HERE.findall(block):
            for document in yaml.safe_load_all(textwrap.dedent(text)):
                if isinstance(document, dict) and document.get("apiVersion") == API_VERSION:
                    yield document


def commands(page: Path, program: str) -> Iterator[list[str]]:
    """Yields the arguments of each command of a program in a page, as a shell passes them."""
    text = page.read_text().replace("\\\n", " ")
    for line in [line.strip().removeprefix("$ ") for _, block in BLOCK.findall(text) for line in block.splitlines()]:
        if line.startswith(f"{program} "):
            words = shlex.shlex(line.removeprefix(program), posix=True, punctuation_chars="|>")
            words.whitespace_split = True
            yield list(words)


def until_operator(words: list[str]) -> list[str]:
    """Returns the words before a pipe or a redirection."""
    return words[: next((place for place, word in enumerate(words) if word[0] in "|>"), None)]


@PAGES
def test_every_manifest_is_complete_and_has_only_fields_of_the_api(page: Path) -> None:
    for document in manifests(page):
        parsed = MODELS[document["kind"]].model_validate(document).to_json()
        assert list(missing_fields(in_order(document["spec"]), in_order(parsed["spec"]), document["kind"])) == []


@PAGES
def test_command_line_accepts_every_command(page: Path) -> None:
    for words in map(until_operator, commands(page, "kubectl tierbench")):
        if words != ["--version"] and not PLACEHOLDER.search(" ".join(words)):
            assert parser(words).parse_args(words)


@PAGES
def test_makefile_has_every_target(page: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words in commands(page, "make"):
        assert {word for word in words if re.fullmatch(r"[a-z0-9-]+", word)} <= targets, words


@PAGES
def test_every_command_of_helm_names_the_namespace_of_the_release(page: Path) -> None:
    for verb in ("install", "upgrade", "uninstall", "rollback", "test"):
        for words in commands(page, f"helm {verb}"):
            assert {"--namespace", "-n", "…"} & {*words}, words


def test_documents_have_manifests_and_commands() -> None:
    page = ROOT / "docs" / "how-to" / "measure-from-outside.md"
    assert [document["kind"] for document in manifests(page)] == ["NodeClass", "FileTransferBenchmark"]
    assert ["join", "laptop"] in commands(page, "kubectl tierbench")
    assert ["programs", "TARGETS=linux/arm64"] in commands(page, "make")
