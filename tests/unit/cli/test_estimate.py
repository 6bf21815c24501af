"""`estimate` of manifests and of benchmarks in a cluster."""

import json
from pathlib import Path

import pytest

from tests.unit.apiserver.client import serve_in_thread
from tests.unit.apiserver.server import ApiServer
from tests.unit.cli.benchmarks import benchmark
from tests.unit.cli.test_examples import EXAMPLES, FOLDERS
from tests.unit.cli.test_offline import stderr_line
from tierbench.cli.main import main
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark

Capture = pytest.CaptureFixture[str]
QUICK_START = str(EXAMPLES / "quick-start" / "benchmark.yaml")


def test_estimate_of_a_manifest_agrees_with_the_comment_of_init(capsys: Capture) -> None:
    assert main(["estimate", "-f", QUICK_START]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split() == ["NAME", "CASES", "TRIALS", "TIME", "MOVED", "STORED"]
    assert line.split("   ")[0] == "filetransferbenchmark.tierbench.io/quick-start"
    assert " ".join(line.split()[1:]) == "4 16 2m17s 520 MiB 37.50 KiB"
    assert "about 2 min over links of 100 Mbit/s, 520 MiB moved, 65 MiB of disk" in Path(QUICK_START).read_text()


def test_json_has_the_rate_and_an_item_per_benchmark(capsys: Capture) -> None:
    assert main(["estimate", "quick-start", "-f", QUICK_START, "-o", "json", "--rate", "1G"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bitsPerSecond"] == 1_000_000_000
    (item,) = found["items"]
    assert (item["kind"], item["name"], item["trials"]) == ("FileTransferBenchmark", "quick-start", 16)
    assert item["bytesMoved"] == 8 * 65 * 2**20


@pytest.mark.parametrize("name", FOLDERS)
def test_every_example_can_be_estimated(name: str, capsys: Capture) -> None:
    assert main(["estimate", "-f", str(EXAMPLES / name / "benchmark.yaml"), "-o", "wide"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[-2:] == ["SERVERS", "DISK"]
    assert lines


def test_a_benchmark_of_the_cluster_is_estimated(tmp_path: Path, capsys: Capture) -> None:
    store = ApiServer()
    store.put(FileTransferBenchmark.KIND.resource, benchmark("Suspended"))
    with serve_in_thread(store, tmp_path) as kubeconfig:
        assert main(["estimate", "tbf/file-transfer", "--kubeconfig", kubeconfig]) == 0
    assert "filetransferbenchmark.tierbench.io/file-transfer" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ([], "name a benchmark, or a file with -f"),
        (["other", "-f", QUICK_START], "there is no benchmark other in the files"),
    ],
)
def test_missing_benchmark_is_reported_with_a_hint(arguments: list[str], hint: str, capsys: Capture) -> None:
    assert main(["estimate", *arguments]) == 2
    assert hint in stderr_line(capsys)


def test_invalid_rate_is_rejected(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["estimate", "-f", QUICK_START, "--rate", "fast"])
    assert "write bits per second" in stderr_line(capsys)
