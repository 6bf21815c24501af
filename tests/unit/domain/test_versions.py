"""Objects and pods of other versions of tierbench, and CustomResourceDefinitions that differ."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.domain.objects import benchmark, seal
from tests.unit.domain.scenarios import run_with
from tests.unit.domain.world import World
from tierbench.api.benchmark import BenchmarkStatus, Phase
from tierbench.api.record import BenchmarkRecord
from tierbench.domain.views import PodView, Termination
from tierbench.workloads.workload import ROLE_CLIENT


def make_world() -> World:
    return World(benchmark(servers={"nodeClassNames": ["cloud"]}, fileSizes=["1Mi", "2Mi"], repetitions=1))


def test_the_condition_becomes_false_once_the_definitions_match() -> None:
    world = make_world()
    differ: dict[str, Any] = {
        "type": "DefinitionsDiffer",
        "reason": "DefinitionsOlder",
        "message": "They lack a field.",
    }
    differ |= {"status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}
    status = BenchmarkStatus.model_validate({"conditions": [differ]})
    world.benchmark = world.benchmark.model_copy(update={"status": status})
    world.run()
    found = [item for item in world.benchmark.status.conditions if item.type == "DefinitionsDiffer"]
    assert [(item.status, item.reason) for item in found] == [("False", "DefinitionsAlike")]


def test_no_condition_is_set_while_definitions_match() -> None:
    world = make_world()
    world.run()
    assert "DefinitionsDiffer" not in {item.type for item in world.benchmark.status.conditions}


def test_an_invalid_result_is_left_as_it_is_and_the_run_continues() -> None:
    """Otherwise the operator would measure the case and write its sealed result repeatedly."""
    world = make_world()
    world.unreadable = {"ft-demo-r1-c001"}
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE
    assert set(world.results) == {"ft-demo-r1-c002"}


def test_a_run_whose_results_are_rejected_releases_its_nodes_and_fails() -> None:
    world = make_world()
    while not world.jobs:
        world.reconcile()
        world.step()
    world.permanently_rejected = {"ft-demo-r1-c001"}
    world.run()
    failed = next(item for item in world.benchmark.status.conditions if item.type == "Failed")
    assert (world.benchmark.status.phase, failed.reason) == (Phase.FAILED, "ResultRefused")
    assert not world.leases and not world.pods and not world.jobs
    world.change_spec(rerun="again")
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE


def test_unknown_fields_of_a_newer_version_stay_in_a_status() -> None:
    world = make_world()
    stored = {"run": {"number": 2, "startTime": "2026-01-01T00:00:00Z", "further": {"a": 1}}, "further": "kept"}
    world.benchmark = world.benchmark.model_copy(update={"status": BenchmarkStatus.model_validate(stored)})
    world.run()
    status = world.benchmark.status.to_json()
    assert (status["phase"], status["further"], status["run"]["further"]) == ("Complete", "kept", {"a": 1})
    world.change_spec(rerun="again")
    world.run()
    status = world.benchmark.status.to_json()
    assert (status["run"]["number"], status["further"], "further" in status["run"]) == (3, "kept", False)


def test_unknown_fields_of_a_newer_version_stay_in_a_record() -> None:
    world = make_world()
    while not any(result.recorded.trials for result in world.results.values()):
        world.reconcile()
        world.step()
    (name,) = world.records
    raw = world.records[name].to_json()
    raw["status"]["further"] = "kept"
    raw["status"]["trials"][0]["further"] = "kept"
    world.records[name] = BenchmarkRecord.model_validate(raw)
    world.run()
    status = world.records[name].status.to_json()
    assert "ended" in status
    assert (status["further"], status["trials"][0]["further"]) == ("kept", "kept")


@pytest.mark.parametrize(
    ("message", "reason", "says"),
    [
        ('tierbench-client: unknown command "measure"', "ClientUnreadable", 'asks of it (unknown command "measure")'),
        ('{"contract": 2}', "ClientUnreadable", "speaks contract 2, the operator 1"),
        ('{"contract": 1}', "ClientUnreadable", "ends with another seal"),
        (
            seal("", {"reason": "InvalidArguments", "message": '--plan: the plan has no field "x"'}),
            "InvalidArguments",
            'and the chart of one: --plan: the plan has no field "x"',
        ),
    ],
)
def test_a_client_of_another_release_is_named_and_not_started_again(message: str, reason: str, says: str) -> None:
    world, ended = make_world(), Termination(1, "Error", message)

    def refuse(pod: PodView) -> None:
        if pod.role == ROLE_CLIENT and pod.terminated is None:
            world.logs[pod.uid] = ""
            world.pods[pod.name] = replace(pod, image_id="registry.example/client@sha256:1", terminated=ended)

    run_with(world, refuse)
    statuses = [result.status for result in world.results.values()]
    assert {status.reason for status in statuses} == {reason}
    assert all(status.message.startswith("The client image registry.example/client@sha256:1 ") for status in statuses)
    assert all(says in status.message for status in statuses)
    assert all("the chart of one" in status.message for status in statuses)
    assert not [name for name in world.manifests if "-a2" in name]
