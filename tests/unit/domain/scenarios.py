"""Worlds with special clients, and functions that run a world and describe what it has measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.unit.domain.objects import START, broker_benchmark, seal
from tests.unit.domain.strimzi_world import StrimziWorld
from tests.unit.domain.world import World
from tierbench.api.benchmark import RunStatus
from tierbench.api.quantity import parse_size
from tierbench.domain.run import Run
from tierbench.domain.views import PodView, Termination
from tierbench.kube.meta import format_time
from tierbench.workloads.plan import Case

CLIFF, PAYLOAD_CLIFF = 20 * 2**20, 20 * 2**10
ROUNDS = ["8190Ki", "23200Ki", "13800Ki", "17900Ki", "20400Ki"]
PAYLOADS = ["8190", "23200", "13800", "17900", "20400"]


def measured_trials(world: World) -> list[tuple[str, int]]:
    """Returns result and number of every trial that counts."""
    return sorted(
        (name, trial.trial)
        for name, result in world.results.items()
        for trial in result.recorded.trials
        if not trial.warmup
    )


def every_trial_once(world: World, run: int = 1) -> list[tuple[str, int]]:
    return [(f"ft-demo-r{run}-c{case:03d}", trial) for case in (1, 2, 3, 4) for trial in (1, 2, 3)]


def nothing_left(world: World) -> bool:
    return not (world.pods or world.jobs or world.services or world.secrets or world.leases)


def condition(world: World, kind: str) -> tuple[str, str]:
    found = next(item for item in world.benchmark.status.conditions if item.type == kind)
    return found.status, found.reason


def run_with(world: World, disturb: Callable[[PodView], object]) -> None:
    """Runs to the end. Calls `disturb` with every pod after each step."""
    for _ in range(900):
        if not world.due:
            return
        world.advance()
        for pod in list(world.pods.values()):
            disturb(pod)
    raise AssertionError("the benchmark does not end")


def until_printed(world: World, number: int) -> None:
    for _ in range(100):
        if len(world.printed) >= number:
            return
        world.advance()
    raise AssertionError("no client has printed")


def end_client(world: World, pod: PodView, code: int, failure: dict[str, Any] | None, log: str | None = None) -> None:
    """Ends a client with a seal over what it has printed, or over `log`."""
    printed = world.logs.get(pod.uid, "") if log is None else log
    world.logs[pod.uid] = printed
    world.pods[pod.name] = replace(pod, terminated=Termination(code, "Error", seal(printed, failure)))
    world.jobs[pod.name] = replace(world.jobs[pod.name], finished=True, ended=world.now)


def shared_node(world: World) -> None:
    world.nodes["c1"] = replace(world.nodes["c1"], labels={"hw": "cloud"})
    world.classes["jetson"] = world.classes["cloud"].model_copy(update={"metadata": world.classes["jetson"].metadata})


@dataclass
class DriftingWorld(World):
    """A world that gets slower by 10% from the first trial to the last."""

    def nanoseconds_of(self, case: int) -> int:
        """Returns a duration that grows with the number of trials so far."""
        run = RunStatus(number=1, start_time=format_time(START))
        trials = len(Run(self.observe(), run, self.now).cases) * self.benchmark.spec.repetitions
        return round(10**9 * (1 + 0.1 * len(self.printed) / trials))


def ratio(world: World) -> float:
    """Runs the world. Returns the ratio of the mean times of the two classes."""
    world.run()

    def mean(names: Sequence[str]) -> float:
        trials = [trial for name in names for trial in world.results[name].recorded.trials]
        return sum(trial.duration_nanoseconds for trial in trials) / len(trials)

    return mean(["ft-demo-r1-c003", "ft-demo-r1-c004"]) / mean(["ft-demo-r1-c001", "ft-demo-r1-c002"])


@dataclass
class CliffWorld(World):
    """A world in which cloud is faster up to 20 MiB, and jetson above."""

    def nanoseconds_of(self, case: int) -> int:
        """Returns a duration that depends on class and size, and slightly on the trial."""
        planned_case = planned(self, case)
        if planned_case is None:
            return self.nanoseconds
        slow = (planned_case.server.node_class == "cloud") == (parse_size(planned_case.levels["fileSize"]) > CLIFF)
        return (2 if slow else 1) * 10**9 + 10**6 * (len(self.printed) % 7)


@dataclass
class PayloadCliffWorld(World):
    """The same for messages of 20 KiB. With a broker named steady, cloud is always faster."""

    def measured_by(self, command: str, case: int) -> dict[str, Any] | None:
        """Returns round trips of about 1 or 2 µs."""
        planned_case = planned(self, case)
        if planned_case is None:
            return super().measured_by(command, case)
        beyond = (
            planned_case.levels["broker"] != "steady" and parse_size(planned_case.levels["payloadSize"]) > PAYLOAD_CLIFF
        )
        slow = (planned_case.server.node_class == "cloud") == beyond
        mean = (2000 if slow else 1000) + len(self.printed) % 7
        spread = {"schema": 6, "count": 100, "sumNanoseconds": 100 * mean, "indexes": [702 if slow else 638]}
        return {
            "exchange": {"pairs": 2, "sent": 100, "received": 100, "connectNanoseconds": 1000},
            "distributions": {"roundTrip": {**spread, "counts": [100]}},
        }


@dataclass
class StrimziCliffWorld(PayloadCliffWorld, StrimziWorld):
    """The same with a Kafka from Strimzi."""


def planned(world: World, case: int) -> Case | None:
    """Returns the case with a number in the current run, or None for a case of the preflight."""
    status = world.benchmark.status.run
    assert status is not None
    cases = Run(world.observe(), status, world.now).cases
    return next((one for one in cases if one.number == case), None)


def payload_world(kind: type[World] = PayloadCliffWorld, **spec: Any) -> World:
    """Returns a world with two payload sizes and the crossover between them."""
    payload, policy = {"sizes": ["1Ki", "64Ki"]}, {"refine": {"withinPercent": 200}}
    return kind(broker_benchmark(**{"payload": payload, "runPolicy": policy, **spec}))
