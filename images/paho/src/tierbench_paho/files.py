"""What the kernel says in files. None and nothing are what it does not tell."""

from pathlib import Path


def text(file: Path) -> str:
    """Without space around it; empty where this kernel has none, or will not say."""
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def number(file: Path) -> int | None:
    """A whole number of at least 0."""
    content = text(file)
    return int(content) if content.isdecimal() else None
