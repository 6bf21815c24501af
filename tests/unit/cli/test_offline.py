"""`results` and `report` on exported files."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.benchmarks import benchmark
from tests.unit.report.published import measured, published
from tests.unit.results.preflights import carrying, node_network
from tierbench.api.result import BenchmarkResult
from tierbench.cli.main import main

Capture = pytest.CaptureFixture[str]


def raw(result: BenchmarkResult) -> dict[str, Any]:
    return {"apiVersion": "tierbench.io/v1alpha1", "kind": "BenchmarkResult", **result.to_json()}


def write(path: Path, results: list[BenchmarkResult], *others: dict[str, Any]) -> str:
    path.write_text(json.dumps({"kind": "List", "items": [*map(raw, results), *others]}))
    return str(path)


@pytest.fixture
def exported(tmp_path: Path) -> str:
    return write(tmp_path / "results.json", published())


def told(capsys: Capture) -> str:
    """What was said on standard error: always one line."""
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text


def test_the_table_has_the_form_of_the_paper(exported: str, capsys: Capture) -> None:
    assert main(["results", "file-transfer", "--from", exported]) == 0
    rows = {line.split("  ")[0].strip(): " ".join(line.split()) for line in capsys.readouterr().out.splitlines()}
    assert rows["1 MiB"] == "1 MiB 23.00 ± 4.83 ms 0 10 43.00 ± 17.67 ms 0 10 cloud, −47 %"
    assert rows["2 GiB"] == "2 GiB 22.11 ± 0.05 s 0 10 19.47 ± 2.38 s 0 10 jetson, −12 %"
    assert rows["5 GiB"] == "5 GiB 55.20 ± 0.09 s 0 10 66.08 ± 1.94 s 18 10 cloud, −16 %"


def test_the_answer_is_said_in_words(exported: str, capsys: Capture) -> None:
    main(["results", "--from", exported])
    text = capsys.readouterr().out
    assert "cloud is ahead at 1 MiB, by 47 %; jetson is ahead from 512 MiB to 2 GiB" in text
    assert "Retries happened only on jetson, from 3 GiB on (38 in all)." in text


def test_a_bare_list_and_standard_input_are_read_too(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps([raw(result) for result in published()])))
    assert main(["results", "--from", "-"]) == 0
    assert "22.11 ± 0.05 s" in capsys.readouterr().out


def test_a_tie_is_a_word(tmp_path: Path, capsys: Capture) -> None:
    results = [
        measured(server, "1Mi", [(1.0, 0), (1.2, 0)], case) for case, server in enumerate(("cloud", "jetson"), 1)
    ]
    main(["results", "--from", write(tmp_path / "r.json", results)])
    assert "not known: cloud or jetson" in capsys.readouterr().out


def test_a_run_is_chosen_by_number(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path / "r.json", [measured("cloud", "1Mi", [(run / 4, 0)], run=run) for run in (1, 2, 3)])
    main(["results", "--from", path])
    text = capsys.readouterr().out
    assert "750.0 ms" in text
    assert "250.0 ms" not in text
    main(["results", "--run", "1", "--from", path])
    assert "250.0 ms" in capsys.readouterr().out


def test_the_report_is_one_file_with_the_spec_if_it_is_there(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path / "r.json", published(), benchmark("Complete"))
    output = tmp_path / "out.html"
    assert main(["report", "--from", path, "-o", str(output)]) == 0
    assert "fileSizes:" in output.read_text()
    assert "14 results" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["results", "other"], "these benchmarks have: file-transfer"),
        (["results", "Pod/file-transfer"], "filetransferbenchmark"),
        (["results", "--run", "7"], "the results have these runs: 1"),
        (["results", "-n", "elsewhere"], "no results in namespace elsewhere"),
        (["report", "-o", "/nowhere/report.html"], "another file with -o"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(arguments: list[str], hint: str, exported: str, capsys: Capture) -> None:
    assert main([*arguments, "--from", exported]) == 2
    assert hint in told(capsys)


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
def test_a_damaged_file_gives_the_place_and_the_reason(text: str, hint: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "damaged.json"
    path.write_text(text)
    assert main(["results", "--from", str(path)]) == 2
    assert hint in told(capsys)


def test_no_file_and_no_text(tmp_path: Path, capsys: Capture) -> None:
    assert main(["results", "--from", str(tmp_path / "none")]) == 2
    assert "No such file" in told(capsys)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert main(["results", "--from", str(tmp_path / "binary")]) == 2
    assert "is not text" in told(capsys)


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["watch"], ["results", "--run", "0"], ["watch", "x", "--timeout", "soon"]]
)
def test_wrong_usage_is_one_line_with_a_hint(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "--help`" in told(capsys)


@pytest.mark.parametrize("content", [None, "nonsense: [", "[]", "{}", "apiVersion: v1\ncontexts: 3\n"])
def test_an_unusable_kubeconfig_is_one_line(content: str | None, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    assert main(["results", "--kubeconfig", str(path)]) == 2
    assert "KUBECONFIG" in told(capsys)


def test_only_the_cases_that_are_asked_for_are_shown(exported: str, capsys: Capture) -> None:
    assert main(["results", "--from", exported, "--server", "jetson", "--where", "fileSize=1048576"]) == 0
    text = capsys.readouterr().out
    assert "43.00" in text
    assert "23.00" not in text
    assert "2 GiB" not in text


@pytest.mark.parametrize(
    "filters", [["--server", "edge"], ["--client", "cloud"], ["--where", "fileSize=7Mi"], ["--where", "size=1Mi"]]
)
def test_filters_that_leave_nothing_say_what_there_is(exported: str, capsys: Capture, filters: list[str]) -> None:
    assert main(["results", "--from", exported, *filters]) == 2
    text = told(capsys)
    assert "no case matches; the node classes are cloud, jetson and user" in text
    assert "fileSize 1Mi, 512Mi" in text


def test_a_filter_that_is_none_is_refused(exported: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["results", "--from", exported, "--where", "1Mi"])
    assert "is not FACTOR=LEVEL" in capsys.readouterr().err


def test_the_network_before_the_first_case_is_told_once_a_pair(tmp_path: Path, capsys: Capture) -> None:
    results = [carrying(result, node_network(server=result.spec.server.node)) for result in published()]
    main(["results", "--from", write(tmp_path / "results.json", results)])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Network: ")]
    servers = dict.fromkeys(result.spec.server.node for result in results)
    assert lines == [f"Network: user-1 to {name}: 90.0 Mbit/s up, 80.0 Mbit/s down, ping 500 µs" for name in servers]


@pytest.mark.parametrize("arguments", [["--help"], ["results", "--from", "RESULTS"]])
def test_the_kubernetes_library_is_not_imported_without_a_cluster(arguments: list[str], tmp_path: Path) -> None:
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
