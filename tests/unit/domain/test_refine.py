"""A run measures at the middle of the sizes between which another class comes ahead, until it knows closely where."""

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

FIVE = [f"ft-demo-r1-c{number:03d}" for number in range(1, 15)]


def world(**spec: Any) -> World:
    """Two sizes with the cliff between them."""
    return CliffWorld(benchmark(**{"fileSizes": ["1Mi", "64Mi"], "runPolicy": {"refine": {}}, **spec}))


def sizes(world: World, factor: str = "fileSize") -> list[str]:
    """Of all results, in the order of their cases, each named once."""
    ordered = sorted(world.results.values(), key=lambda result: result.spec.case)
    return list(dict.fromkeys(result.spec.levels[factor] for result in ordered))


def started(world: World) -> list[str]:
    """The server that was started, time after time."""
    return [event.message for event in world.events if event.reason == reasons.STARTING]


def test_the_middle_is_measured_until_the_bracket_is_as_narrow_as_asked() -> None:
    it = world()
    it.run()
    assert it.benchmark.status.phase is Phase.COMPLETE
    assert it.benchmark.status.progress == "14/14"
    assert sizes(it) == ["1Mi", "64Mi", *ROUNDS]
    assert sorted(it.results) == FIVE
    assert all(result.status.phase is ResultPhase.COMPLETE for result in it.results.values())
    messages = [event.message for event in it.events if event.reason == reasons.REFINED]
    assert messages[0] == "jetson overtakes cloud between 1Mi and 64Mi: measures 8190Ki"
    assert messages[-1] == "jetson overtakes cloud between 17900Ki and 23200Ki: measures 20400Ki"
    assert nothing_left(it)
    pairs = {result.spec.alternation.cases for result in it.results.values() if result.spec.alternation}
    assert pairs == {(1, 3), (2, 4), (5, 6), (7, 8), (9, 10), (11, 12), (13, 14)}


def test_jobs_of_preflight_and_refinement_have_different_names() -> None:
    it = world(preflight={})
    it.run()
    names = [name for name, _ in it.printed]
    of_preflight = names[:4]
    assert len(names) > len(set(names)) > len(of_preflight)
    assert not {*of_preflight} & {*names[4:]}


def test_each_round_has_its_own_servers_with_its_files() -> None:
    it = world(runPolicy={"refine": {"withinPercent": 200}})
    files: dict[str, str] = {}
    for _ in range(600):
        if not it.due:
            break
        decision = it.reconcile()
        created = [item for action in decision.actions if isinstance(action, Create) for item in action.manifests]
        for pod in (item for item in created if item["kind"] == "Pod"):
            arguments = pod["spec"]["initContainers"][0]["args"]
            files[pod["metadata"]["name"]] = arguments[arguments.index("--sizes") + 1]
        if decision.requeue_after > 0:
            it.step()
    served = {"": "1Mi,64Mi", "-1": ROUNDS[0], "-2": ROUNDS[1]}
    assert files == {
        f"ft-demo-r1-s{slot}{again}": ",".join(str(parse_size(size)) for size in named.split(","))
        for again, named in served.items()
        for slot in (1, 2)
    }
    assert sizes(it) == ["1Mi", "64Mi", *ROUNDS[:2]]


def test_without_refine_no_level_is_added() -> None:
    it = world(runPolicy={})
    it.run()
    assert sizes(it) == ["1Mi", "64Mi"]


def test_refine_can_be_set_and_unset_during_a_run() -> None:
    it = world(runPolicy={})
    while len(it.printed) < 12:
        it.advance()
    it.change_spec(refine=world().benchmark.spec.run_policy.refine)
    while len(it.printed) < 13:
        it.advance()
    it.change_spec(refine=None)
    it.run()
    assert sizes(it) == ["1Mi", "64Mi", ROUNDS[0]], "what was begun is measured to its end"
    assert it.benchmark.status.progress == "6/6"


@pytest.mark.parametrize(("most", "expected"), [(2, 1), (3, 1), (4, 2), (9, 4)])
def test_no_more_cases_are_added_than_allowed(most: int, expected: int) -> None:
    it = world(runPolicy={"refine": {"maxCases": most}})
    it.run()
    assert sizes(it) == ["1Mi", "64Mi", *ROUNDS[:expected]]
    assert it.benchmark.status.phase is Phase.COMPLETE


def test_no_more_trials_are_added_than_the_quota_allows() -> None:
    it = world()
    it.quotas = Quotas(trials=6 * it.benchmark.spec.repetitions)
    it.run()
    assert sizes(it) == ["1Mi", "64Mi", ROUNDS[0]]


def test_every_combination_of_other_levels_and_clients_has_its_own_crossovers() -> None:
    it = world(concurrency=[1, 4], cacheState=["Warm"], runPolicy={"refine": {"withinPercent": 300}})
    it.run()
    found = {(result.spec.levels["concurrency"], result.spec.levels["fileSize"]) for result in it.results.values()}
    assert found == {(number, size) for number in ("1", "4") for size in ("1Mi", "64Mi", *ROUNDS[:2])}
    assert {result.spec.levels["cacheState"] for result in it.results.values()} == {"Warm"}
    messages = [event.message for event in it.events if event.reason == reasons.REFINED]
    assert messages[:2] == [
        f"jetson overtakes cloud between 1Mi and 64Mi, concurrency {number}: measures 8190Ki" for number in (1, 4)
    ]
    assert len(set(started(it))) == 2
    assert nothing_left(it)


@pytest.mark.parametrize("lost", [["j1"], ["c1", "j1"]])
def test_no_level_is_added_between_failed_classes(lost: list[str]) -> None:
    it = world()
    for name in lost:
        it.nodes.pop(name)
    it.run()
    assert sizes(it) == ["1Mi", "64Mi"]
    assert it.benchmark.status.cases.failed == 2 * len(lost)


def test_a_server_that_does_not_start_again_ends_the_refinement() -> None:
    it = world()
    for _ in range(600):
        if not it.due:
            break
        it.advance()
        again = it.pods.get("ft-demo-r1-s2-1")
        if again is not None:
            problem = Problem(reasons.PREPARATION_FAILED, "no space")
            it.pods[again.name] = replace(again, ready=False, problem=problem)
    assert sizes(it) == ["1Mi", "64Mi", ROUNDS[0]]
    assert it.benchmark.status.phase is Phase.COMPLETE
    phases = {name: result.status.phase for name, result in it.results.items()}
    assert phases["ft-demo-r1-c005"] is ResultPhase.COMPLETE
    assert phases["ft-demo-r1-c006"] is ResultPhase.FAILED
    assert nothing_left(it)


def test_a_suspended_run_continues_in_its_round() -> None:
    it = world(runPolicy={"refine": {"withinPercent": 200}})
    while len(it.printed) < 13:
        it.advance()
    it.reconcile()
    it.change_spec(suspend=True)
    it.run()
    assert it.benchmark.status.phase is Phase.SUSPENDED
    assert nothing_left(it)
    it.change_spec(suspend=False)
    it.run()
    assert sizes(it) == ["1Mi", "64Mi", *ROUNDS[:2]]
    assert len(it.printed) == len(set(it.printed)) == 24


def test_the_next_run_refines_again_and_is_compared_at_all_levels() -> None:
    it = world()
    it.run()
    it.change_spec(rerun="again")
    it.run()
    status = it.benchmark.status
    assert status.run is not None and status.run.number == 2
    levels = {run: {r.spec.levels["fileSize"] for r in it.results.values() if r.spec.run == run} for run in (1, 2)}
    assert levels[1] == levels[2] == {"1Mi", "64Mi", *ROUNDS}
    regressed = next(item for item in status.conditions if item.type == reasons.REGRESSED)
    assert regressed.reason == reasons.NOT_WORSE


def test_payload_sizes_are_refined_with_the_brokers_that_are_up() -> None:
    it = payload_world(runPolicy={"refine": {}})
    it.run()
    assert sizes(it, "payloadSize") == ["1Ki", "64Ki", *PAYLOADS]
    assert it.benchmark.status.progress == "14/14"
    messages = [event.message for event in it.events if event.reason == reasons.REFINED]
    assert messages[0] == "jetson overtakes cloud between 1Ki and 64Ki: measures 8190"
    assert started(it) == ["Server for class cloud on node c1", "Server for class jetson on node j1"]
    sent = {str(plan_of(job)["sizeBytes"]) for job in it.manifests.values()}
    assert sent == {"1024", "65536", *PAYLOADS}
    assert nothing_left(it)


def test_only_the_broker_with_a_crossover_is_refined() -> None:
    brokers: list[dict[str, Any]] = [{"name": name, "mosquitto": {}} for name in ("mosquitto", "steady")]
    it = payload_world(brokers=brokers, runPolicy={"refine": {"maxCases": 5}}, order={"passes": 1})
    it.run()
    found = {(result.spec.levels["broker"], result.spec.levels["payloadSize"]) for result in it.results.values()}
    assert found == {(name, size) for name in ("mosquitto", "steady") for size in ("1Ki", "64Ki")} | {
        ("mosquitto", size) for size in PAYLOADS[:2]
    }
    messages = [event.message for event in it.events if event.reason == reasons.REFINED]
    assert messages[0] == "jetson overtakes cloud between 1Ki and 64Ki, broker mosquitto: measures 8190"
    assert len(started(it)) == 6, "the second round found the server of the first"
    assert nothing_left(it)


def test_a_round_starts_with_the_kafka_that_is_up() -> None:
    brokers = [{"name": "kafka", "kafka": {"provider": "Strimzi"}}]
    it = payload_world(StrimziCliffWorld, brokers=brokers, order={"passes": 1})
    it.run()
    assert isinstance(it, StrimziWorld)
    assert sizes(it, "payloadSize") == ["1Ki", "64Ki", *PAYLOADS[:2]]
    assert it.benchmark.status.phase is Phase.COMPLETE
    classes = [message.split()[3] for message in started(it)]
    assert classes == ["cloud", "jetson", "cloud", "jetson"], "a round asked again for a server that was up"
    assert sorted(kind for kind, _ in it.made) == sorted(4 * KINDS)
    assert nothing_left(it) and not it.objects
