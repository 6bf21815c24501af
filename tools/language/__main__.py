"""Checks the language of all files that git tracks, or of the files below the given paths.

`styles/tierbench/Words.yml` lists the refused words. Vale checks documents for them, and for the other rules in
`styles/tierbench`. This module checks all other files for them, and Python code for long sentences.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import yaml

from tools.language.sentences import LIMIT, long_sentences

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
DOCUMENT: Final = ".md"
WORDS: Final = HERE / "styles" / "tierbench" / "Words.yml"
SUFFIXES: Final = frozenset(
    {"", ".c", ".cfg", ".conf", ".go", ".ini", ".md", ".proto", ".py", ".sh", ".toml", ".tpl", ".txt", ".yaml", ".yml"}
)
"""Suffixes of files that people write or read. Data such as JSON and CSV is not checked."""
ABOUT_WORDS: Final = frozenset({WORDS, ROOT / "tests" / "unit" / "tools" / "test_language.py"})
"""Files that contain refused words because they are about them."""

_BOUNDARY: Final = re.compile(r"_|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def refused_words(path: Path = WORDS) -> Mapping[re.Pattern[str], str]:
    """Returns the refused words as patterns, each with what to write instead."""
    swap: Mapping[str, str] = yaml.safe_load(path.read_text())["swap"]
    return {re.compile(rf"\b(?:{key})\b", re.IGNORECASE): value for key, value in swap.items()}


def findings(line: str, words: Mapping[re.Pattern[str], str]) -> Iterator[str]:
    """Yields a message for each refused word in a line of code. Splits identifiers into words."""
    text = _BOUNDARY.sub(" ", line)
    for pattern, replacement in words.items():
        yield from (f"replace {found!r} by: {replacement}" for found in pattern.findall(text))


def check(path: Path, words: Mapping[re.Pattern[str], str]) -> Iterator[str]:
    """Yields messages with path and line: refused words in a file's name, and in code also long sentences.

    Texts in tests that are not docstrings repeat texts of the code, so they are not checked for long sentences.
    """
    name = path.relative_to(ROOT)
    yield from (f"{name}: {message} (in the file's name)" for message in findings(str(name), words))
    if path.suffix != DOCUMENT:
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            yield from (f"{name}:{number}: {message}" for message in findings(line, words))
    if path.suffix == ".py":
        found = long_sentences(path.read_text(), messages=name.parts[0] != "tests")
        yield from (f"{name}:{line}: split this sentence: {count} words, at most {LIMIT}" for line, count in found)


def check_documents(paths: Sequence[Path]) -> Sequence[str]:
    """Returns the messages of Vale for these documents, with path, line, column and rule."""
    names = [str(path.relative_to(ROOT)) for path in paths if path.suffix == DOCUMENT]
    if not names:
        return []
    command = [str(ROOT / "tools" / "vale"), f"--config={HERE / 'vale.ini'}", "--output=line", *names]
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if ended.stderr.strip() not in {"", "exit status 1"}:  # `go run` prints the exit code; 1 means findings
        sys.exit(f"Vale failed: {ended.stderr or ended.stdout}")
    return ended.stdout.splitlines()


def files(arguments: Sequence[str]) -> Iterator[Path]:
    """Yields the tracked files to check: those below the arguments, or all."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    for path in (ROOT / name for name in filter(None, listed)):
        if path.suffix in SUFFIXES and path.is_file() and path not in ABOUT_WORDS:
            yield path


def main() -> int:
    """Prints the findings. Returns 1 if there are any."""
    words = refused_words()
    checked = list(files(sys.argv[1:]))
    found = [*(message for path in checked for message in check(path, words)), *check_documents(checked)]
    for message in found:
        print(message)
    if found:
        print(f"{len(found)} problems: see {WORDS.relative_to(ROOT)}, docs/reference/glossary.md", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
