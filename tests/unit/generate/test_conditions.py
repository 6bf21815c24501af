"""The reference of conditions and reasons has every reason that the code uses, and no other."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tierbench.domain import reasons
from tierbench.generate.reference import documented_names, sections

ROOT = Path(__file__).parents[3]
PYTHON = [ROOT / "operator/src/tierbench", *(ROOT.glob("images/*/src"))]
GO = ROOT / "images/client/internal"
TAKES_A_REASON = {"Note", "_note", "Problem", "Judgement", "FailureError", "Violation", "Limit", "Event", "_condition"}
GO_REASON = re.compile(r'(?:Reason: |[fF]ailure\(|[fF]atal\(|, http\.Status\w+, )"([A-Z]\w+)"')
GO_CONSTANT = re.compile(r'^\s+(?:serverBusy|refused|unreachable|connectionLost|pingFailed)\s+= "(\w+)"', re.M)
WORD = re.compile(r"(?:[A-Z]+[a-z0-9]+)+")


def documented() -> set[str]:
    return {name for section in sections() for name in section.meanings}


def python_reasons(tree: ast.AST) -> Iterator[str]:
    """Yields the literal reasons of calls. Constants are in `domain/reasons.py`."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in TAKES_A_REASON:
            given = [*call.args, *(word.value for word in call.keywords if word.arg == "reason")]
            values = [each.value for each in given if isinstance(each, ast.Constant)]
            yield from (value for value in values if isinstance(value, str) and WORD.fullmatch(value))


def used() -> set[str]:
    trees = [ast.parse(path.read_text()) for folder in PYTHON for path in folder.rglob("*.py")]
    go = [path.read_text() for path in GO.rglob("*.go") if not path.name.endswith("_test.go")]
    found = {reason for text in go for pattern in (GO_REASON, GO_CONSTANT) for reason in pattern.findall(text)}
    return found.union(*map(python_reasons, trees))


def test_every_reason_in_the_code_has_a_meaning() -> None:
    assert used() - documented() == set()


def test_every_meaning_belongs_to_a_reason_in_the_code() -> None:
    folders = [*PYTHON, GO]
    paths = [path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".go"}]
    text = "\n".join(path.read_text() for path in paths if path.name not in {"reasons.py", "__init__.py"})
    in_constants = {name for section in documented_names(reasons) for name in section.meanings}
    assert {name for name in documented() - in_constants if f'"{name}"' not in text} == set()


def test_every_meaning_is_one_or_more_sentences() -> None:
    texts = [text for section in sections() for text in section.meanings.values()]
    assert [text for text in texts if not text.endswith(".")] == []


def test_error_names_a_constant_without_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some_reasons.py"
    path.write_text('# Nodes: events\nNEW: str = "New"\nOTHER: str = "Other"\n"""Something happened."""\n')
    monkeypatch.syspath_prepend(tmp_path)
    module = ModuleType("some_reasons")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "some_reasons", module)
    exec(path.read_text(), vars(module))
    with pytest.raises(ValueError, match=r"some_reasons\.NEW needs a section and a text below it"):
        list(documented_names(module))
