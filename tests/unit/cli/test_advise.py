"""`advise`: the published table and exported objects, offline."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.advice.test_effects import tls as with_tls
from tests.unit.apiserver.client import serve_in_thread
from tests.unit.apiserver.server import ApiServer
from tests.unit.cli.test_offline import raw, stderr_line, write
from tests.unit.report.published import TABLE, measured, published
from tierbench.api.node_class import NODE_CLASSES
from tierbench.api.placement_advice import ADVICES
from tierbench.api.result import RESULTS
from tierbench.cli.main import main
from tierbench.kube.client import ApiError

Capture = pytest.CaptureFixture[str]
HEADER = "kind,serverClass,fileSize,trial,durationSeconds\n"


def answer(capsys: Capture, *arguments: str) -> dict[str, Any]:
    main(["advise", *arguments, "-o", "json"])
    status: dict[str, Any] = json.loads(capsys.readouterr().out)["status"]
    return status


def test_published_table_leads_to_published_answer(capsys: Capture) -> None:
    assert main(["advise", "--from", str(TABLE), "--by", "mean"]) == 0
    text = capsys.readouterr().out
    assert (
        "cloud is ahead at 1 MiB, by 47%; jetson-nano is ahead from 512 MiB to 2 GiB, by 12–14%; "
        "cloud is ahead from 3 GiB on, by 14–16%. Retries occurred only on jetson-nano, from 3 GiB on (38 in total)."
    ) in text
    assert "Between 1 MiB and 512 MiB, jetson-nano overtakes cloud." in text
    assert "Between 2 GiB and 3 GiB, cloud overtakes jetson-nano." in text


def test_other_factors_are_summarized_in_one_line(tmp_path: Path, capsys: Capture) -> None:
    """The effect of the chosen factor is the answer itself."""
    main(["advise", "--choose", "broker", "--by", "throughput", "--from", write(tmp_path / "tls.json", with_tls())])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Other factors: ")]
    assert "TLSv1.3 lowers throughput by 23% (95% CI 22–24%) compared with TLS None at 1 kB" in line
    assert "kafka costs" not in line
    assert line.endswith("more with -o yaml)")


def test_default_question_ranks_by_throughput(capsys: Capture) -> None:
    status = answer(capsys, "--from", str(TABLE))
    places = [(item["lowerLevel"], item["upperLevel"], item["aheadAbove"]) for item in status["crossovers"]]
    assert places == [("1Mi", "512Mi", "jetson-nano"), ("2Gi", "3Gi", "cloud")]
    assert "jetson-nano is ahead from 512 MiB to 2 GiB" in status["answer"]


@pytest.mark.parametrize(
    ("arguments", "best", "code"),
    [
        (["--size", "1Mi"], "cloud", 0),
        (["--size", "512Mi=3", "--size", "2Gi"], "jetson-nano", 0),
        (["--size", "3Gi"], "cloud", 0),
        (["--size", "3Gi", "--max-retries", "0"], "cloud", 0),
        (["--size", "512Mi", "--max-mean", "5000"], "jetson-nano", 0),
        (["--size", "512Mi", "--min-rate", "1Gi"], "", 1),
        (["--size", "3Gi", "--by", "p99"], "", 1),
        (["--size", "3Gi", "--arch", "arm64"], "", 1),
        (["--size", "7Gi"], "", 1),
        (["--benchmark", "other"], "", 2),
    ],
)
def test_question_from_arguments_sets_exit_code(arguments: list[str], best: str, code: int, capsys: Capture) -> None:
    assert main(["advise", "--from", str(TABLE), *arguments, "-o", "json"]) == code
    assert json.loads(capsys.readouterr().out)["status"]["best"] == best


@pytest.fixture
def advice_file(tmp_path: Path) -> str:
    """A file with two PlacementAdvices, as a user writes it."""
    path = tmp_path / "advice.yaml"
    spec = {"clientClassName": "user", "workload": {"fileSizes": [{"size": "1Gi"}]}}
    head = {"apiVersion": "tierbench.io/v1alpha1", "kind": "PlacementAdvice"}
    small = {"clientClassName": "user", "workload": {"fileSizes": [{"size": "1Mi"}]}}
    bodies = [
        {**head, "metadata": {"name": "large"}, "spec": spec},
        {**head, "metadata": {"name": "small"}, "spec": small},
    ]
    path.write_text(yaml.safe_dump_all(bodies))
    return str(path)


def test_question_in_a_file_uses_results_of_other_files(advice_file: str, tmp_path: Path, capsys: Capture) -> None:
    results = write(tmp_path / "results.json", published())
    assert main(["advise", "large", "--from", advice_file, "--from", results, "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["status"]["best"] == "jetson"
    assert main(["advise", "--from", advice_file, "--from", results, "-o", "json"]) == 0
    assert [item["status"]["best"] for item in json.loads(capsys.readouterr().out)["items"]] == ["jetson", "cloud"]


def test_affinity_uses_node_classes_of_a_file(advice_file: str, tmp_path: Path, capsys: Capture) -> None:
    jetson = {
        "kind": "NodeClass",
        "metadata": {"name": "jetson"},
        "spec": {"nodeSelector": {"matchLabels": {"hw": "j"}}},
    }
    path = write(tmp_path / "results.json", published(), jetson)
    assert "key: hw" in (main(["advise", "large", "--from", advice_file, "--from", path]), capsys.readouterr().out)[1]


def test_yaml_from_kubectl_is_read(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "results.yaml"
    path.write_text(yaml.safe_dump({"kind": "List", "items": [raw(result) for result in published()]}))
    assert answer(capsys, "--from", str(path), "--size", "1Gi")["best"] == "jetson"


def test_result_in_two_files_counts_once(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path / "results.json", published())
    once = answer(capsys, "--from", path, "--size", "1Gi")
    twice = answer(capsys, "--from", path, "--from", path, "--size", "1Gi")
    assert [item["trials"] for item in twice["ranking"]] == [item["trials"] for item in once["ranking"]] == [10, 10]


def test_table_is_read_from_standard_input(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(TABLE.read_text()))
    assert answer(capsys, "--from", "-", "--size", "3Gi")["best"] == "cloud"


def test_exported_table_gives_same_answer_as_objects(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "objects.json"
    assert main(["export", "--from", str(TABLE), "-o", "json", "--output-file", str(path)]) == 0
    assert answer(capsys, "--from", str(path), "--size", "2Gi") | {"conditions": 0} == answer(
        capsys, "--from", str(TABLE), "--size", "2Gi"
    ) | {"conditions": 0}


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("a.csv", HEADER + "FileTransferBenchmark,cloud,1Mi,1,fast\n", "a.csv, line 2, column durationSeconds: 'fast'"),
        ("a.csv", HEADER, "there are no results yet"),
        ("a.json", '{"items": [\n{"kind": \n', "a.json, line 3: Expecting value"),
        ("a.yaml", "items:\n- kind: BenchmarkResult\n  metadata: {name: a\n", "a.yaml, line 4: "),
        ("a.yaml", "kind: PlacementAdvice\nmetadata: {name: a}\nspec: {}\n", "PlacementAdvice a: spec.clientClassName"),
        ("a.yaml", "\x00", "a.yaml"),
    ],
)
def test_damaged_file_is_reported_with_line_and_reason(
    name: str, text: str, hint: str, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert main(["advise", "--from", str(path)]) == 2
    assert hint in stderr_line(capsys)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["missing"], "there is no PlacementAdvice missing"),
        (["missing", "--size", "1Mi"], "already has a question: omit its name"),
        (["--size", "1.5Mi"], "'1.5Mi' is not a size"),
        (["--min-rate", "1MB"], "'1MB' is not a size"),
        (["--size", "1Mi="], "is not SIZE or SIZE=WEIGHT"),
        (["--size", "1Mi=0"], "weight"),
        (["--level", "tls"], "is not FACTOR=LEVEL"),
        (["--max-p99", "0"], "maxP99Milliseconds"),
    ],
)
def test_invalid_question_is_reported_in_one_line(arguments: list[str], hint: str, capsys: Capture) -> None:
    assert main(["advise", "--from", str(TABLE), *arguments]) == 2
    assert hint in stderr_line(capsys)


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ({"workload": {"fileSizes": [{"size": "1MB"}]}}, "'1MB' is not a size"),
        ({"objective": {"type": "Percentile"}}, "write {type: Percentile, percentile: P99}"),
    ],
)
def test_invalid_question_in_a_file_is_reported(
    spec: dict[str, Any], hint: str, tmp_path: Path, capsys: Capture
) -> None:
    advice = {"kind": "PlacementAdvice", "metadata": {"name": "a"}, "spec": {"clientClassName": "user", **spec}}
    assert main(["advise", "a", "--from", write(tmp_path / "results.json", published(), advice)]) == 2
    assert hint in stderr_line(capsys)


def test_client_is_required_if_there_are_several(tmp_path: Path, capsys: Capture) -> None:
    results = [
        measured(server, "1Mi", [(time, 0), (time * 1.1, 0)]) for server, time in (("cloud", 1.0), ("jetson", 2.0))
    ]
    other = [raw(result) for result in results]
    for body in other:
        body["spec"]["client"]["nodeClass"] = "pi"
        body["metadata"]["name"] += "-pi"
    path = write(tmp_path / "results.json", results, *other)
    assert main(["advise", "--from", path]) == 2
    assert "there are clients on pi, user: select one with --client-class" in stderr_line(capsys)
    assert answer(capsys, "--from", path, "--client-class", "pi")["ranking"]


def test_question_in_the_cluster_uses_its_results(tmp_path: Path, capsys: Capture) -> None:
    spec = {"clientClassName": "user", "workload": {"fileSizes": [{"size": "1Gi"}]}}
    jetson = {"metadata": {"name": "jetson"}, "spec": {"nodeSelector": {"matchLabels": {"hw": "nano"}}}}
    store = ApiServer()
    with serve_in_thread(store, tmp_path) as kubeconfig:
        store.put(ADVICES, {"metadata": {"name": "large", "namespace": "default"}, "spec": spec})
        store.put(NODE_CLASSES, jetson)
        for result in published():
            store.put(RESULTS, result.to_json())
        assert main(["advise", "large", "--kubeconfig", kubeconfig]) == 0
        text = capsys.readouterr().out
        assert "jetson is best for 1 GiB" in text
        assert "key: hw" in text
        assert main(["advise", "other", "--kubeconfig", kubeconfig]) == 2
        assert "there is no PlacementAdvice other" in stderr_line(capsys)
        assert main(["advise", "--size", "5Gi", "--kubeconfig", kubeconfig]) == 0
        assert "cloud is best for 5 GiB" in capsys.readouterr().out
        store.fail(ApiError(403, "Forbidden", "no"))
        assert main(["compare", "cloud", "jetson", "--kubeconfig", kubeconfig]) == 2
        assert "you may not do this" in stderr_line(capsys)


@pytest.fixture
def tls(tmp_path: Path) -> str:
    """Downloads from one class with TLS and without."""
    results = [
        measured("cloud", "1Mi", [(base * step, 0) for step in (0.99, 1.0, 1.01)], case, levels={"tls": level})
        for case, (level, base) in enumerate((("None", 1.0), ("TLSv1.3", 2.0)), start=1)
    ]
    return write(tmp_path / "tls.json", results)


def test_settings_of_the_best_choice_are_printed(tls: str, capsys: Capture) -> None:
    assert main(["advise", "--from", tls, "--choose", "tls", "--size", "1Mi"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("TLS None is best for 1 MiB, by transfer time: 50% ahead of TLSv1.3")
    assert "Settings of the best choice:\ntls: None" in text
    assert "nodeAffinity" not in text
    assert main(["advise", "--from", tls, "--choose", "nodeClass,tls"]) == 0
    assert "cloud with TLS None is best" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--choose", "size"], "Input should be 'nodeClass', 'broker'"),
        (["--choose", "nodeClass,broker,tls,pairs"], "at most 3 items"),
        (["--choose", "tls", "--level", "tls=None"], "sets in workload what choose chooses"),
        (["--choose", "nodeClass,delivery", "--level", "delivery=AtMostOnce"], "sets in workload what choose chooses"),
    ],
)
def test_invalid_choice_is_reported_in_one_line(arguments: list[str], hint: str, tls: str, capsys: Capture) -> None:
    assert main(["advise", "--from", tls, *arguments]) == 2
    assert hint in stderr_line(capsys)


def broker_table(path: Path, header: str, *cases: tuple[str, int]) -> str:
    """Writes a table of four trials per case. A case has levels, in the order of the header, and a message rate."""
    lines = [
        f"BrokerBenchmark,b,cloud,user,{levels},{trial},{rate + trial}"
        for levels, rate in cases
        for trial in range(1, 5)
    ]
    head = f"kind,benchmark,serverClass,clientClass,{header},trial,throughputMessagesPerSecond"
    path.write_text("\n".join((head, *lines)) + "\n")
    return str(path)


def test_best_settings_are_a_configuration_of_sinetstream(tmp_path: Path, capsys: Capture) -> None:
    header = "payloadSize,delivery,encryption,tls,compression"
    cases = ("1024,AtLeastOnce,AES256CBC,TLSv1.3,None", 1000), ("1024,AtLeastOnce,AES256CBC,TLSv1.3,Gzip:9", 3000)
    table = broker_table(tmp_path / "brokers.csv", header, *cases)
    assert main(["advise", "--from", table, "--choose", "compression", "-o", "sinetstream"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# .sinetstream_config.yml: the settings of question")
    crypto = {"algorithm": "AES", "key_length": 256, "mode": "CBC", "padding": "pkcs7"}
    assert yaml.safe_load(text) == {
        "header": {"version": 3},
        "config": {
            "question": {
                "type": "mqtt",
                "brokers": "BROKER:8883",
                "topic": "TOPIC",
                "consistency": "AT_LEAST_ONCE",
                "tls": {"ca_certs": "ca.crt"},
                "data_compression": True,
                "compression": {"algorithm": "gzip", "level": 9},
                "data_encryption": True,
                "crypto": {**crypto, "password": {"value": "PASSWORD"}},
            }
        },
    }


def test_comments_name_the_settings_that_the_advice_leaves_open(tmp_path: Path, capsys: Capture) -> None:
    """The broker of the best choice sets the type. Settings without measurements are not mentioned."""
    header = "payloadSize,delivery,broker,codec"
    cases = (
        ("1024,AtLeastOnce,mosquitto,", 1000),
        ("1024,ExactlyOnce,mosquitto,", 1000),
        ("1024,AtLeastOnce,kafka,None", 3000),
        ("1024,ExactlyOnce,kafka,None", 3000),
    )
    table = broker_table(tmp_path / "brokers.csv", header, *cases)
    asked = ["advise", "--from", table, "--choose", "broker", "--by", "throughput"]
    assert main([*asked, "-o", "sinetstream"]) == 0
    text = capsys.readouterr().out
    assert "delivery is left out: it was measured as AtLeastOnce and ExactlyOnce. Choose it with --choose" in text
    service = {"type": "kafka", "brokers": "BROKER:9092", "topic": "TOPIC"}
    assert yaml.safe_load(text)["config"] == {"question": service}
    assert main([*asked, "--level", "delivery=ExactlyOnce", "-o", "sinetstream"]) == 0
    text = capsys.readouterr().out
    assert "SINETStream has no EXACTLY_ONCE for Kafka" in text
    assert yaml.safe_load(text)["config"]["question"]["consistency"] == "AT_LEAST_ONCE"


def test_configuration_needs_a_best_choice_and_a_broker(tmp_path: Path, capsys: Capture) -> None:
    equal = broker_table(tmp_path / "equal.csv", "payloadSize,compression", ("1024,None", 1000), ("1024,Gzip", 1000))
    assert main(["advise", "--from", equal, "--choose", "compression", "-o", "sinetstream"]) == 2
    assert "question has no best choice, so there are no settings: " in stderr_line(capsys)
    assert main(["advise", "--from", str(TABLE), "--size", "1Mi", "-o", "sinetstream"]) == 2
    assert "format sinetstream is for brokers, and question is of no broker: use -o yaml" in stderr_line(capsys)
