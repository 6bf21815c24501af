"""Where a command writes."""

import sys
from pathlib import Path

from tierbench.cli.errors import UserError


def write(content: str | bytes, path: Path) -> bool:
    """Writes to a file, or to standard output if it is `-`; whether it was a file. Text is UTF-8.

    Raises:
        UserError: it cannot be written.
    """
    if str(path) == "-":
        if isinstance(content, str):
            sys.stdout.write(content)
        else:
            sys.stdout.buffer.write(content)
        return False
    try:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; name another file with -o") from None
    return True
