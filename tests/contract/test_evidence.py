"""Failures of a trial, and samples of the server, arrive in the result."""

import json
import signal
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

from tests.contract.conftest import HANG_SECONDS, SIZE, Server
from tests.contract.test_client import command, run, validate
from tests.histograms import bucket_index
from tests.unit.results.trials import NOW, spec
from tierbench.api.record import RecordStatus
from tierbench.api.result import ResultPhase
from tierbench.results.aggregate import add_trials, conclude
from tierbench.results.client_output import SealState, check_seal, parse_output


def cut_short(handler: SimpleHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(SIZE))
    handler.end_headers()
    handler.wfile.write(b"x" * (SIZE // 3))


def test_retries_are_counted_once_by_cause(client: Path, tmp_path: Path, server: Server) -> None:
    def misbehave(number: int, handler: SimpleHTTPRequestHandler) -> bool:
        if number == 1:
            handler.send_error(503)
        elif number == 2:
            cut_short(handler)
        return number <= 2

    server.misbehave = misbehave
    code, log, message = run(client, tmp_path, f"{server.url}/file.bin", trials=(1, 2), wait_milliseconds=1)
    assert code == 0
    assert check_seal(parse_output(log), message).state is SealState.COMPLETE
    wanted = spec(trials=2, warmup=0)
    record = add_trials(wanted, RecordStatus(), parse_output(log).trials, 1)
    again = add_trials(wanted, record, parse_output(log).trials, 1)
    assert again == record
    status = conclude(wanted, record, NOW, None)
    assert status.counts.completed == 2
    assert sum(status.counts.retry_causes.values()) == status.counts.retries
    assert status.counts.retry_causes["ServerError"] == 1
    assert status.counts.retry_causes["Truncated"] >= 1
    assert status.phase is ResultPhase.COMPLETE


def test_client_and_operator_use_the_same_buckets(client: Path, tmp_path: Path, url: str) -> None:
    _, log, _ = run(client, tmp_path, f"{url}/file.bin", trials=range(1, 21))
    histograms = [trial.distributions.download_duration for trial in parse_output(log).trials]
    assert len(histograms) == 20
    for histogram in histograms:
        assert histogram is not None
        assert (histogram.indexes, histogram.counts) == ((bucket_index(histogram.sum_nanoseconds),), (1,))


def test_terminated_client_seals_its_trials(client: Path, tmp_path: Path, server: Server) -> None:
    released = threading.Event()

    def misbehave(number: int, handler: SimpleHTTPRequestHandler) -> bool:
        return number > 1 and released.wait(HANG_SECONDS)

    server.misbehave = misbehave
    message = tmp_path / "termination"
    words = command(client, message, f"{server.url}/file.bin", trials=(1, 2, 3), read_timeout_milliseconds=60_000)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        log = ""
        for line in process.stdout:
            log += line
            if json.loads(line)["trial"] == 2:
                break
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=HANG_SECONDS)
    released.set()
    assert process.returncode == 143
    check = check_seal(parse_output(log + rest), message.read_text())
    assert check.state is SealState.COMPLETE
    assert check.seal is not None
    assert check.seal.trials == 1
    assert check.seal.failure is not None
    assert check.seal.failure.reason == "Interrupted"
    validate(message.read_text())
