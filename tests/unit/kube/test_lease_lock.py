"""At most one pod leads, even if requests are late or lost, or pods are stopped, killed or restarted."""

import types
from collections.abc import Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.apiserver.client import InProcessKube
from tests.unit.apiserver.server import ApiServer, Raw
from tests.unit.examples import examples
from tierbench.api.model import GROUP
from tierbench.kube.client import REQUEST_ERRORS, ConflictError, LeadershipLostError
from tierbench.kube.leader_election import LEASE_SECONDS, ElectionRecord, Fence, LeaseLock

CLAIMS = (
    ElectionRecord("a/one", (), "one-1"),
    ElectionRecord("a/one", (), "one-2"),
    ElectionRecord("b/two", ("team",), "two-1"),
)


@dataclass(eq=False)
class Message:
    """A request in flight: it may arrive late, or after its sender has stopped waiting."""

    handle: Callable[[], Coroutine[Any, Any, Raw]]
    arrived: bool = False
    answer: Raw = field(default_factory=dict)
    error: Exception | None = None

    def arrive(self) -> None:
        """Lets the API server handle the request."""
        self.arrived = True
        try:
            self.handle().send(None)
        except StopIteration as done:
            self.answer = done.value
        except ConflictError as error:
            self.error = error
        except Exception as error:
            self.error = error


@types.coroutine
def answer_to(message: Message) -> Generator[Message, None, Raw]:
    """Waits until the world lets the process continue."""
    yield message
    if message.error is not None:
        raise message.error
    return message.answer


class Connection(InProcessKube):
    """The connection of one process to the API server."""

    async def request(self, method: str, path: str, **options: Any) -> Raw:
        """Sends a request, and waits for the answer."""
        return await answer_to(Message(partial(super().request, method, path, **options)))


class Process:
    """An operator's election, driven by the test. Each process starts its clock at another time."""

    def __init__(self, world: "World", claim: ElectionRecord, started: float) -> None:
        self.world = world
        self.claim = claim
        self.fence = Fence(self.clock)
        self.started = started
        self.lock = LeaseLock(Connection(world.server), "leases", GROUP, claim, self.fence, self.clock)
        self.running = self._run()
        self.waits_for: Message | None = None
        self.over = self.stopped = False
        self.resume()

    def clock(self) -> float:
        return self.world.now - self.started

    @property
    def leads(self) -> bool:
        return not self.over and self.fence.remaining > 0

    async def _run(self) -> None:
        """Does the same as LeaderElector without its waits. The world decides when it continues."""
        leads = False
        while True:
            try:
                if leads:
                    await self.lock.renew()
                else:
                    leads = await self.lock.acquire() is None
            except LeadershipLostError:
                if leads:
                    return
            except REQUEST_ERRORS:
                pass
            await pause()

    def resume(self, error: Exception | None = None) -> None:
        """Continues until it has sent a request, or waits."""
        try:
            sent = self.running.send(None) if error is None else self.running.throw(error)
        except StopIteration:
            self.over = True
            return
        self.waits_for = sent
        if sent is not None:
            self.world.in_flight.append(sent)


@types.coroutine
def pause() -> Generator[None, None, None]:
    yield None


@dataclass
class World:
    """Processes, what they have sent, and the time."""

    server: ApiServer = field(default_factory=ApiServer)
    now: float = 0.0
    in_flight: list[Message] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    led: set[str] = field(default_factory=set)

    def step(self, random: Random, weights: Sequence[float]) -> None:
        """Lets a message arrive, a process continue, give up, be killed or be stopped, or time pass."""
        process = random.choice(self.processes)
        if process.over:
            self._replace(process, random)
            return
        match random.choices(range(len(weights)), weights)[0]:
            case 0 if self.in_flight:
                self.in_flight.pop(random.randrange(len(self.in_flight))).arrive()
            case 1 if not process.stopped and (process.waits_for is None or process.waits_for.arrived):
                process.resume()
            case 2 if not process.stopped and process.waits_for is not None:
                process.resume(TimeoutError())
            case 3:
                self._replace(process, random)
            case 4:
                self.now += random.choice([0.1, 0.5, 1, 2])
            case 5:
                self.now += LEASE_SECONDS - 0.5
            case 6:
                process.stopped = not process.stopped

    def _replace(self, process: Process, random: Random) -> None:
        """Kills a process. Its container restarts, or another pod replaces it."""
        claim = (
            process.claim
            if random.random() < 0.5
            else ElectionRecord(process.claim.release, process.claim.namespaces, f"new-{random.random()}")
        )
        self.processes[self.processes.index(process)] = Process(self, claim, self.now - random.uniform(0, 1000))

    def check(self) -> None:
        leaders = [process for process in self.processes if process.leads]
        self.led |= {process.claim.release for process in leaders}
        for one, other in combinations(leaders, 2):
            assert not one.claim.overlaps(other.claim), (one.claim, other.claim)


def run(random: Random, steps: int = 300) -> World:
    """Runs a world with random probabilities of a slow network, a busy machine and crashes."""
    world = World()
    world.processes = [Process(world, claim, random.uniform(-1000, 0)) for claim in CLAIMS]
    chances = ((10, 20), (10, 20), (0, 0.5), (0, 0.3), (0.5, 2), (0, 0.5), (0, 0.5))
    weights = [random.choice(chance) for chance in chances]
    for _ in range(steps):
        world.step(random, weights)
        world.check()
    return world


@examples(4)
@given(st.integers())
def test_no_two_overlapping_operators_lead_at_once(seed: int) -> None:
    run(Random(seed))


def test_most_random_runs_have_a_leader_and_each_release_leads_in_some() -> None:
    """Otherwise, the test above would prove nothing."""
    led = [run(Random(seed)).led for seed in range(100)]
    assert sum(map(bool, led)) > 80
    assert {release for found in led for release in found} == {"a/one", "b/two"}


async def test_leases_of_several_uninstalled_releases_expire_at_the_same_time() -> None:
    """An uninstalled release may lose its permissions before it releases its Lease."""
    kube, now = InProcessKube(ApiServer()), [100.0]
    for number in range(3):
        left = LeaseLock(
            kube, "leases", GROUP, ElectionRecord(f"gone/release-{number}", (f"team-{number}",), "pod"), Fence()
        )
        assert await left.acquire() is None
    candidate = LeaseLock(
        kube, "leases", GROUP, ElectionRecord("a/one", (), "one-1"), Fence(lambda: now[0]), lambda: now[0]
    )
    assert await candidate.acquire() is not None
    now[0] += LEASE_SECONDS
    assert await candidate.acquire() is None
