"""A toy kind of benchmark: everything that a kind needs, in one folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from tierbench.api.benchmark import BENCHMARK_COLUMNS, Benchmark
from tierbench.api.contract import Outcome
from tierbench.api.model import Kind
from tierbench.api.record import ResultTrial
from tierbench.api.result import BenchmarkResult
from tierbench.api.trial_plan import PlanFields
from tierbench.kinds.network.spec import NetworkSpec
from tierbench.kinds.network.workload import NetworkWorkload
from tierbench.kinds.registry import BenchmarkKind, FactorTraits, Measures, Metrics, Report
from tierbench.metrics.results import Family, Samples, gauge
from tierbench.workloads.manifests import client_arguments, series_fields
from tierbench.workloads.plan import Factor, ServerPlacement
from tierbench.workloads.workload import (
    LABEL_ATTEMPT,
    LABEL_CASE,
    LABEL_PART,
    LABEL_PART_ROLE,
    LABEL_PARTS,
    LABEL_PASS,
    LABEL_RUN,
    ClientInstance,
    Manifest,
    Target,
)


class EchoSpec(NetworkSpec):
    sizes: tuple[int, ...]


class EchoBenchmark(Benchmark):
    KIND: ClassVar[Kind] = Kind(
        kind="EchoBenchmark",
        short_names=("tbe",),
        columns=BENCHMARK_COLUMNS,
        description="EchoBenchmark measures how fast a message is echoed.",
    )
    PREFIX: ClassVar[str] = "eb"

    spec: EchoSpec


class EchoPlan(PlanFields):
    kind: Literal["Echo"]


@dataclass(frozen=True)
class EchoWorkload(NetworkWorkload):
    spec: EchoSpec

    def factors(self, placement: ServerPlacement) -> tuple[Factor, ...]:
        return (Factor("size", tuple(map(str, self.spec.sizes))),)

    def client(self, instance: ClientInstance, targets: Sequence[Target]) -> Manifest:
        place = {LABEL_RUN: instance.run, LABEL_CASE: instance.block, LABEL_PASS: instance.pass_number}
        part = {LABEL_PART: 0, LABEL_PARTS: 1, LABEL_PART_ROLE: instance.part.role}
        labels = {**place, LABEL_ATTEMPT: instance.attempt, **part}
        metadata = self.owner.metadata(instance.name, {label: str(value) for label, value in labels.items()})
        plan = EchoPlan(kind="Echo", **series_fields(instance, self.spec.warmup_trials))
        container = {"args": client_arguments(plan)}
        template = {"metadata": {"labels": metadata["labels"]}, "spec": {"containers": [container]}}
        return {"kind": "Job", "metadata": metadata, "spec": {"template": template}}


ECHO_TIME: Final[Family] = gauge("tierbench_echo_seconds", "Time of an echo.")


def quantities(trial: ResultTrial) -> dict[str, float | None]:
    return {"echoNanoseconds": trial.duration_nanoseconds, "echoesPerSecond": 1e9 / trial.duration_nanoseconds}


def add(samples: Samples, result: BenchmarkResult) -> None:
    samples.add(ECHO_TIME, result.status.statistics["echoNanoseconds"].mean / 1e9)


def cells(trial: ResultTrial) -> dict[str, str]:
    return {"Echo": f"{trial.duration_nanoseconds} ns"}


KIND: Final = BenchmarkKind(
    model=EchoBenchmark,
    workload=EchoWorkload,
    measures=Measures(
        quantities=quantities,
        everything=ResultTrial(trial=1, outcome=Outcome.COMPLETED, start_time="", duration_nanoseconds=1),
        main=("echoNanoseconds",),
        time=("echoNanoseconds",),
        rate="echoesPerSecond",
        times={"echoesPerSecond": "echoNanoseconds"},
        titles={"echoNanoseconds": "Time of an echo"},
    ),
    metrics=Metrics(factors=("size",), parameters=(), add=add),
    report=Report(cells=cells),
    factors={"size": FactorTraits(usual="1", first=True)},
)
