"""`--beside`: published numbers in results and report, and in no verdict."""

from pathlib import Path

import pytest

from tests.unit.cli.test_offline import write
from tests.unit.report.published import TABLE, published
from tierbench.cli.main import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def own(tmp_path: Path) -> str:
    return write(tmp_path / "results.json", published())


def test_the_table_in_the_terminal_has_them_as_columns_and_the_verdict_does_not(own: str, capsys: Capture) -> None:
    assert main(["results", "--from", own]) == 0
    alone = capsys.readouterr().out
    assert main(["results", "--from", own, "--beside", str(TABLE)]) == 0
    both = capsys.readouterr().out
    assert "Transfer time, beside published-file-transfer (published, in no verdict)" in both
    row = next(line for line in both.splitlines() if line.strip().startswith("5 GiB") and line.count("±") == 4)
    assert row.count("66.08 ± 1.94 s") == row.count("55.20 ± 0.09 s") == 2
    assert [line for line in alone.splitlines() if "ahead" in line] == [
        line for line in both.splitlines() if "ahead" in line
    ]


def test_the_report_has_them_as_lines(own: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert main(["report", "--from", own, "--beside", str(TABLE), "-o", str(page)]) == 0
    text = page.read_text()
    assert "Beside published numbers" in text
    assert "jetson-nano, published" in text
    assert main(["report", "--from", own, "-o", str(page)]) == 0
    assert "published" not in page.read_text()


@pytest.mark.parametrize("command", [["results"], ["report", "-o", "-"]])
def test_where_none_is_of_these_cases_that_is_said(
    command: list[str], own: str, tmp_path: Path, capsys: Capture
) -> None:
    table = tmp_path / "other.csv"
    table.write_text("kind,clientClass,fileSize,durationSeconds\nFileTransferBenchmark,pi,1Mi,1\n")
    assert main([*command, "--from", own, "--beside", str(table)]) == 0
    assert "Nothing published is of these cases (FileTransferBenchmark, clients on user," in capsys.readouterr().out


def test_a_mean_alone_is_shown_and_said_to_decide_nothing(tmp_path: Path, capsys: Capture) -> None:
    table = tmp_path / "means.csv"
    table.write_text("kind,serverClass,fileSize,trials,durationSeconds\nFileTransferBenchmark,cloud,1Mi,10,1\n")
    assert main(["results", "--from", str(table)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "1 MiB 1.00 s – 10 –" in text
    assert "Of retries nothing is known." in text
    assert "1 of 1 cases are published means without the number of their trials or their standard deviation" in text
    assert main(["report", "--from", str(table), "-o", "-"]) == 0
    assert "1.00 s (a mean alone)" in capsys.readouterr().out
