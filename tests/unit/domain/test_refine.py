"""A run measures the middle of the two sizes around a crossover, until these are close enough."""

from dataclasses import replace
from typing import Any

import pytest

from tests.plans import plan_of
from tests.unit.domain.objects import benchmark
from tests.unit.domain.scenarios import PAYLOADS, ROUNDS, CliffWorld, StrimziCliffWorld, nothing_left, payload_world
from tests.unit.domain.strimzi_world import StrimziWorld
from tests.unit.domain.world import World
from tierbench.api.benchmark import Phase
from tierbench.api.policy import Quotas
from tierbench.api.quantity import parse_size
from tierbench.api.result import ResultPhase
from tierbench.domain import reasons
from tierbench.domain.decision import Create
from tierbench.domain.views import Problem
from tierbench.kinds.broker.strimzi import KINDS

RESULTS = [f"ft-demo-r1-c{number:03d}" for number in range(1, 15)]


def make_world(**spec: Any) -> World:
    """Returns a world with two sizes and the cliff between them."""
    return CliffWorld(benchmark(**{"fileSizes": ["1Mi", "64Mi"], "runPolicy": {"refine": {}}, **spec}))


def sizes(world: World, factor: str = "fileSize") -> list[str]:
    """Returns each size once, in the order of the cases of all results."""
    ordered = sorted(world.results.values(), key=lambda result: result.spec.case)
    return list(dict.fromkeys(result.spec.levels[factor] for result in ordered))


def started(world: World) -> list[str]:
    """Returns the message of each start of a server."""
    return [event.message for event in world.events if event.reason == reasons.STARTING]


def test_a_run_measures_the_middle_until_the_crossover_is_narrow_enough() -> None:
    world = make_world()
    world.run()
    assert world.benchmark.status.phase is Phase.COMPLETE
    assert world.benchmark.status.progress == "14/14"
    assert sizes(world) == ["1Mi", "64Mi", *ROUNDS]
    assert sorted(world.results) == RESULTS
    assert all(result.status.phase is ResultPhase.COMPLETE for result in world.results.values())
    messages = [event.message for event in world.events if event.reason == reasons.REFINED]
    assert messages[0] == "jetson overtakes cloud between 1Mi and 64Mi: measures 8190Ki"
    assert messages[-1] == "jetson overtakes cloud between 17900Ki and 23200Ki: measures 20400Ki"
    assert nothing_left(world)
    pairs = {result.spec.alternation.cases for result in world.results.values() if result.spec.alternation}
    assert pairs == {(1, 3), (2, 4), (5, 6), (7, 8), (9, 10), (11, 12), (13, 14)}


def test_jobs_of_preflight_and_refinement_have_different_names() -> None:
    world = make_world(preflight={})
    world.run()
    names = [name for name, _ in world.printed]
    of_preflight = names[:4]
    assert len(names) > len(set(names)) > len(of_preflight)
    assert not {*of_preflight} & {*names[4:]}


def test_each_round_has_its_own_servers_with_its_files() -> None:
    world = make_world(runPolicy={"refine": {"withinPercent": 200}})
    files: dict[str, str] = {}
    for _ in range(600):
        if not world.due:
            break
        decision = world.reconcile()
        created = [item for action in decision.actions if isinstance(action, Create) for item in action.manifests]
        for pod in (item for item in created if item["kind"] == "Pod"):
            arguments = pod["spec"]["initContainers"][0]["args"]
            files[pod["metadata"]["name"]] = arguments[arguments.index("--sizes") + 1]
        if decision.requeue_after > 0:
            world.step()
    served = {"": "1Mi,64Mi", "-1": ROUNDS[0], "-2": ROUNDS[1]}
    assert files == {
        f"ft-demo-r1-s{slot}{again}": ",".join(str(parse_size(size)) for size in named.split(","))
        for again, named in served.items()
        for slot in (1, 2)
    }
    assert sizes(world) == ["1Mi", "64Mi", *ROUNDS[:2]]


def test_without_refine_no_level_is_added() -> None:
    world = make_world(runPolicy={})
    world.run()
    assert sizes(world) == ["1Mi", "64Mi"]


def test_refine_can_be_set_and_unset_during_a_run() -> None:
    world = make_world(runPolicy={})
    while len(world.printed) < 12:
        world.advance()
    world.change_spec(refine=make_world().benchmark.spec.run_policy.refine)
    while len(world.printed) < 13:
        world.advance()
    world.change_spec(refine=None)
    world.run()
    assert sizes(world) == ["1Mi", "64Mi", ROUNDS[0]], "a round that has begun is measured to its end"
    assert world.benchmark.status.progress == "6/6"


@pytest.mark.parametrize(("most", "expected"), [(2, 1), (3, 1), (4, 2), (9, 4)])
def test_no_more_cases_are_added_than_allowed(most: int, expected: int) -> None:
    world = make_world(runPolicy={"refine": {"maxCases": most}})
    world.run()
    assert sizes(world) == ["1Mi", "64Mi", *ROUNDS[:expected]]
    assert world.benchmark.status.phase is Phase.COMPLETE


def test_no_more_trials_are_added_than_the_quota_allows() -> None:
    world = make_world()
    world.quotas = Quotas(trials=6 * world.benchmark.spec.repetitions)
    world.run()
    assert sizes(world) == ["1Mi", "64Mi", ROUNDS[0]]


def test_every_combination_of_other_levels_and_clients_has_its_own_crossovers() -> None:
    world = make_world(concurrency=[1, 4], cacheState=["Warm"], runPolicy={"refine": {"withinPercent": 300}})
    world.run()
    found = {(result.spec.levels["concurrency"], result.spec.levels["fileSize"]) for result in world.results.values()}
    assert found == {(number, size) for number in ("1", "4") for size in ("1Mi", "64Mi", *ROUNDS[:2])}
    assert {result.spec.levels["cacheState"] for result in world.results.values()} == {"Warm"}
    messages = [event.message for event in world.events if event.reason == reasons.REFINED]
    assert messages[:2] == [
        f"jetson overtakes cloud between 1Mi and 64Mi, concurrency {number}: measures 8190Ki" for number in (1, 4)
    ]
    assert len(set(started(world))) == 2
    assert nothing_left(world)


@pytest.mark.parametrize("lost", [["j1"], ["c1", "j1"]])
def test_no_level_is_added_between_failed_classes(lost: list[str]) -> None:
    world = make_world()
    for name in lost:
        world.nodes.pop(name)
    world.run()
    assert sizes(world) == ["1Mi", "64Mi"]
    assert world.benchmark.status.cases.failed == 2 * len(lost)


def test_a_server_that_does_not_start_again_ends_the_refinement() -> None:
    world = make_world()
    for _ in range(600):
        if not world.due:
            break
        world.advance()
        again = world.pods.get("ft-demo-r1-s2-1")
        if again is not None:
            problem = Problem(reasons.PREPARATION_FAILED, "no space")
            world.pods[again.name] = replace(again, ready=False, problem=problem)
    assert sizes(world) == ["1Mi", "64Mi", ROUNDS[0]]
    assert world.benchmark.status.phase is Phase.COMPLETE
    phases = {name: result.status.phase for name, result in world.results.items()}
    assert phases["ft-demo-r1-c005"] is ResultPhase.COMPLETE
    assert phases["ft-demo-r1-c006"] is ResultPhase.FAILED
    assert nothing_left(world)


def test_a_suspended_run_continues_in_its_round() -> None:
    world = make_world(runPolicy={"refine": {"withinPercent": 200}})
    while len(world.printed) < 13:
        world.advance()
    world.reconcile()
    world.change_spec(suspend=True)
    world.run()
    assert world.benchmark.status.phase is Phase.SUSPENDED
    assert nothing_left(world)
    world.change_spec(suspend=False)
    world.run()
    assert sizes(world) == ["1Mi", "64Mi", *ROUNDS[:2]]
    assert len(world.printed) == len(set(world.printed)) == 24


def test_the_next_run_refines_again_and_is_compared_at_all_levels() -> None:
    world = make_world()
    world.run()
    world.change_spec(rerun="again")
    world.run()
    status = world.benchmark.status
    assert status.run is not None and status.run.number == 2
    levels = {run: {r.spec.levels["fileSize"] for r in world.results.values() if r.spec.run == run} for run in (1, 2)}
    assert levels[1] == levels[2] == {"1Mi", "64Mi", *ROUNDS}
    regressed = next(item for item in status.conditions if item.type == reasons.REGRESSED)
    assert regressed.reason == reasons.NOT_WORSE


def test_payload_sizes_are_refined_with_the_brokers_that_are_up() -> None:
    world = payload_world(runPolicy={"refine": {}})
    world.run()
    assert sizes(world, "payloadSize") == ["1Ki", "64Ki", *PAYLOADS]
    assert world.benchmark.status.progress == "14/14"
    messages = [event.message for event in world.events if event.reason == reasons.REFINED]
    assert messages[0] == "jetson overtakes cloud between 1Ki and 64Ki: measures 8190"
    assert started(world) == ["Server for class cloud on node c1", "Server for class jetson on node j1"]
    sent = {str(plan_of(job)["sizeBytes"]) for job in world.manifests.values()}
    assert sent == {"1024", "65536", *PAYLOADS}
    assert nothing_left(world)


def test_only_the_broker_with_a_crossover_is_refined() -> None:
    brokers: list[dict[str, Any]] = [{"name": name, "mosquitto": {}} for name in ("mosquitto", "steady")]
    world = payload_world(brokers=brokers, runPolicy={"refine": {"maxCases": 5}}, order={"passes": 1})
    world.run()
    found = {(result.spec.levels["broker"], result.spec.levels["payloadSize"]) for result in world.results.values()}
    assert found == {(name, size) for name in ("mosquitto", "steady") for size in ("1Ki", "64Ki")} | {
        ("mosquitto", size) for size in PAYLOADS[:2]
    }
    messages = [event.message for event in world.events if event.reason == reasons.REFINED]
    assert messages[0] == "jetson overtakes cloud between 1Ki and 64Ki, broker mosquitto: measures 8190"
    assert len(started(world)) == 6, "the second round found the server of the first"
    assert nothing_left(world)


def test_a_round_starts_with_the_kafka_that_is_up() -> None:
    brokers = [{"name": "kafka", "kafka": {"provider": "Strimzi"}}]
    world = payload_world(StrimziCliffWorld, brokers=brokers, order={"passes": 1})
    world.run()
    assert isinstance(world, StrimziWorld)
    assert sizes(world, "payloadSize") == ["1Ki", "64Ki", *PAYLOADS[:2]]
    assert world.benchmark.status.phase is Phase.COMPLETE
    classes = [message.split()[3] for message in started(world)]
    assert classes == ["cloud", "jetson", "cloud", "jetson"], "a round started a server that was up"
    assert sorted(kind for kind, _ in world.created) == sorted(4 * KINDS)
    assert nothing_left(world) and not world.objects
