"""Reads objects from files: JSON and YAML as kubectl prints them, and long tables as `export` writes them."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from tierbench.cli.errors import UserError
from tierbench.cli.objects import Objects, parse_items
from tierbench.results.long_table import read_csv

_GIVE: Final = "give what `kubectl get results -o json` prints"
_STANDARD_INPUT: Final = Path("-")
_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_files(paths: Sequence[Path]) -> Objects:
    """All objects of the files; `-` is standard input. An object that is in several counts once.

    Raises:
        UserError: a file cannot be read, or is none of these.
    """
    return Objects.together([_read(path) for path in paths])


def _read(path: Path) -> Objects:
    origin = "standard input" if path == _STANDARD_INPUT else str(path)
    try:
        text = sys.stdin.read() if path == _STANDARD_INPUT else path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {origin}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{origin} is not text: {_GIVE}") from None
    if path.suffix == ".csv" or "kind" in text.partition("\n")[0].split(","):
        return _table(text, origin, path.stem)
    items: list[Any] = []
    for body in _documents(text, origin):
        found = body.get("items", [body]) if isinstance(body, dict) else body
        if not isinstance(found, list):
            raise UserError(f"{origin} holds no list of objects: {_GIVE}")
        items += found
    return parse_items(items, origin)


def _table(text: str, origin: str, name: str) -> Objects:
    try:
        return Objects(tuple(read_csv(text, name, origin)))
    except ValueError as error:
        raise UserError(f"{origin}, {error}") from None


def _documents(text: str, origin: str) -> list[Any]:
    """What a file of JSON, or of YAML, holds."""
    if text.lstrip()[:1] in {"{", "["}:
        try:
            return [json.loads(text)]
        except json.JSONDecodeError as error:
            raise UserError(f"{origin}, line {error.lineno}: {error.msg}; {_GIVE}") from None
    try:
        return [body for body in yaml.load_all(text, _Loader) if body is not None]
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        raise UserError(f"{origin}, line {line}: {error.problem}; {_GIVE}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{origin}: {str(error).splitlines()[0]}; {_GIVE}") from None
