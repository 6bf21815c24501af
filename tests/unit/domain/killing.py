"""Worlds in which the operator is killed between any two actions."""

from hypothesis import strategies as st

from tests.unit.domain.world import World


def run_killed(world: World, data: st.DataObject, most_actions: int = 6) -> None:
    """Runs to the end, with an operator that dies again and again, after so many actions at most."""
    for _ in range(600):
        if not world.due:
            break
        killed_after = data.draw(st.one_of(st.none(), st.integers(0, most_actions)))
        if world.pass_(killed_after=killed_after).wait_seconds > 0 or data.draw(st.booleans()):
            world.step()
    world.run()
