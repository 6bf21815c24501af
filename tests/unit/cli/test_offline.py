"""`results` and `report` on exported files."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.benchmarks import benchmark
from tests.unit.report.published import TABLE, measured, published
from tests.unit.results.preflights import node_network, with_networks
from tierbench.api.model import Resource
from tierbench.api.result import BenchmarkResult
from tierbench.cli.main import main

Capture = pytest.CaptureFixture[str]


def raw(item: Resource) -> dict[str, Any]:
    return {"apiVersion": "tierbench.io/v1alpha1", "kind": item.KIND.kind, **item.to_json()}


def write(path: Path, results: list[BenchmarkResult], *others: dict[str, Any]) -> str:
    records = [raw(result.record) for result in results if result.record is not None]
    path.write_text(json.dumps({"kind": "List", "items": [*map(raw, results), *records, *others]}))
    return str(path)


@pytest.fixture
def exported(tmp_path: Path) -> str:
    return write(tmp_path / "results.json", published())


def stderr_line(capsys: Capture) -> str:
    """Returns what a command wrote to standard error, which is always one line."""
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text


def test_table_has_the_format_of_the_paper(exported: str, capsys: Capture) -> None:
    assert main(["results", "file-transfer", "--from", exported]) == 0
    rows = {line.split("  ")[0].strip(): " ".join(line.split()) for line in capsys.readouterr().out.splitlines()}
    assert rows["1 MiB"] == "1 MiB 23.00 ± 4.83 ms 0 10 43.00 ± 17.67 ms 0 10 cloud, −47%"
    assert rows["2 GiB"] == "2 GiB 22.11 ± 0.05 s 0 10 19.47 ± 2.38 s 0 10 jetson, −12%"
    assert rows["5 GiB"] == "5 GiB 55.20 ± 0.09 s 0 10 66.08 ± 1.94 s 18 10 cloud, −16%"


def test_answer_is_printed_in_words(exported: str, capsys: Capture) -> None:
    main(["results", "--from", exported])
    text = capsys.readouterr().out
    assert "cloud is ahead at 1 MiB, by 47%; jetson is ahead from 512 MiB to 2 GiB" in text
    assert "Retries occurred only on jetson, from 3 GiB on (38 in total)." in text


def test_bare_list_is_read_from_standard_input(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps([raw(result) for result in published()])))
    assert main(["results", "--from", "-"]) == 0
    assert "22.11 ± 0.05 s" in capsys.readouterr().out


def test_classes_without_a_clear_difference_are_reported_as_inconclusive(tmp_path: Path, capsys: Capture) -> None:
    results = [
        measured(server, "1Mi", [(1.0, 0), (1.2, 0)], case) for case, server in enumerate(("cloud", "jetson"), 1)
    ]
    main(["results", "--from", write(tmp_path / "r.json", results)])
    assert "inconclusive: cloud or jetson" in capsys.readouterr().out


def test_run_is_selected_by_number(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path / "r.json", [measured("cloud", "1Mi", [(run / 4, 0)], run=run) for run in (1, 2, 3)])
    main(["results", "--from", path])
    text = capsys.readouterr().out
    assert "750.0 ms" in text
    assert "250.0 ms" not in text
    main(["results", "--run", "1", "--from", path])
    assert "250.0 ms" in capsys.readouterr().out


def test_report_is_one_file_with_the_spec_if_known(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path / "r.json", published(), benchmark("Complete"))
    output = tmp_path / "out.html"
    assert main(["report", "--from", path, "--output-file", str(output)]) == 0
    assert "fileSizes:" in output.read_text()
    assert "14 results" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["results", "other"], "these benchmarks have: file-transfer"),
        (["results", "Pod/file-transfer"], "filetransferbenchmark"),
        (["results", "--run", "7"], "the results have these runs: 1"),
        (["results", "-n", "elsewhere"], "no results in namespace elsewhere"),
        (["report", "--output-file", "/nowhere/report.html"], "another file with --output-file"),
    ],
)
def test_missing_object_is_reported_in_one_line(
    arguments: list[str], hint: str, exported: str, capsys: Capture
) -> None:
    assert main([*arguments, "--from", exported]) == 2
    assert hint in stderr_line(capsys)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('{"items": [\n\n', "line 3"),
        ("42", "kubectl get results -o json"),
        ("[42]", "item 1"),
        ('{"items": 3}', "contains no list"),
        ('{"items": []}', "no results"),
        (
            '[{"kind": "BenchmarkResult", "metadata": {"name": "a"}, "spec": {"run": 0}}]',
            "item 1: BenchmarkResult a: spec.",
        ),
        ('[{"kind": "BenchmarkResult", "metadata": 3}]', "item 1"),
        ('[{"kind": "FileTransferBenchmark", "metadata": [], "spec": 3}]', "item 1: FileTransferBenchmark"),
    ],
)
def test_damaged_file_is_reported_with_place_and_reason(text: str, hint: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "damaged.json"
    path.write_text(text)
    assert main(["results", "--from", str(path)]) == 2
    assert hint in stderr_line(capsys)


def test_missing_and_binary_files_are_reported(tmp_path: Path, capsys: Capture) -> None:
    assert main(["results", "--from", str(tmp_path / "none")]) == 2
    assert "No such file" in stderr_line(capsys)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert main(["results", "--from", str(tmp_path / "binary")]) == 2
    assert "is not text" in stderr_line(capsys)


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["watch"], ["results", "--run", "0"], ["watch", "x", "--timeout", "soon"]]
)
def test_wrong_usage_is_reported_in_one_line_with_a_hint(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "--help`" in stderr_line(capsys)


@pytest.mark.parametrize("content", [None, "nonsense: [", "[]", "{}", "apiVersion: v1\ncontexts: 3\n"])
def test_unusable_kubeconfig_is_reported_in_one_line(content: str | None, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    assert main(["results", "--kubeconfig", str(path)]) == 2
    assert "KUBECONFIG" in stderr_line(capsys)


def test_only_selected_cases_are_shown(exported: str, capsys: Capture) -> None:
    assert main(["results", "--from", exported, "--server-class", "jetson", "--where", "fileSize=1048576"]) == 0
    text = capsys.readouterr().out
    assert "43.00" in text
    assert "23.00" not in text
    assert "2 GiB" not in text


@pytest.mark.parametrize(
    "filters",
    [["--server-class", "edge"], ["--client-class", "cloud"], ["--where", "fileSize=7Mi"], ["--where", "size=1Mi"]],
)
def test_filters_without_match_list_the_available_levels(exported: str, capsys: Capture, filters: list[str]) -> None:
    assert main(["results", "--from", exported, *filters]) == 2
    text = stderr_line(capsys)
    assert "no case matches; the node classes are cloud, jetson and user" in text
    assert "fileSize 1Mi, 512Mi" in text


def test_invalid_filter_is_refused(exported: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["results", "--from", exported, "--where", "1Mi"])
    assert "is not FACTOR=LEVEL" in capsys.readouterr().err


def test_network_between_nodes_is_printed_once_per_pair(tmp_path: Path, capsys: Capture) -> None:
    results = [with_networks(result, node_network(server=result.spec.server.node)) for result in published()]
    main(["results", "--from", write(tmp_path / "results.json", results)])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Network: ")]
    servers = dict.fromkeys(result.spec.server.node for result in results)
    assert lines == [f"Network: user-1 to {name}: 90.0 Mbit/s up, 80.0 Mbit/s down, ping 500 µs" for name in servers]


@pytest.mark.parametrize("arguments", [["--help"], ["results", "--from", "RESULTS"]])
def test_kubernetes_library_is_imported_only_for_a_cluster(arguments: list[str], tmp_path: Path) -> None:
    results = write(tmp_path / "results.json", published())
    program = (
        "import sys; from tierbench.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, *(results if each == "RESULTS" else each for each in arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = ended.stderr.split()
    assert "tierbench.cli.command" in imported
    assert "kubernetes" not in imported


def test_results_show_published_numbers_but_verdicts_ignore_them(exported: str, capsys: Capture) -> None:
    assert main(["results", "--from", exported]) == 0
    alone = capsys.readouterr().out
    assert main(["results", "--from", exported, "--beside", str(TABLE)]) == 0
    both = capsys.readouterr().out
    assert "Published numbers of published-file-transfer for the same cases (not in verdicts)" in both
    rows = [line.split() for line in both.splitlines() if " 5 GiB " in f" {line} " and "Transfer time" in line]
    assert [" ".join(row) for row in rows] == [
        "5 GiB cloud Transfer time 55.20 ± 0.09 s 55.20 ± 0.09 s 1.00",
        "5 GiB jetson-nano, published Transfer time 66.08 ± 1.94 s – –",
    ]
    assert [line for line in alone.splitlines() if "ahead" in line] == [
        line for line in both.splitlines() if "ahead" in line
    ]


def test_report_shows_published_numbers_as_rows(exported: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert main(["report", "--from", exported, "--beside", str(TABLE), "--output-file", str(page)]) == 0
    text = page.read_text()
    assert "published results</h3>" in text
    assert "jetson-nano, published" in text
    assert "<h2>Published numbers</h2>" in text
    assert main(["report", "--from", exported, "--output-file", str(page)]) == 0
    assert "published" not in page.read_text()


@pytest.mark.parametrize("command", [["results"], ["report", "--output-file", "-"]])
def test_published_numbers_of_other_cases_are_reported(
    command: list[str], exported: str, tmp_path: Path, capsys: Capture
) -> None:
    table = tmp_path / "other.csv"
    table.write_text("kind,clientClass,fileSize,durationSeconds\nFileTransferBenchmark,pi,1Mi,1\n")
    assert main([*command, "--from", exported, "--beside", str(table)]) == 0
    assert (
        "No published result matches a case of this run (FileTransferBenchmark, clients on user,"
        in capsys.readouterr().out
    )


def test_mean_without_deviation_is_shown_but_not_compared(tmp_path: Path, capsys: Capture) -> None:
    table = tmp_path / "means.csv"
    table.write_text("kind,serverClass,fileSize,trials,durationSeconds\nFileTransferBenchmark,cloud,1Mi,10,1\n")
    assert main(["results", "--from", str(table)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "1 MiB 1.00 s – 10 –" in text
    assert "No retry data." in text
    assert "1 of 1 cases are published means without the number of trials or the standard deviation" in text
    assert main(["report", "--from", str(table), "--output-file", "-"]) == 0
    assert "1.00 s (published mean)" in capsys.readouterr().out
