"""Examples in help texts, and completions in the protocol of kubectl."""

import shlex
import sys
from pathlib import Path

import pytest

from tests.unit.apiserver.client import serve_in_thread
from tests.unit.apiserver.server import ApiServer
from tests.unit.cli.benchmarks import benchmark
from tierbench.cli.completion import complete
from tierbench.cli.completion import main as print_completions
from tierbench.cli.main import COMMANDS, PROGRAM, main, parser
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark

Capture = pytest.CaptureFixture[str]
EXAMPLES = [(name, how) for name, command in COMMANDS.items() for how in command.examples.values()]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_every_example_is_valid(name: str, example: str) -> None:
    words = shlex.split(example.partition(" > ")[0])
    assert words[0] == name
    assert callable(parser(words).parse_args(words).run)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_three_examples(name: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert text.partition("examples:\n")[2].count(f"  {PROGRAM} {name}") == 3
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("before", "current", "words", "directive"),
    [
        ("", "re", {"rerun", "resume", "results", "report"}, ":4"),
        ("", "--v", {"--version"}, ":4"),
        ("results", "--se", {"--selector", "--server-class"}, ":4"),
        ("results -o", "", {"table", "wide", "json", "yaml", "name"}, ":4"),
        ("export --output", "per", {"perftool", "perftool-tsv"}, ":4"),
        ("results -f", "", set(), ":0"),
        ("results --run", "", set(), ":4"),
        ("delete-run -y", "--d", {"--dry-run"}, ":4"),
        ("delete-run --dry-run", "", {"none", "client"}, ":4"),
    ],
)
def test_words_are_completed(before: str, current: str, words: set[str], directive: str) -> None:
    *found, last = complete(before.split(), current)
    assert {line.partition("\t")[0] for line in found} == words
    assert last == directive


def test_names_of_benchmarks_are_completed(tmp_path: Path) -> None:
    store = ApiServer()
    store.put(FileTransferBenchmark.KIND.resource, benchmark("Complete"))
    with serve_in_thread(store, tmp_path) as kubeconfig:
        assert list(complete(["watch", "--kubeconfig", kubeconfig], "fi")) == ["file-transfer", ":4"]
        assert list(complete(["watch", "--kubeconfig", kubeconfig], "x")) == [":4"]
    assert list(complete(["watch", "--kubeconfig", kubeconfig], "")) == [":4"]
    assert list(complete(["watch", "--kubeconfig", str(tmp_path / "none")], "")) == [":4"]


def test_the_program_prints_completions(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-tierbench", "sus"])
    print_completions()
    described = "Suspend a benchmark: end its pods, release its nodes, and keep its trials"
    assert capsys.readouterr().out == f"suspend\t{described}\n:4\n"
