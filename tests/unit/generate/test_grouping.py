"""No panel aggregates over labels that differ. Prometheus evaluates the queries."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dashboards import Dashboard, dashboards
from tierbench.generate.dashboards.queries import Results

INFO = "tierbench_result_info"
KINDS = {"file-transfers": "FileTransferBenchmark", "brokers": "BrokerBenchmark", "networks": "NetworkBenchmark"}
ROWS = {"file-transfers": "file_size", "brokers": "payload_size", "networks": "direction"}
CHANGES_WITH = {"access": "benchmark", "client_access_network": "client_node"}
"""Labels that only `tierbench_result_info` has, each with a label that changes with it."""
BOARDS = {dashboard.name: dashboard for dashboard in dashboards()}
NAME = re.compile(r"\b(tierbench_(?!result_info|benchmark)\w+)\{")
Labels = dict[str, str]


def results(board: str) -> Results:
    return Results(KINDS[board], ROWS[board])


def usual(board: str) -> Labels:
    """Returns the labels of a result."""
    who = {"benchmark_namespace": "ns", "benchmark": "demo", "server_node": "s1", "client_node": "c1"}
    classes = {"server_class": "cloud", "client_class": "user"}
    return who | classes | dict.fromkeys(results(board).factors, "None")


def series(name: str, labels: Mapping[str, str]) -> str:
    return name + "{" + ",".join(f'{label}="{value}"' for label, value in labels.items()) + "}"


def store(board: str, given: Sequence[tuple[Labels, float]], *metrics: str) -> list[dict[str, str]]:
    """Returns the series of results with these labels and values, which all metrics share."""
    facts = {"benchmark_kind": KINDS[board], "valid": "true", "run": "1"}
    joined = ("access", "client_access_network")
    found = []
    for labels, value in given:
        own = {label: level for label, level in labels.items() if label not in joined}
        every = facts | {"access": "PodIP", "client_access_network": "lte"} | labels
        found.append({"series": series(INFO, every), "values": "1"})
        found += [{"series": series(metric, own), "values": f"{value}"} for metric in metrics]
    return found


Questions = Mapping[str, Mapping[str, float]]
"""Queries in PromQL with the expected answers: series and their values."""


def assert_answers(tmp_path: Path, *worlds: tuple[Sequence[Any], Questions]) -> None:
    """Asserts the answers of Prometheus in each world, which has its own series."""
    tests = [
        {"input_series": data, "promql_expr_test": [expression_test(*each) for each in questions.items()]}
        for data, questions in worlds
    ]
    file = tmp_path / "questions.yaml"
    file.write_text(yaml.safe_dump({"tests": tests}, width=10**6))
    done = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def expression_test(expression: str, answer: Mapping[str, float]) -> dict[str, Any]:
    samples = [{"labels": labels, "value": value} for labels, value in answer.items()]
    return {"expr": expression, "eval_time": "0m", "exp_samples": samples}


def mean_queries(dashboard: Dashboard) -> list[str]:
    """Returns the queries that are only a mean."""
    simplify = re.compile(r"(?:label_join\()?avg by \([^)]*\) \([^()]* \* on \([^)]*\) group_left \([^)]*\) [^()]*\)")
    return [target["expr"] for _, target in dashboard.targets if simplify.match(target["expr"])]


@pytest.mark.parametrize("board", KINDS)
def test_every_factor_can_be_selected_and_grouped_by(board: str) -> None:
    dashboard, labels = BOARDS[board], (*results(board).factors, "access", "client_access_network", "client_class")
    assert set(labels) <= set(dashboard.variables)
    for _, target in dashboard.targets:
        if INFO in target["expr"]:
            assert all(f'{label}=~"${label}"' in target["expr"] for label in labels)
    groupable = {*re.findall(r"count by \((\w+)\)", dashboard.varying or ""), "server_class", ROWS[board]}
    assert groupable == {*labels, "server_class", "benchmark", "benchmark_namespace"}


@pytest.mark.parametrize("board", KINDS)
def test_results_are_grouped_by_labels_that_vary(board: str, tmp_path: Path) -> None:
    dashboard = BOARDS[board]
    queries = mean_queries(dashboard)
    assert queries
    metrics = sorted({name for query in queries for name in NAME.findall(query)})
    worlds = []
    for label in results(board).groupable:
        in_results = CHANGES_WITH.get(label, label)
        pair = [
            ({**usual(board), in_results: level, label: level}, value)
            for level, value in (("None", 1.0), ("other", 3.0))
        ]
        by = [name for name in results(board).groupable if name in {"server_class", label, in_results}]
        varying = {series("", {"label": name}): 1.0 if name == "server_class" else 2.0 for name in by}
        both = {f"count({dashboard.shown(query, by=by)})": {"{}": 2.0} for query in queries}
        worlds.append((store(board, pair, *metrics), {dashboard.shown(dashboard.varying or ""): varying, **both}))
    assert_answers(tmp_path, *worlds)


@pytest.mark.parametrize("board", KINDS)
def test_nodes_of_a_class_are_averaged(board: str, tmp_path: Path) -> None:
    dashboard, metric = BOARDS[board], next(iter(NAME.findall(mean_queries(BOARDS[board])[0])))
    nodes = [({**usual(board), "server_node": f"s{value}"}, value) for value in (1.0, 3.0)]
    mean = dashboard.shown(results(board).mean(metric))
    answer = {series("", {ROWS[board]: "None", "server_class": "cloud"}): 2.0}
    alone = {series("", {"label": "server_class"}): 1.0}
    assert_answers(
        tmp_path, (store(board, nodes, metric), {mean: answer, dashboard.shown(dashboard.varying or ""): alone})
    )


def test_cost_of_tls_compares_the_same_nodes(tmp_path: Path) -> None:
    given = [
        ({**usual("brokers"), "server_node": node, "tls": tls}, value)
        for node, tls, value in (("s1", "None", 100), ("s1", "TLSv1.3", 75), ("s2", "None", 8), ("s2", "TLSv1.3", 2))
    ]
    metric = "tierbench_broker_throughput_messages_per_second"
    brokers = results("brokers")
    labels = {"payload_size": "None", "server_class": "cloud"}
    question = BOARDS["brokers"].shown(brokers.share_of_without("tls", metric))
    assert_answers(tmp_path, (store("brokers", given, metric), {question: {series("", labels): 0.5}}))


def test_invalid_results_can_be_deselected(tmp_path: Path) -> None:
    metric = "tierbench_broker_throughput_messages_per_second"
    data = store("brokers", [(usual("brokers") | {"valid": "false"}, 1.0)], metric)
    for each in data:
        each["series"] = each["series"].replace(',valid="false"', "") if metric in each["series"] else each["series"]
    board, mean = BOARDS["brokers"], f"count({results('brokers').mean(metric)})"
    assert_answers(tmp_path, (data, {board.shown(mean): {"{}": 1.0}, board.shown(mean, validity="true"): {}}))


def test_time_of_a_message_is_the_sum_of_its_parts(tmp_path: Path) -> None:
    times = {"round_trip_mean": 10, "compress": 2, "encrypt": 1, "decrypt": 3, "decompress": 4}
    data = [
        each
        for name, value in times.items()
        for each in store("brokers", [(usual("brokers"), value)], f"tierbench_broker_{name}_seconds")
    ]
    only_once = list({each["series"]: each for each in data}.values())
    (query,) = [target["expr"] for title, target in BOARDS["brokers"].targets if title.startswith("Where the time")]
    parts = {"compress": 2, "encrypt": 1, "on the way": 7, "decrypt": 3, "decompress": 4}
    labels = {"payload_size": "None", "server_class": "cloud", "compared": "None, cloud"}
    answer = {series("", {**labels, "part": name}): float(value) for name, value in parts.items()}
    assert_answers(tmp_path, (only_once, {BOARDS["brokers"].shown(query): answer}))
