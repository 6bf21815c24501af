"""Commands print an unexpected error in one line, and accept a closed pipe."""

import subprocess
import sys

import pytest

from tests.unit.report.published import TABLE
from tierbench.cli import results
from tierbench.cli.main import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def defective(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("one\ntwo")

    monkeypatch.setattr(results, "select_runs", fail)


@pytest.mark.usefixtures("defective")
def test_unexpected_error_is_one_line_that_says_what_to_report(capsys: Capture) -> None:
    assert main(["results", "--from", str(TABLE)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert "unexpected error: KeyError: 'one\\ntwo' (test_errors.py:" in output.err
    assert "report this line, the command, and `kubectl tierbench --version`" in output.err


@pytest.mark.usefixtures("defective")
def test_traceback_is_printed_on_demand(capsys: Capture) -> None:
    assert main(["results", "--from", str(TABLE), "-v"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "unexpected error: KeyError" in lines[-1]


@pytest.mark.parametrize("command", ["results", "export", "advise"])
def test_closed_pipe_is_no_error(command: str) -> None:
    program = [sys.executable, "-c", "import sys; from tierbench.cli.main import main; sys.exit(main())"]
    process = subprocess.Popen(
        [*program, command, "--from", str(TABLE)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    assert (process.wait(), process.stderr and process.stderr.read()) == (0, "")
