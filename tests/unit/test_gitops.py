"""GitOps tools show whether a benchmark progresses, is healthy or has failed: kstatus by rules, Argo CD by a script."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from lupa.lua51 import LuaRuntime  # type: ignore[import-untyped]

from tests.unit.domain.objects import START, benchmark, node, node_class
from tests.unit.domain.scenarios import until_printed
from tests.unit.domain.world import World
from tierbench.api.benchmark import Phase
from tierbench.api.schema import object_schema
from tierbench.domain.node_classes import Noticed
from tierbench.domain.placement import resolve
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark

DOCUMENT = Path(__file__).parents[2] / "docs/how-to/use-gitops.md"
IN_PROGRESS = ("InProgress", "Progressing")
Raw = dict[str, Any]


def kstatus(item: Raw) -> str:
    """Returns the status by the rules of sigs.k8s.io/cli-utils/pkg/kstatus for kinds that it does not know."""
    metadata, status = item["metadata"], item.get("status", {})
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    if "observedGeneration" in status and status["observedGeneration"] != metadata["generation"]:
        return "InProgress"
    for condition in status.get("conditions", ()):
        found = {"Reconciling": "InProgress", "Stalled": "Failed"}.get(condition["type"])
        if found and condition["status"] == "True":
            return found
        if condition["type"] == "Ready" and condition["status"] != "True":
            return "InProgress"
    return "Current"


def argo(item: Raw) -> tuple[str, str | None]:
    """Returns the health by the documented script. Argo CD also runs Lua 5.1."""
    (block,) = [part for part in DOCUMENT.read_text().split("```yaml\n") if "health.lua" in part]
    customizations = yaml.safe_load(yaml.safe_load(block.partition("```")[0])["data"]["resource.customizations"])
    lua = LuaRuntime()
    health = lua.execute(
        f"obj = ...\n{customizations['tierbench.io/*Benchmark']['health.lua']}", lua.table_from(item, recursive=True)
    )
    return health["status"], health["message"]


def raw(world: World) -> Raw:
    benchmark = world.benchmark
    metadata = {"name": "demo", "generation": benchmark.metadata.generation}
    return {"metadata": metadata, "spec": benchmark.spec.to_json(), "status": benchmark.status.to_json()}


def pending(world: World) -> None:
    del world.classes["cloud"]
    world.reconcile()


def running(world: World) -> None:
    until_printed(world, 2)


def suspended(world: World) -> None:
    until_printed(world, 2)
    world.change_spec(suspend=True)
    world.run()


def complete(world: World) -> None:
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE


def failed(world: World) -> None:
    del world.classes["user"]
    while world.due:
        world.advance()
    assert world.benchmark.status.phase is Phase.FAILED


def edited(world: World) -> None:
    complete(world)
    world.edit(fileSizes=["4Mi"])


def superseded(world: World) -> None:
    running(world)
    world.edit(fileSizes=["4Mi"])
    world.reconcile()


def started_again(world: World) -> None:
    failed(world)
    world.change_spec(rerun="again")
    world.reconcile()


def with_another_policy(world: World) -> None:
    complete(world)
    world.change_spec(history=3)
    world.run()


@pytest.mark.parametrize(
    ("reach", "kstatus_of", "argo_of"),
    [
        (pending, *IN_PROGRESS),
        (running, *IN_PROGRESS),
        (suspended, "Current", "Suspended"),
        (complete, "Current", "Healthy"),
        (failed, "Failed", "Degraded"),
        (edited, *IN_PROGRESS),
        (superseded, *IN_PROGRESS),
        (started_again, *IN_PROGRESS),
        (with_another_policy, "Current", "Healthy"),
    ],
)
def test_gitops_tools_show_the_state_of_a_benchmark(
    reach: Callable[[World], None], kstatus_of: str, argo_of: str
) -> None:
    world = World()
    reach(world)
    assert (kstatus(raw(world)), argo(raw(world))[0]) == (kstatus_of, argo_of)


def test_gitops_tools_show_why_a_benchmark_waits_or_has_failed() -> None:
    world = World()
    pending(world)
    assert "NodeClass cloud does not exist" in str(argo(raw(world))[1])
    failing = World()
    failed(failing)
    assert "0 of 4 cases measured" in str(argo(raw(failing))[1])


def test_broken_constraints_degrade_for_argo_only() -> None:
    world = World(benchmark(runPolicy={"constraints": {"maxMeanMilliseconds": 1}}))
    complete(world)
    assert (kstatus(raw(world)), argo(raw(world))[0]) == ("Current", "Degraded")


def test_new_object_is_in_progress() -> None:
    """The API server adds the default of the status before the operator has written one."""
    status = object_schema(FileTransferBenchmark)["properties"]["status"]["default"]
    item = {"metadata": {"name": "demo", "generation": 1}, "spec": {}, "status": status}
    assert (kstatus(item), argo(item)[0]) == IN_PROGRESS


@pytest.mark.parametrize(
    ("nodes", "status", "reason", "message", "tool"),
    [
        (
            (),
            "False",
            "NoSuchNode",
            "No node matches NodeClass cloud. Label a node, or fix its selector.",
            "InProgress",
        ),
        ((False,), "False", "NoReadyNode", "None of the 1 nodes of NodeClass cloud is Ready", "InProgress"),
        ((True, False), "True", "NodesReady", "1 of 2 nodes are usable.", "Current"),
    ],
)
def test_gitops_tools_show_whether_a_node_class_has_usable_nodes(
    nodes: tuple[bool, ...], status: str, reason: str, message: str, tool: str
) -> None:
    made = node_class("cloud")
    made = made.model_copy(update={"metadata": made.metadata.model_copy(update={"generation": 1})})
    known = [node(f"c{number}", "cloud", ready=ready) for number, ready in enumerate(nodes)]
    found = resolve(made, known, START, Noticed())
    (condition,) = found.conditions
    assert (condition.type, condition.status, condition.reason) == ("Ready", status, reason)
    assert condition.message.startswith(message)
    assert kstatus({"metadata": {"generation": 1}, "status": found.to_json()}) == tool
    later = resolve(made.model_copy(update={"status": found}), known, START + timedelta(hours=1), Noticed())
    assert later == found, "the condition has changed although the nodes have not"
