"""A client identifies an agent by its key, and sends nothing to other servers."""

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from images.paho.src.tierbench_paho.agent import Agent
from images.paho.src.tierbench_paho.contract import FailureError
from images.paho.src.tierbench_paho.pinned import PinnedConnection
from tests.paho.barrier import TOKEN, serving
from tests.paho.engine import HANG_SECONDS


@pytest.mark.parametrize("certificate", ["expired", "future", "server"])
def test_no_date_is_looked_at(tmp_path: Path, certificate: str) -> None:
    with serving(tmp_path, certificate) as (named, asked):
        agent = Agent(named["agent"]["url"], TOKEN, (tmp_path / "pin").read_text())
        assert agent.begin()
        assert agent.end() == {"cpuPartsPerMillion": 1}
    assert asked.connections == 1


def test_server_with_another_key_receives_nothing(tmp_path: Path) -> None:
    with serving(tmp_path) as (named, asked):
        agent = Agent(named["agent"]["url"], TOKEN, "sha256//another")
        with pytest.raises(FailureError) as refused:
            agent.begin()
        with pytest.raises(FailureError):
            agent.meet("b", 0, 2)
        assert agent.end() is None
    assert (refused.value.reason, asked.asked) == ("AgentKeyUnknown", [])
    assert "sha256//another" in str(refused.value)


def test_nothing_is_sent_in_clear() -> None:
    """Not even by a second try."""
    received = b""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(HANG_SECONDS)
        connection = PinnedConnection("127.0.0.1", server.getsockname()[1], "sha256//pin", HANG_SECONDS)
        for _ in range(2):
            with ThreadPoolExecutor(1) as other:
                answering = other.submit(_answer_in_clear, server)
                with pytest.raises(OSError, match="SSL"):
                    connection.request("POST", "/", TOKEN)
                received += answering.result()
    assert TOKEN.encode() not in received
    assert b"POST" not in received


def _answer_in_clear(server: socket.socket) -> bytes:
    asking, _ = server.accept()
    with asking:
        received = asking.recv(65536)
        asking.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        return received


def test_an_agent_that_was_restarted_is_spoken_with_again(tmp_path: Path) -> None:
    with serving(tmp_path) as (named, first):
        agent = Agent(named["agent"]["url"], TOKEN, (tmp_path / "pin").read_text())
        assert agent.begin()
        agent._connection.sock.close()
        assert agent.begin()
    assert first.connections == 2
