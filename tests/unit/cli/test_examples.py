"""Every example is complete and says nothing that the models do not know."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tierbench.api.benchmark import Benchmark
from tierbench.api.kinds import KINDS
from tierbench.api.model import API_VERSION, Resource
from tierbench.api.node_class import NodeClass

EXAMPLES = Path(__file__).parents[3] / "examples"
MODELS: Mapping[str, type[Resource]] = {model.KIND.kind: model for model in KINDS}


def documents(folder: Path) -> Iterator[dict[str, Any]]:
    """Those of the API; a benchmark's messages are in a ConfigMap."""
    for path in sorted(folder.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document["kind"] != "ConfigMap":
                yield document


def lost(given: object, kept: object, place: str) -> Iterator[str]:
    """Where `kept` lacks something of `given`."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            yield from lost(value, kept[key], f"{place}.{key}") if key in kept else [f"{place}.{key}"]
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for index, (one, other) in enumerate(zip(given, kept, strict=True)):
            yield from lost(one, other, f"{place}[{index}]")
    elif given != kept and str(given) != kept:
        yield place


def folders() -> list[str]:
    return sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())


def test_there_are_examples() -> None:
    assert {"file-transfer-demo", "file-transfer-paper"} <= set(folders())


@pytest.mark.parametrize("name", folders())
def test_every_field_is_one_of_the_api(name: str) -> None:
    assert (EXAMPLES / name / "README.md").read_text().startswith("# ")
    for document in documents(EXAMPLES / name):
        assert document["apiVersion"] == API_VERSION
        parsed = MODELS[document["kind"]].model_validate(document).to_json()
        assert list(lost(document["spec"], parsed["spec"], document["kind"])) == []


@pytest.mark.parametrize("name", folders())
def test_every_class_that_is_named_is_there(name: str) -> None:
    objects = [MODELS[document["kind"]].model_validate(document) for document in documents(EXAMPLES / name)]
    classes = {item.metadata.name for item in objects if isinstance(item, NodeClass)}
    benchmarks = [item for item in objects if isinstance(item, Benchmark)]
    assert benchmarks
    for benchmark in benchmarks:
        assert {*benchmark.spec.servers.node_classes, *benchmark.spec.clients.node_classes} == classes
