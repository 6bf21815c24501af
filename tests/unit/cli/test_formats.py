"""Flags as kubectl has them: output formats, namespaces, selectors and durations."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.apiserver.client import serve_in_thread
from tests.unit.apiserver.server import ApiServer
from tests.unit.cli.test_offline import stderr_line, write
from tests.unit.report.published import TABLE, measured, published
from tierbench.api.result import RESULTS
from tierbench.cli.command import parse_duration
from tierbench.cli.main import main

Capture = pytest.CaptureFixture[str]
NAMES = [f"benchmarkresult.tierbench.io/{result.metadata.name}" for result in published()]


@pytest.fixture
def exported(tmp_path: Path) -> str:
    return write(tmp_path / "results.json", published())


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """Two namespaces, each with the same benchmark; runs 1 and 2 in the second one."""
    api = ApiServer()
    for namespace, run in (("default", 1), ("team-b", 1), ("team-b", 2)):
        for case, server in enumerate(("cloud", "jetson"), start=1):
            body = measured(server, "1Mi", [(run * case / 4, 0)], case, run=run).to_json()
            labels = {"tierbench.io/benchmark": "file-transfer", "tierbench.io/run": str(run)}
            api.put(RESULTS, {**body, "metadata": {**body["metadata"], "namespace": namespace, "labels": labels}})
    with serve_in_thread(api, tmp_path) as kubeconfig:
        yield kubeconfig


def output(capsys: Capture, *arguments: str) -> str:
    assert main(arguments) in {0, 1}
    return capsys.readouterr().out


def test_results_are_objects_in_the_formats_of_kubectl(exported: str, capsys: Capture) -> None:
    as_json = json.loads(output(capsys, "results", "-f", exported, "-o", "json"))
    assert yaml.safe_load(output(capsys, "results", "-f", exported, "-o", "yaml")) == as_json
    assert (as_json["apiVersion"], as_json["kind"], len(as_json["items"])) == ("v1", "List", len(published()))
    assert sorted(output(capsys, "results", "-f", exported, "-o", "name").split()) == sorted(NAMES)
    records = [name.replace("result", "record", 1) for name in NAMES]
    assert sorted(output(capsys, "export", "-f", exported, "-o", "name").split()) == sorted([*NAMES, *records])


def test_wide_adds_every_quantity(exported: str, capsys: Capture) -> None:
    table, wide = (output(capsys, "results", "-f", exported, "-o", each) for each in ("table", "wide"))
    assert output(capsys, "results", "-f", exported) == table
    assert len(wide.splitlines()) > len(table.splitlines())
    assert set(table.splitlines()) <= set(wide.splitlines())


def test_advice_has_the_formats_of_kubectl(capsys: Capture) -> None:
    question = ("advise", "-f", str(TABLE), "--client-class", "user")
    assert json.loads(output(capsys, *question, "-o", "json"))["kind"] == "PlacementAdvice"
    assert output(capsys, *question, "-o", "name") == "placementadvice.tierbench.io/question\n"
    assert output(capsys, *question, "-o", "wide").startswith("cloud is best")


def test_comparison_can_be_printed_as_json_and_yaml(exported: str, capsys: Capture) -> None:
    found: dict[str, Any] = json.loads(output(capsys, "compare", "cloud", "jetson", "-f", exported, "-o", "json"))
    case = next(case for case in found["cases"] if case["levels"]["fileSize"] == "5Gi")
    assert found["quantity"] == "durationNanoseconds"
    assert case["verdict"] == "worse"
    assert case["difference"] == pytest.approx(case["second"] - case["first"])
    assert case["differenceInterval"][0] < case["difference"] < case["differenceInterval"][1]
    assert yaml.safe_load(output(capsys, "compare", "cloud", "jetson", "-f", exported, "-o", "yaml")) == found


def names(capsys: Capture, *arguments: str) -> list[tuple[str, str, int]]:
    items = json.loads(output(capsys, "results", "-o", "json", *arguments))["items"]
    return sorted((item["metadata"]["namespace"], item["metadata"]["name"], item["spec"]["run"]) for item in items)


def test_results_of_all_namespaces_are_shown(cluster: str, capsys: Capture) -> None:
    assert {place for place, *_ in names(capsys, "--kubeconfig", cluster)} == {"default"}
    found = names(capsys, "--kubeconfig", cluster, "-A")
    assert {(place, run) for place, _, run in found} == {("default", 1), ("team-b", 2)}
    assert "Namespace team-b" in output(capsys, "results", "--kubeconfig", cluster, "--all-namespaces")
    assert "Namespace" not in output(capsys, "results", "--kubeconfig", cluster)
    assert json.loads(output(capsys, "advise", "--kubeconfig", cluster, "-A", "-o", "json"))["status"]["ranking"]


def test_labels_select_results(cluster: str, capsys: Capture) -> None:
    found = names(capsys, "--kubeconfig", cluster, "-n", "team-b", "-l", "tierbench.io/run=1")
    assert {run for *_, run in found} == {1}
    assert names(capsys, "--kubeconfig", cluster, "-n", "team-b", "file-transfer", "-l", "tierbench.io/run=1") == found


def test_labels_do_not_select_from_files(exported: str, capsys: Capture) -> None:
    for command in ("results", "advise"):
        assert main([command, "-f", exported, "-l", "a=b"]) == 2
        assert "use `kubectl get results --selector`" in stderr_line(capsys)


@pytest.mark.parametrize("flag", ["--server", "--client", "--out"])
def test_flags_are_not_abbreviated(flag: str, exported: str, capsys: Capture) -> None:
    """An abbreviation could be a flag of kubectl with another meaning, such as --server."""
    with pytest.raises(SystemExit):
        main(["results", "-f", exported, flag, "cloud"])
    assert "unrecognized arguments" in stderr_line(capsys)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200), ("1h30m", 5400), ("1h0m1s", 3601)]
)
def test_durations_are_parsed_as_in_kubectl(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "soon", "1m1h", "-5s", "1.5h"])
def test_invalid_durations_are_rejected(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a duration"):
        parse_duration(text)
