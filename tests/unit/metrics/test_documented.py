"""Every metric is documented. Every factor is a label, and every parameter is one of `tierbench_result_info`."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.domain.objects import IMAGES, OWNER, benchmark, broker_benchmark, network_benchmark
from tests.unit.metrics.everything import metrics_text
from tierbench.api.benchmark import Benchmark
from tierbench.api.model import Model
from tierbench.api.policy import Policy
from tierbench.kinds.registry import BENCHMARKS, kind_of, kinds, workload_of
from tierbench.metrics.results import label_name
from tierbench.workloads.plan import plan

TEXT = (Path(__file__).parents[3] / "docs/reference/metrics.md").read_text()
TLS = ["None", "TLSv1.3"]
VERSIONS = {"images": ["default", "2.0"]}
WITH_IMAGES = {"nodeClassNames": ["cloud"], **VERSIONS}
BROKERS = [{"name": "mosquitto", "mosquitto": VERSIONS}, {"name": "kafka", "kafka": VERSIONS}]
LINKS = [{"name": "lte"}]
KAFKA = {"codecs": ["Lz4"], "partitions": [1], "lingerMilliseconds": [5], "batchSizes": ["1Mi"]}
BROKER: dict[str, Any] = {
    "brokers": BROKERS,
    "delivery": ["AtLeastOnce"],
    "tls": TLS,
    "encryption": ["None"],
    "compression": ["None"],
    "pairs": [1],
    "mqttClients": {"versions": ["5"]},
    "groups": [{}],
    "kafkaClients": KAFKA,
    "tlsClients": {"handshakes": ["Resumed"], "certificates": ["Required"]},
    "links": LINKS,
}
OWN = [{"name": "own", "configMapRef": {"name": "own"}}]
EVERYTHING: dict[str, list[Benchmark]] = {
    "FileTransferBenchmark": [
        benchmark(
            fileSizes=["1Mi"],
            directions=["Upload"],
            concurrency=[1],
            cacheState=["Unchanged"],
            tls=TLS,
            clients={"nodeClassNames": ["user"], "engines": ["Wget"]},
            servers=WITH_IMAGES,
            links=LINKS,
        ),
    ],
    "BrokerBenchmark": [
        broker_benchmark(**BROKER, payload={"sizes": ["1Ki"], "contents": ["Random"]}),
        broker_benchmark(**BROKER, payload={"messages": OWN}, pacing={"type": "OpenLoop", "messagesPerSecond": 10}),
    ],
    "NetworkBenchmark": [
        network_benchmark(
            protocols=["TCP"],
            directions=["Bidirectional"],
            streams=[1],
            tcp={"congestionControl": ["cubic"]},
            ping={"underLoad": True},
            links=LINKS,
            clients={"nodeClassNames": ["user"], "modes": ["Alone"]},
        ),
    ],
}

each_kind = pytest.mark.parametrize("kind", BENCHMARKS)


def documented_factors(model: Model) -> Iterator[tuple[str, bool]]:
    """Yields the fields of a spec that its reference calls factors, and whether they are set."""
    for name, field in type(model).model_fields.items():
        if "(a factor)" in (field.description or ""):
            yield name, name in model.model_fields_set
        if isinstance(value := getattr(model, name), Model):
            yield from documented_factors(value)


@each_kind
def test_specs_of_these_tests_set_every_factor(kind: str) -> None:
    found = [field for asked in EVERYTHING[kind] for field in documented_factors(asked.spec)]
    assert {name for name, _ in found} == {name for name, is_set in found if is_set}


@each_kind
def test_every_factor_is_a_label(kind: str) -> None:
    asked = [
        (each.spec, workload_of(replace(OWNER, kind=kind), each.spec, IMAGES, Policy())) for each in EVERYTHING[kind]
    ]
    cases = [case for spec, workload in asked for case in plan(spec, workload.server_placements(), workload.factors)]
    parameters = {name for spec, _ in asked for name in spec.parameters}
    levels, labels = {name for case in cases for name in case.levels}, set(kind_of(kind).metrics.factors)
    assert levels <= labels <= levels | parameters


@each_kind
def test_every_parameter_is_a_label(kind: str) -> None:
    parameters = {name for asked in EVERYTHING[kind] for name in asked.spec.parameters}
    metrics = kind_of(kind).metrics
    assert parameters - {*metrics.factors} == set(metrics.parameters)


def test_no_label_is_a_factor_of_one_kind_and_a_parameter_of_another() -> None:
    """Queries over all kinds join metrics with `tierbench_result_info` by the factors of all kinds."""
    factors = {name for kind in kinds() for name in kind.metrics.factors}
    assert not factors & {name for kind in kinds() for name in kind.metrics.parameters}


@each_kind
def test_every_factor_is_documented(kind: str) -> None:
    assert not [name for name in kind_of(kind).metrics.factors if f"`{label_name(name)}`" not in TEXT]


def test_every_metric_is_documented() -> None:
    names = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in text_string_to_metric_families(metrics_text())
        if family.name.startswith("tierbench") and not family.name.endswith("_created")
    }
    explained = {word.strip("`,") for word in TEXT.split() if word.startswith("`tierbench_")}
    assert explained == names
