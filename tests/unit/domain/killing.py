"""Worlds in which the operator is killed between any two actions, or deposed with a write under way."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from hypothesis import strategies as st

from tests.unit.domain.world import World, one_by_one
from tierbench.domain.actions import AcquireLeases, Action, DeleteJob, DeleteServer, ReleaseLeases, SaveResult
from tierbench.domain.decide import decide

MOST_PASSES = 8


def killed(data: st.DataObject) -> Callable[[int], int | None]:
    """An operator that is killed in every second pass, after any of its writes."""
    return lambda writes: data.draw(st.none() | st.integers(0, writes))


def run_killed(world: World, data: st.DataObject) -> None:
    """Runs to the end, with an operator that dies again and again."""
    for _ in range(600):
        if not world.due:
            break
        if world.pass_(killed(data)).requeue_after > 0 or data.draw(st.booleans()):
            world.step()
    world.run()


def run_deposed(world: World, data: st.DataObject) -> None:
    """Runs to the end, with leaders that are deposed again and again. What each has under way takes effect when the
    next has gone on for some passes; before the end, as a run's last steps take longer than anything is under way."""
    for _ in range(600):
        if not world.due:
            break
        late = under_way(world, data.draw(st.integers(0, 6)))
        for _ in range(data.draw(st.integers(0, MOST_PASSES))):
            if world.due and world.pass_().requeue_after > 0:
                world.step()
        if world.due:
            late()
    world.run()


def under_way(world: World, after: int) -> Callable[[], None]:
    """What an operator that has decided now has under way `after` so many actions, all done before it."""
    seen = replace(
        world, pods=dict(world.pods), jobs=dict(world.jobs), results=dict(world.results), leases=dict(world.leases)
    )
    decision = decide(world.observe(), world.now)
    writes: list[Callable[[], None]] = []
    if decision.status != world.benchmark.status:
        writes.append(lambda: world._set_status(decision) if world.benchmark is seen.benchmark else None)
    writes += [partial(_carry_out, world, seen, one) for action in decision.actions for one in one_by_one(action)]
    for write in writes[:after]:
        write()
    return writes[after] if after < len(writes) else lambda: None


def _carry_out(world: World, seen: World, action: Action) -> None:
    """An action, if what it is about has not changed: of Leases and results the version is told to the API server, of
    what is deleted the UID, and what is there is not created."""

    def unchanged(nodes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(node for node in nodes if world.leases.get(node) is seen.leases.get(node))

    match action:
        case AcquireLeases(nodes, until):
            action = AcquireLeases(unchanged(tuple(nodes)), until)
        case ReleaseLeases(nodes):
            action = ReleaseLeases(unchanged(tuple(nodes)))
        case SaveResult(name=name) if world.results.get(name) is not seen.results.get(name):
            return
        case DeleteServer(name) if _uid(world, name) != _uid(seen, name):
            return
        case DeleteJob(name) if (name in world.jobs) != (name in seen.jobs):
            return
    world._carry_out(action)


def _uid(world: World, pod: str) -> str:
    return world.pods[pod].uid if pod in world.pods else ""
