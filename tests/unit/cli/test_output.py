"""No command prints the control characters of objects to a terminal."""

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from tests.unit.cli.benchmarks import benchmark, condition
from tests.unit.report.published import measured
from tierbench.cli.console import show
from tierbench.cli.main import main
from tierbench.cli.output import escape, escaped_output, write_output
from tierbench.cli.watch import Progress, changes
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark

Capture = pytest.CaptureFixture[str]
ATTACK = "\x1b]0;owned\x07\x1b[2J\x9b2J[/x]:smile:"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\x9b2J[/x]:smile:"


def controls(text: str) -> set[str]:
    return {character for character in text if character != "\n" and not character.isprintable()}


@pytest.fixture
def attacked(tmp_path: Path) -> str:
    """Results with control characters in each free text."""
    items: list[dict[str, Any]] = []
    for case, server in enumerate(("cloud", "jetson"), start=1):
        result = measured(server, "1Mi", [(1.0 + case, 0), (1.2 + case, 0)], case, run=1)
        body = {"apiVersion": "tierbench.io/v1alpha1", "kind": "BenchmarkResult", **result.to_json()}
        body["status"] |= {"valid": False, "invalid": [{"reason": "NodeBusy", "message": ATTACK}]}
        items.append(json.loads(json.dumps(body).replace("jetson", f"jet{json.dumps(ATTACK)[1:-1]}son")))
    items.append({"apiVersion": f"tierbench.io/v0{ATTACK}", "kind": "BenchmarkResult"})
    path = tmp_path / "results.json"
    path.write_text(json.dumps(items))
    return str(path)


@pytest.mark.parametrize(
    "command",
    [
        ["results"],
        ["results", ATTACK],
        ["results", f"{ATTACK}/x"],
        ["compare", "cloud", f"jet{ATTACK}son"],
        ["compare", "cloud", ATTACK],
        ["advise", "--client-class", "user"],
        ["advise", "--client-class", ATTACK],
        ["advise", ATTACK],
    ],
)
def test_control_characters_are_escaped(command: list[str], attacked: str, capsys: Capture) -> None:
    main([*command, "--from", attacked])
    output = capsys.readouterr()
    assert controls(output.out + output.err) == set()
    assert r"\x1b" in output.out + output.err


def test_wrong_arguments_are_escaped(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["results", "--where", ATTACK])
    assert controls(capsys.readouterr().err) == set()


def test_progress_and_log_messages_are_escaped(capsys: Capture) -> None:
    failed = benchmark("Failed", conditions=[condition("Failed", "True", "NoNodes", ATTACK)])
    with escaped_output():
        print(*changes(None, Progress(FileTransferBenchmark.model_validate(failed))))
        handler = logging.StreamHandler()
        handler.emit(logging.makeLogRecord({"msg": ATTACK}))
    output = capsys.readouterr()
    assert SHOWN in output.out
    assert SHOWN in output.err
    assert controls(output.out + output.err) == set()


def test_styles_of_tables_remain_in_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with escaped_output():
        show(Text(ATTACK, style="bold"), ATTACK)
    styled, plain = capsys.readouterr().out.splitlines()
    assert styled.startswith("\x1b[1m")
    assert controls(styled.replace("\x1b[1m", "").replace("\x1b[0m", "")) == set()
    assert plain == SHOWN.replace(r"\x07", "")  # rich removes BEL


def test_data_is_unchanged_in_a_pipe_and_escaped_in_a_terminal(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with escaped_output():
        write_output(f"a\tb\n{ATTACK}", Path("-"))
    assert capsys.readouterr().out == f"a\tb\n{ATTACK}"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with escaped_output():
        write_output(f"a\tb\n{ATTACK}", Path("-"))
    assert capsys.readouterr().out == f"a\tb\n{SHOWN}"


def test_every_control_character_is_escaped_except_line_feeds_and_tabs() -> None:
    found = [chr(code) for code in range(0x3000) if escape(chr(code)) == chr(code)]
    assert {character for character in found if ord(character) < 0xA0 and not character.isprintable()} == {"\n", "\t"}
    assert escape("Ünïcödé – ± µs 測定") == "Ünïcödé – ± µs 測定"
