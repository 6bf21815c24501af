"""Questions to an advice, and results that answer them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tests.unit.report.published import measured, published
from tierbench.advice.advise import advise
from tierbench.advice.selection import project_result
from tierbench.api.advice_answer import PlacementAdviceStatus
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdviceSpec
from tierbench.api.result import BenchmarkResult

NOW = datetime(2026, 11, 21, 4, 0, tzinfo=UTC)


FAST, SLOW = (1.0, 1.01, 0.99, 1.0), (2.0, 2.02, 1.98, 2.0)


Times = Mapping[tuple[str, str], Sequence[float]]


def ask(results: Sequence[BenchmarkResult], classes: Sequence[NodeClass] = (), **spec: Any) -> PlacementAdviceStatus:
    """Returns the answer, and checks that it is the same from the fields that the operator keeps."""
    asked = PlacementAdviceSpec.model_validate({"clientClassName": "user", **spec})
    status = advise(asked, results, NOW, classes)
    assert advise(asked, [project_result(asked, result.to_json()) for result in results], NOW, classes) == status
    return status


def sizes(*levels: str, **weights: int) -> dict[str, Any]:
    return {"fileSizes": [{"size": level} for level in levels] + [{"size": s, "weight": w} for s, w in weights.items()]}


def nodes(times: Times, run: int = 1, name: str = "files", size: str = "1Mi") -> list[BenchmarkResult]:
    """Returns a result for each class and node."""
    return [
        measured(server, size, [(time, 0) for time in seconds], case, run, name=name, node=node)
        for case, ((server, node), seconds) in enumerate(times.items(), start=1)
    ]


def edited(result: BenchmarkResult, **status: Any) -> BenchmarkResult:
    body = result.to_json()
    return BenchmarkResult.model_validate(body | {"status": {**body["status"], **status}})


def verdicts(status: PlacementAdviceStatus) -> dict[str, tuple[str, str]]:
    return {item.name: (item.verdict.value, item.reason) for item in status.ranking}


def answered(status: PlacementAdviceStatus) -> tuple[str, str]:
    condition = next(item for item in status.conditions if item.type == "BestFound")
    return condition.status, condition.reason


def reasons(notes: Sequence[Any]) -> set[str]:
    return {note.reason for note in notes}


ONE_NODE = nodes({("cloud", "cloud-1"): FAST, ("jetson", "jetson-1"): SLOW})


THREE_NODES = nodes(
    {
        ("cloud", "cloud-1"): (1.0, 1.02), ("cloud", "cloud-2"): (1.01, 1.03), ("cloud", "cloud-3"): (0.99, 1.01),
        ("jetson", "jetson-1"): (2.0, 2.04), ("jetson", "jetson-2"): (2.02, 2.06), ("jetson", "jetson-3"): (1.98, 2.0),
    }
)  # fmt: skip


def two_nodes() -> list[BenchmarkResult]:
    """Returns the published table with a second node per class, whose times are 1% longer."""
    second = [
        measured(
            result.spec.server.node_class,
            result.spec.levels["fileSize"],
            [(trial.duration_nanoseconds * 1.01 / 1e9, trial.transfer.retries if trial.transfer else 0)
             for trial in result.recorded.trials],
            result.spec.case + 100,
            node=f"{result.spec.server.node_class}-2",
        )
        for result in published()
    ]  # fmt: skip
    return [*published(), *second]


INVALID = [{"reason": "ClientSaturated", "message": "The client used all its CPU."}]
