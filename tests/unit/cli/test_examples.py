"""Every example is complete, in no namespace, and contains only fields that the models know."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import profiles
from tierbench.api.benchmark import Benchmark
from tierbench.api.model import API_VERSION, Resource
from tierbench.api.node_class import NodeClass
from tierbench.api.schema import resource_types
from tierbench.kinds.network.spec import NetworkBenchmark

EXAMPLES = Path(__file__).parents[3] / "examples"
FOLDERS = sorted(path.parent.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("benchmark.yaml"))
MODELS: Mapping[str, type[Resource]] = {model.KIND.kind: model for model in resource_types()}


def documents(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the objects of tierbench's API in a folder. A ConfigMap has the messages of a benchmark."""
    for path in sorted(folder.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document["kind"] != "ConfigMap":
                yield document


def missing_fields(given: object, kept: object, place: str) -> Iterator[str]:
    """Yields the paths of values of `given` that `kept` lacks."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            yield from missing_fields(value, kept[key], f"{place}.{key}") if key in kept else [f"{place}.{key}"]
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for index, (one, other) in enumerate(zip(given, kept, strict=True)):
            yield from missing_fields(one, other, f"{place}[{index}]")
    elif given != kept and str(given) != kept:
        yield place


def in_order(given: object) -> object:
    """Sorts lists. Their order has no meaning in a spec."""
    if isinstance(given, dict):
        return {key: in_order(value) for key, value in given.items()}
    return sorted(map(in_order, given), key=str) if isinstance(given, list) else given


def test_there_are_examples() -> None:
    assert {"quick-start", "file-transfer-demo", "papers/file-transfer-paper"} <= set(FOLDERS)


@pytest.mark.parametrize("name", FOLDERS)
def test_every_field_is_known_to_the_models(name: str) -> None:
    assert (EXAMPLES / name / "README.md").read_text().startswith("# ")
    for document in documents(EXAMPLES / name):
        assert document["apiVersion"] == API_VERSION
        parsed = MODELS[document["kind"]].model_validate(document).to_json()
        assert list(missing_fields(in_order(document["spec"]), in_order(parsed["spec"]), document["kind"])) == []


@pytest.mark.parametrize("name", FOLDERS)
def test_every_named_class_exists(name: str) -> None:
    objects = [MODELS[document["kind"]].model_validate(document) for document in documents(EXAMPLES / name)]
    classes = {item.metadata.name for item in objects if isinstance(item, NodeClass)}
    benchmarks = [item for item in objects if isinstance(item, Benchmark)]
    assert benchmarks
    for benchmark in benchmarks:
        servers = benchmark.spec.servers.node_class_names if benchmark.spec.servers else ()
        assert {*servers, *benchmark.spec.clients.node_class_names} == classes


def test_no_example_changes_a_class_of_another() -> None:
    classes: dict[str, dict[str, Any]] = {}
    for name in FOLDERS:
        for document in documents(EXAMPLES / name):
            if document["kind"] == NodeClass.KIND.kind:
                assert classes.setdefault(document["metadata"]["name"], document) == document


@pytest.mark.parametrize("name", FOLDERS)
def test_every_object_goes_to_the_namespace_of_the_context(name: str) -> None:
    for path in (EXAMPLES / name).glob("*.yaml"):
        for document in yaml.safe_load_all(path.read_text()):
            assert "namespace" not in document["metadata"], path


@pytest.mark.parametrize("name", FOLDERS)
def test_every_folder_is_in_an_index(name: str) -> None:
    folder = EXAMPLES / name
    assert f"]({folder.name})" in (folder.parent / "README.md").read_text()


def test_kubectl_reads_only_objects_in_the_folder_of_an_example() -> None:
    """`kubectl apply -f FOLDER` reads every .json, .yaml and .yml file there, and no subfolder."""
    for name in FOLDERS:
        folder = EXAMPLES / name
        found = {path.name for path in folder.iterdir() if path.is_file()}
        assert found <= {
            "README.md",
            "advice.yaml",
            "benchmark.yaml",
            "messages.yaml",
            "node-classes.yaml",
            "trace.yaml",
        }, name


def test_recorded_run_used_the_congestion_control_of_the_nodes_of_its_example() -> None:
    recorded = json.loads((EXAMPLES / "file-transfer-demo/demo/recorded.json").read_text())["items"]
    trials = [trial for item in recorded for trial in item.get("status", {}).get("trials", ())]
    used = {trial[side]["computer"]["congestionControl"] for trial in trials for side in ("client", "server")}
    assert used == {node.congestion_control for node in profiles.load(profiles.DEFAULT)}


@pytest.mark.parametrize("name", [name for name in FOLDERS if (EXAMPLES / name / "demo").is_dir()])
def test_demo_uses_the_congestion_control_that_its_example_names(name: str) -> None:
    nodes = EXAMPLES / name / "demo" / "nodes.toml"
    used = {node.congestion_control for node in profiles.load(nodes if nodes.exists() else profiles.DEFAULT)}
    for document in documents(EXAMPLES / name):
        if document["kind"] == NetworkBenchmark.KIND.kind:
            assert set(document["spec"]["tcp"]["congestionControl"]) == used
    assert used == {"cubic"}
