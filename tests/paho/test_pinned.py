"""An agent is known by its key alone, and nothing is said to anybody else."""

from pathlib import Path

import pytest

from images.paho.src.tierbench_paho.agent import Agent
from images.paho.src.tierbench_paho.contract import FailureError
from tests.paho.barrier import TOKEN, serving


@pytest.mark.parametrize("certificate", ["expired", "future", "server"])
def test_no_date_is_looked_at(tmp_path: Path, certificate: str) -> None:
    with serving(tmp_path, certificate) as (named, asked):
        agent = Agent(str(named["agent"]), TOKEN, (tmp_path / "pin").read_text())
        assert agent.begin()
        assert agent.end() == {"cpuPartsPerMillion": 1}
    assert asked.connections == 1


def test_nothing_is_said_to_who_has_another_key(tmp_path: Path) -> None:
    with serving(tmp_path) as (named, asked):
        agent = Agent(str(named["agent"]), TOKEN, "sha256//another")
        with pytest.raises(FailureError) as refused:
            agent.begin()
        with pytest.raises(FailureError):
            agent.meet("b", 0, 2)
        assert agent.end() is None
    assert (refused.value.reason, asked.asked) == ("AgentKeyUnknown", [])
    assert "sha256//another" in str(refused.value)


def test_an_agent_that_was_restarted_is_spoken_with_again(tmp_path: Path) -> None:
    with serving(tmp_path) as (named, first):
        agent = Agent(str(named["agent"]), TOKEN, (tmp_path / "pin").read_text())
        assert agent.begin()
        agent._connection.sock.close()
        assert agent.begin()
    assert first.connections == 2
