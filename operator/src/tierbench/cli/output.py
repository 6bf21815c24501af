"""The output of every command. Control characters in names and messages of objects never reach a terminal."""

import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final, TextIO, cast

import yaml

from tierbench.api.model import API_VERSION, GROUP, Resource
from tierbench.cli.command import UserError
from tierbench.controller.logs import ESCAPED

_ESCAPED: Final = {code: text for code, text in ESCAPED.items() if chr(code) not in "\n\t"}


def escape(text: str) -> str:
    r"""Returns the text with each control character but line feeds and tabs as an escape sequence, such as \x1b."""
    return text.translate(_ESCAPED)


class _Escaping(io.TextIOBase):
    """A stream that escapes what is written to `stream`."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(escape(text))
        return len(text)

    def flush(self) -> None:
        self.stream.flush()

    def fileno(self) -> int:
        return self.stream.fileno()

    def isatty(self) -> bool:
        return self.stream.isatty()

    def close(self) -> None:
        """Leaves the stream open: it belongs to the process."""


@contextmanager
def escaped_output() -> Iterator[None]:
    """Escapes what the process writes to standard output and standard error, including log messages."""
    out, err = cast("TextIO", _Escaping(sys.stdout)), cast("TextIO", _Escaping(sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield


def standard_output() -> TextIO:
    """Returns standard output as the process got it."""
    return sys.stdout.stream if isinstance(sys.stdout, _Escaping) else sys.stdout


def write_output(content: str | bytes, path: Path) -> bool:
    """Writes to a file, or to standard output if the path is `-`. Returns whether it wrote a file. Text is UTF-8.

    Standard output gets the content unchanged, unless it is a terminal.

    Raises:
        UserError: the file cannot be written, or the content is binary and for a terminal.
    """
    if str(path) == "-":
        stream = standard_output()
        if isinstance(content, str):
            stream.write(escape(content) if stream.isatty() else content)
        elif stream.isatty():
            raise UserError("a terminal cannot show this format; name a file with --output-file")
        else:
            stream.buffer.write(content)
        return False
    try:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; name another file with --output-file") from None
    return True


def objects_as(output: str, objects: Sequence[Resource], *, as_list: bool = True) -> str:
    """Returns objects in kubectl's format `json`, `yaml` or `name`. Several of them, or `as_list`, make a List."""
    if output == "name":
        return "".join(f"{each.KIND.singular}.{GROUP}/{each.metadata.name}\n" for each in objects)
    bodies = [{"apiVersion": API_VERSION, "kind": each.KIND.kind, **each.to_json()} for each in objects]
    if as_list or len(bodies) != 1:
        return data_as(output, {"apiVersion": "v1", "kind": "List", "items": bodies})
    return data_as(output, bodies[0])


def data_as(output: str, data: Mapping[str, Any]) -> str:
    """Returns data as `json` or `yaml`."""
    if output == "yaml":
        return yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    return json.dumps(data, indent=2) + "\n"
