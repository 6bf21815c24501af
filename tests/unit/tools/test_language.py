"""`python -m tools.language` refuses words in code, documents and names of files."""

from pathlib import Path

import pytest

from tools.language import __main__ as language
from tools.language.sentences import long_sentences

WORDS = language.refused_words()


@pytest.mark.parametrize(
    "line",
    [
        "def _let_go(self) -> None:",
        "func TestNobodyPings(t *testing.T) {",
        "class Said:",
        'raise UserError("it goes on")',
        "# It is measured anew.",
        "self._bells = {}",
        "TOLD_APART = 1",
        "isToldApart := true",
        "Farewell time.Duration",
    ],
)
def test_a_refused_word_is_found_in_code(line: str) -> None:
    assert list(language.findings(line, WORDS))


@pytest.mark.parametrize(
    "line",
    [
        "a string that is held",
        'parser.add_argument("--beside")',
        "read_files(options.beside)",
        "patienceMilliseconds: 100",
        "patience_milliseconds = 5",
        "user nobody;",
        "Strings, forbearance, newsletter, saidx, untold",
    ],
)
def test_other_words_and_public_names_are_not_found(line: str) -> None:
    assert list(language.findings(line, WORDS)) == []


def test_a_message_names_the_word_and_the_replacement() -> None:
    assert list(language.findings("started anew", WORDS)) == ["replace 'anew' by: again"]


LONG = "word " * 26


@pytest.mark.parametrize(
    ("source", "messages", "lines"),
    [
        (f'"""{LONG}"""', False, [1]),
        (f'"""Short. {LONG}"""', False, [1]),
        ('"""' + "Ten words are not too many for one short sentence. " * 3 + '"""', False, []),
        (f'print("{LONG}")', True, [1]),
        (f'print("{LONG}")', False, []),
        ('print(f"' + "word {value + other} " * 13 + '")', True, [1]),
        (f'print("""first line\n{LONG}""")', True, []),
    ],
)
def test_long_sentences_are_found_in_docstrings_and_messages(source: str, messages: bool, lines: list[int]) -> None:
    assert [line for line, _ in long_sentences(source, messages=messages)] == lines


def test_the_name_of_a_file_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "ROOT", tmp_path)
    module = tmp_path / "news.py"
    module.write_text("")
    assert [message.split(":")[0] for message in language.check(module, WORDS)] == ["news.py"]
