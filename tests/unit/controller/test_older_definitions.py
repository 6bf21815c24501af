"""A benchmark while the served definitions lack fields of this version."""

import copy
import itertools

import pytest

from tests.unit.controller.reconciling import CLIENT, Demo, WaitError
from tierbench.controller import reconciler
from tierbench.kube.client import NotFoundError

MISSING = ("BenchmarkResult status.a",)
OLDER = ("True", "DefinitionsOlder")


async def test_no_run_starts_while_definitions_are_older(demo: Demo) -> None:
    demo.context.definitions.missing = MISSING
    versions = set()
    for _ in range(3):
        await demo.reconcile()
        versions.add(demo.raw["metadata"]["resourceVersion"])
    assert (demo.condition("DefinitionsDiffer"), len(versions)) == (OLDER, 1), "the condition is written once"
    assert not demo.api.names("pods") and not demo.api.names("leases")
    demo.context.definitions.missing = ()
    await demo.until_server()
    assert demo.condition("DefinitionsDiffer") == ("False", "DefinitionsAlike")


async def test_trials_measured_while_definitions_are_older_count_once(
    demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log may be gone when the definitions are updated, so the operator reads it earlier."""
    await demo.until_measured()
    stored = copy.deepcopy(demo.results)
    demo.context.definitions.missing = MISSING
    waits = itertools.count(1)

    async def update_definitions(*_: object) -> None:
        demo.relist()
        match next(waits):
            case 3:
                assert (demo.results, demo.condition("DefinitionsDiffer")) == (stored, OLDER)
                demo.api.logs[f"{CLIENT}-x"] = NotFoundError(404, "NotFound", "the pod is gone")
                demo.context.definitions.missing = ()
            case 20:
                raise WaitError

    monkeypatch.setattr(reconciler, "wait_for_event", update_definitions)
    await demo.reconcile()
    assert (demo.result_status["phase"], demo.result_status["counts"]["completed"]) == ("Complete", 1)
    assert not [name for name in demo.api.names("jobs") if name.endswith("a2")]


async def test_benchmark_can_be_deleted_while_definitions_are_older(demo: Demo) -> None:
    await demo.until_measured()
    demo.context.definitions.missing = MISSING
    demo.delete_pods()
    await demo.clean_up()
    assert not demo.api.names("leases")
