"""Where a command writes."""

import sys
from pathlib import Path

from tierbench.cli.problem import Problem


def write(text: str, path: Path) -> bool:
    """Writes to a file, or to standard output if it is `-`; whether it was a file.

    Raises:
        Problem: it cannot be written.
    """
    if str(path) == "-":
        sys.stdout.write(text)
        return False
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Problem(f"cannot write {path}: {error.strerror}; name another file with -o") from None
    return True
