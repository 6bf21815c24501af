"""A kind of benchmark is a line in `kinds/registry.py` and a folder of its name there, as the how-to says: one that is
added here, in memory, is measured, read, exported and reported like the others."""

import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import pytest

from tests.unit.domain import world
from tests.unit.domain.world import World
from tests.unit.report.published import measured
from tierbench.advice.advise import advise
from tierbench.advice.matrix import runs
from tierbench.api.benchmark import BENCHMARK_COLUMNS, Benchmark
from tierbench.api.model import Kind
from tierbench.api.placement_advice import PlacementAdviceSpec
from tierbench.api.result import BenchmarkReference, BenchmarkResult, ResultStatus, ResultTrial
from tierbench.generate.crd import crd_yaml
from tierbench.generate.dashboards import DashboardModule
from tierbench.kinds.network.spec import NetworkSpec
from tierbench.kinds.network.workload import NetworkWorkload
from tierbench.kinds.registry import BENCHMARKS, kind_modules
from tierbench.metrics.family import Family, Samples, gauge, render
from tierbench.metrics.results import MetricsModule, result_samples
from tierbench.report.page import render as page
from tierbench.report.tables import ReportModule, trial_headings, trial_rows
from tierbench.results.quantities import QuantitiesModule, main_quantity
from tierbench.results.record import fail
from tierbench.results.units import title
from tierbench.workloads.client_job import flags, series_options
from tierbench.workloads.kinds import WorkloadModule
from tierbench.workloads.names import LABEL_ATTEMPT, LABEL_CASE, LABEL_PART, LABEL_PASS, LABEL_RUN
from tierbench.workloads.plan import Factor, Slot
from tierbench.workloads.workload import ClientSite, Manifest, Target

PACKAGES = {
    "workload": WorkloadModule,
    "measures": QuantitiesModule,
    "metrics": MetricsModule,
    "report": ReportModule,
    "dashboard": DashboardModule,
}
READERS = ("workloads.kinds", "results.quantities", "metrics.results", "report.tables")


@pytest.mark.parametrize("package", PACKAGES)
def test_the_modules_of_every_kind_are_complete(package: str) -> None:
    protocol = PACKAGES[package]
    names = {*inspect.get_annotations(protocol), *(name for name in vars(protocol) if not name.startswith("_"))}
    for module in kind_modules(package).values():
        lacking = [name for name in names if not hasattr(module, name)]
        assert not lacking, f"{module.__name__} lacks {lacking}"
        for name in names - set(inspect.get_annotations(protocol)):
            asked = list(inspect.signature(getattr(protocol, name)).parameters)[1:]
            assert list(inspect.signature(getattr(module, name)).parameters) == asked, f"{module.__name__}.{name}"


def test_names_of_children_tell_kinds_apart() -> None:
    assert len({model.PREFIX for model in BENCHMARKS.values()}) == len(BENCHMARKS)


class EchoSpec(NetworkSpec):
    sizes: tuple[int, ...]


class EchoBenchmark(Benchmark):
    KIND: ClassVar[Kind] = Kind(
        kind="EchoBenchmark",
        plural="echobenchmarks",
        singular="echobenchmark",
        short_names=("eb",),
        namespaced=True,
        columns=BENCHMARK_COLUMNS,
        description="EchoBenchmark measures how fast something is said again.",
    )
    PREFIX: ClassVar[str] = "eb"

    spec: EchoSpec


@dataclass(frozen=True)
class EchoWorkload(NetworkWorkload):
    spec: EchoSpec

    def factors(self, slot: Slot) -> tuple[Factor, ...]:
        return (Factor("size", tuple(map(str, self.spec.sizes))),)

    def client(self, site: ClientSite, targets: Sequence[Target]) -> Manifest:
        place = {LABEL_RUN: site.run, LABEL_CASE: site.block, LABEL_PASS: site.pass_number}
        numbers = {**place, LABEL_ATTEMPT: site.attempt, LABEL_PART: 0}
        metadata = self.owner.metadata(site.name, {label: str(number) for label, number in numbers.items()})
        container = {"args": ["echo", *flags(series_options(site, self.spec.warmup, targets))]}
        return {"kind": "Job", "metadata": metadata, "spec": {"template": {"spec": {"containers": [container]}}}}


ECHO_TIME: Family = gauge("tierbench_echo_seconds", "Time of an echo.")


def echo_quantities(trial: ResultTrial) -> dict[str, float | None]:
    return {"echoNanoseconds": trial.duration_nanoseconds, "echoesPerSecond": 1e9 / trial.duration_nanoseconds}


def echo_samples(samples: Samples, result: BenchmarkResult) -> None:
    samples.add(ECHO_TIME, result.status.statistics["echoNanoseconds"].mean / 1e9)


def echo_cells(trial: ResultTrial) -> tuple[str, ...]:
    return (f"{trial.duration_nanoseconds} ns",)


ECHO: dict[str, dict[str, Any]] = {
    "workload": {"WORKLOAD": EchoWorkload},
    "measures": {
        "MAIN": ("echoNanoseconds",),
        "TIME": ("echoNanoseconds",),
        "RATE": "echoesPerSecond",
        "TIMES": {"echoesPerSecond": "echoNanoseconds"},
        "of": echo_quantities,
    },
    "metrics": {"FACTORS": ("size",), "CONDITIONS": (), "add": echo_samples},
    "report": {"HEADINGS": ("Echo",), "cells": echo_cells},
}


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kind, as if it had been there when the program began."""
    monkeypatch.setitem(BENCHMARKS, "EchoBenchmark", EchoBenchmark)
    for package, members in ECHO.items():
        module = ModuleType(f"tierbench.kinds.echo.{package}")
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    for package, reader in zip(ECHO, READERS, strict=True):
        monkeypatch.setattr(f"tierbench.{reader}._KINDS", kind_modules(package))
    monkeypatch.setitem(world.MEASURED, "echo", {"server": {"cpuPartsPerMillion": 10_000}})


@pytest.mark.usefixtures("echo")
def test_a_kind_that_is_added_is_like_the_others() -> None:
    body = {
        "metadata": {"name": "demo", "namespace": "default", "uid": "uid-1", "generation": 1},
        "spec": {
            "servers": {"nodeClasses": ["cloud", "jetson"]},
            "clients": {"nodeClasses": ["user"]},
            "sizes": [1, 64],
            "repetitions": 2,
        },
    }
    there = World(EchoBenchmark.model_validate(body))
    there.run()
    assert there.benchmark.status.phase == "Complete"
    results = [result for _, result in sorted(there.results.items())]
    assert [result.metadata.name for result in results] == [f"eb-demo-r1-c00{number}" for number in (1, 2, 3, 4)]
    assert [result.status.display.mean for result in results] == 4 * ["1.00 s"]
    text = "".join(render([result_samples(result) for result in results]))
    assert text.count("tierbench_echo_seconds{") == 4
    assert 'size="64"} 1.0' in text
    (run,) = runs(results)
    assert "Echo" in trial_headings(run)
    assert all("1000000000 ns" in row.cells for row in trial_rows(run))
    assert len(trial_rows(run)) == 8
    status = advise(PlacementAdviceSpec(client_class="user"), results, there.now)
    assert status.quantity == "echoesPerSecond"
    assert "kind: EchoBenchmark" in crd_yaml(EchoBenchmark)


@pytest.mark.parametrize("kind", BENCHMARKS)
def test_a_report_of_nothing_measured_names_what_the_kind_is_read_by(kind: str) -> None:
    result = measured("cloud", "1M", [(1.0, 0)])
    spec = result.spec.model_copy(update={"benchmark": BenchmarkReference(kind=kind, name="demo")})
    failed = fail(spec, ResultStatus(), world.START, "NoReadyNode", "none")
    html = page(runs([result.model_copy(update={"spec": spec, "status": failed})]), {})
    assert f"<caption>{title(main_quantity(kind, ()))}, mean" in html


@pytest.mark.usefixtures("echo")
def test_what_a_kind_lacks_is_named() -> None:
    del sys.modules["tierbench.kinds.echo.metrics"]
    with pytest.raises(ModuleNotFoundError, match=r"tierbench\.kinds\.echo"):
        kind_modules("metrics")
