"""Finds sentences of more than 25 words in the docstrings and messages of Python code, as Vale does in documents."""

import ast
import re
from collections.abc import Iterator
from typing import Final

LIMIT: Final = 25
_WORD: Final = re.compile(r"\b[\w'’./%-]+\b")
_END: Final = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n\s*[-*|]")
_PART_OF_MESSAGE: Final = re.compile(r"(?<=[.!?:;])\s+")


def long_sentences(source: str, *, messages: bool) -> Iterator[tuple[int, int]]:
    """Yields the line and the number of words of each sentence that is too long.

    Docstrings are always checked. With `messages`, other literals are checked if they have one line, because literals
    with several lines are scripts or configurations. A colon divides a message into the problem and what to do. An
    expression in an f-string counts as one word.
    """
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in parts or (id(node) not in docstrings and not messages):
            continue
        text = _text(node)
        end = _END if id(node) in docstrings else _PART_OF_MESSAGE
        if end is _END or "\n" not in text:
            for sentence in end.split(text):
                words = len(_WORD.findall(sentence))
                if words > LIMIT:
                    yield node.lineno, words  # type: ignore[attr-defined]  # _text is empty without a line


def _text(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text(value) or "X" for value in values)
        case _:
            return ""
