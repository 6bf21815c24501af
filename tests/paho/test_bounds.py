"""What a broker sends or says has bounds."""

import json
import socket
from pathlib import Path

import pytest

from images.paho.src.tierbench_paho.connection import Connection
from images.paho.src.tierbench_paho.contract import FailureError, Printer, write_termination
from images.paho.src.tierbench_paho.options import Target
from tests.contract.schema import CONTRACT
from tests.paho.engine import HANG_SECONDS
from tests.unit.domain.world import trial_line
from tierbench.results.client_output import Output, add_sealed

ACCEPTED = b"\x20\x02\x00\x00"
OF_256_MIB = b"\x30\xff\xff\xff\x7f"


def test_a_packet_longer_than_any_message_is_not_taken_in() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        connection = Connection(Target(host, port, None, None, None, 1024), "client", 0)
        connection.open()
        peer, _ = listener.accept()
        with peer:
            peer.settimeout(HANG_SECONDS)
            peer.recv(1024)
            peer.sendall(ACCEPTED + OF_256_MIB)
            assert not peer.recv(1024), "it waits for the rest"
        connection.disconnect()
        connection.join()


@pytest.mark.parametrize("letter", ["<", '"', "\x1b", "\0", "ü", "\u2028", "\udcff", "😀"])
def test_a_seal_is_as_long_as_a_kubelet_keeps(letter: str, tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as out:
        sealed = Printer(out).seal(FailureError("Interrupted", letter * 5000))
    write_termination(tmp_path / "seal", sealed)
    written = (tmp_path / "seal").read_bytes()
    assert len(written) <= 4096
    CONTRACT.validate(json.loads(written))


@pytest.mark.parametrize("number", [1, 20, 500])
def test_a_seal_holds_the_last_trials_that_fit(number: int, tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as out:
        printer = Printer(out)
        for trial in range(1, number + 1):
            printer.ended(json.loads(trial_line(trial, nanoseconds=trial**5, case=1)))
        write_termination(tmp_path / "seal", printer.seal(None))
    message = (tmp_path / "seal").read_text()
    assert len(message) <= 4096
    CONTRACT.validate(json.loads(message))
    held = [trial.trial for trial in add_sealed(Output(), message).printed]
    assert held == list(range(number - len(held) + 1, number + 1))
    assert min(number, 20) <= len(held) < 500


def test_messages_have_no_control_characters() -> None:
    failure = FailureError("Refused", "a\x1b[2J\r\nb\x9bc\u2028d")
    assert failure.to_json() == {"reason": "Refused", "message": "a [2J  b c d"}
