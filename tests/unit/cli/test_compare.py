"""`compare`: two classes, benchmarks or runs, offline."""

from pathlib import Path

import pytest

from tests.unit.cli.test_offline import stderr_line, write
from tests.unit.report.published import TABLE, measured
from tierbench.api.result import LABEL_SUPERSEDED
from tierbench.cli.main import main

Capture = pytest.CaptureFixture[str]


def rows(capsys: Capture) -> dict[str, str]:
    lines = (" ".join(line.split()) for line in capsys.readouterr().out.splitlines())
    return {line.split(",")[0].split(" to ")[0]: line for line in lines}


@pytest.fixture
def history(tmp_path: Path) -> str:
    """Two equal runs, and run 3, which is 10% slower on the jetson; another benchmark with a single trial."""
    times = {1: (1.0, 1.0), 2: (1.001, 1.0), 3: (1.0, 1.1)}
    results = [
        measured(server, "1Mi", [(base * (1 + step / 1000), 0) for step in range(10)], case, run, name="files")
        for run, bases in times.items()
        for case, (server, base) in enumerate(zip(("cloud", "jetson"), bases, strict=True), start=1)
    ]
    return write(tmp_path / "results.json", [*results, measured("cloud", "1Mi", [(9.0, 0)], name="other")])


def test_classes_are_compared_level_by_level(capsys: Capture) -> None:
    assert main(["compare", "cloud", "jetson-nano", "--from", str(TABLE)]) == 1
    found = rows(capsys)
    assert found["1 MiB"].endswith("23.0 ms 43.0 ms +20.0 ms (+7.15 ms to +32.9 ms) +87% p = 0.012 worse")
    assert found["2 GiB"].endswith("22.11 s 19.47 s −2.64 s (−4.34 s to −935 ms) −12% p = 0.012 better")
    assert "jetson-nano is worse in 4 of 7 cases" in "".join(found)


def test_class_is_not_worse_than_itself(capsys: Capture) -> None:
    assert main(["compare", "jetson-nano", "jetson-nano", "--from", str(TABLE)]) == 0
    assert "inconclusive in 7." in capsys.readouterr().out


def test_runs_of_a_benchmark_are_compared(history: str, capsys: Capture) -> None:
    assert main(["compare", "files@1", "files@2", "--from", history]) == 0
    assert main(["compare", "files@2", "files", "--from", history]) == 1
    found = rows(capsys)
    assert found["jetson"].endswith("+10% p = 0.0037 worse")
    assert found["cloud"].endswith("inconclusive")
    assert main(["compare", "files@2", "tbf/files@3", "--tolerance", "15", "--from", history]) == 0
    assert "worse, within tolerance" in capsys.readouterr().out


@pytest.mark.parametrize("by", ["mean", "p50", "p90", "p99", "throughput", "retries"])
def test_every_objective_can_be_compared(by: str, history: str, capsys: Capture) -> None:
    wanted = {"mean": 1, "p50": 1, "throughput": 1}.get(by, 0)
    assert main(["compare", "files@2", "files@3", "--by", by, "--from", history]) == wanted


def test_single_trial_is_inconclusive(history: str, capsys: Capture) -> None:
    assert main(["compare", "files@2", "other", "--from", history]) == 0
    assert "p = 1 inconclusive" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("first", "second", "hint"),
    [
        ("files@2", "files@9", "files@9 has no results; these have: files@1, files@2, files@3, other@1, cloud, jetson"),
        ("missing", "files", "missing has no results"),
        ("jetson", "other", "have no case in common"),
        ("Pod/files", "files", "is not a kind of benchmark"),
    ],
)
def test_missing_comparison_is_reported_in_one_line(
    first: str, second: str, hint: str, history: str, capsys: Capture
) -> None:
    assert main(["compare", first, second, "--from", history]) == 2
    assert hint in stderr_line(capsys)


@pytest.fixture
def settings(tmp_path: Path) -> str:
    """On two classes, TLS takes a tenth longer; Kafka was measured with two codecs."""
    tls = [
        measured(
            server, "1Mi", [(base * cost * (1 + step / 1000), 0) for step in range(10)], case, levels={"tls": level}
        )
        for case, (server, base, level, cost) in enumerate(
            (
                (*place, *level)
                for place in (("cloud", 1.0), ("jetson", 2.0))
                for level in (("None", 1.0), ("TLSv1.3", 1.1))
            ),
            start=1,
        )
    ]
    brokers = [
        measured("cloud", "1Mi", [(1.0, 0)] * 3, case, name="brokers", levels=levels)
        for case, levels in enumerate(
            ({"broker": "mqtt"}, {"broker": "kafka", "codec": "None"}, {"broker": "kafka", "codec": "LZ4"}), start=1
        )
    ]
    return write(tmp_path / "settings.json", [*tls, *brokers])


def test_levels_of_a_setting_are_compared_class_by_class(settings: str, capsys: Capture) -> None:
    assert main(["compare", "tls=None", "tls=TLSv1.3", "--from", settings]) == 1
    text = capsys.readouterr().out
    assert [line.split(" to ")[0].strip() for line in text.splitlines() if "worse" in line][:2] == [
        "node class cloud,",
        "node class jetson,",
    ]
    assert "tls=TLSv1.3 is worse in 2 of 2 cases" in text


@pytest.mark.parametrize(
    ("first", "second", "hint"),
    [
        ("tls=None", "cloud", "tls=None and cloud are not two levels of a setting: write tls=None tls=TLSv1.3"),
        ("fileSize=1Mi", "fileSize=2Mi", "are not two levels of a setting"),
        ("tls=None", "tls=TLSv1.2", "tls=TLSv1.2 has no results; there are TLS None and TLSv1.3"),
        (
            "broker=mqtt",
            "broker=kafka",
            "there are kafka with codec None and kafka with codec LZ4",
        ),
    ],
)
def test_invalid_settings_are_reported(first: str, second: str, hint: str, settings: str, capsys: Capture) -> None:
    assert main(["compare", first, second, "--from", settings]) == 2
    assert hint in stderr_line(capsys)


def test_tolerance_must_be_a_percentage(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["compare", "a", "b", "--tolerance", "-5"])
    assert ended.value.code == 2
    assert "--help`" in stderr_line(capsys)


def test_runs_of_different_specs_are_compared_in_their_common_cases(tmp_path: Path, capsys: Capture) -> None:
    times = [(1 + step / 1000, 0) for step in range(10)]
    sizes = {1: ("1Mi", "2Mi"), 2: ("1Mi", "4Mi", "8Mi")}
    results = [
        measured("cloud", size, times, case, run, name="files")
        for run, every in sizes.items()
        for case, size in enumerate(every, start=1)
    ]
    path = write(tmp_path / "results.json", results)
    assert main(["compare", "files@1", "files@2", "--from", path]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "inconclusive in 1." in text
    assert "no case of the same levels and settings: 1 of files@1, 2 of files@2." in text


def test_error_about_runs_without_a_common_case_names_their_difference(tmp_path: Path, capsys: Capture) -> None:
    results = [
        measured("cloud", "1Mi", [(1.0, 0)] * 3, run=run, name="files", settings={"attempts": attempts})
        for run, attempts in ((1, "20"), (2, "3"))
    ]
    assert main(["compare", "files@1", "files@2", "--from", write(tmp_path / "results.json", results)]) == 2
    assert "no case in common (attempts is 20 in files@1, and 3 in files@2)" in stderr_line(capsys)


def test_the_newest_run_that_was_not_superseded_is_compared(history: str, tmp_path: Path, capsys: Capture) -> None:
    partial = measured("cloud", "1Mi", [(9.0, 0)], run=4, name="files")
    labels = {**partial.metadata.labels, LABEL_SUPERSEDED: "true"}
    marked = partial.model_copy(update={"metadata": partial.metadata.model_copy(update={"labels": labels})})
    path = write(tmp_path / "newer.json", [marked])
    for name, is_shown in (("files", False), ("files@4", True)):
        assert main(["compare", "files@3", name, "--from", history, "--from", path]) == 0
        assert ("9.00 s" in capsys.readouterr().out) == is_shown
