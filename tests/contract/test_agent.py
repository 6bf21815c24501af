"""Clients identify the agent of a server only by the token and the key that the operator creates."""

import json
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.conftest import HANG_SECONDS, SIZE, Server
from tests.contract.test_client import run, validate
from tests.ports import free_ports
from tests.unit.results.trials import NOW, spec
from tierbench.api.record import RecordStatus
from tierbench.api.trial_plan import AgentAccess, CacheState, PlannedLink
from tierbench.controller.credentials import fill
from tierbench.results.aggregate import add_trials, conclude
from tierbench.results.client_output import parse_output
from tierbench.workloads.workload import Credentials


@pytest.fixture
def agent(client: Path, tmp_path: Path, server: Server) -> Iterator[AgentAccess]:
    """Yields the agent of the server, with the token and the key that the operator creates."""
    secret = fill(Credentials({}, certificate=False))["data"]
    for key, value in secret.items():
        (tmp_path / key).write_bytes(b64decode(value))
    (port,) = free_ports(1)
    own = [f"--{key}-file={tmp_path / f'agent-{key}'}" for key in ("token", "key")]
    flags = ["--address=127.0.0.1", f"--port={port}", f"--directory={server.folder}", f"--ports={server.server_port}"]
    with subprocess.Popen([client, "agent", *own, *flags]) as process:
        url = f"https://127.0.0.1:{port}"
        _wait_for(f"{url}/healthz")
        token, pin = (str(tmp_path / f"agent-{key}") for key in ("token", "pin"))
        yield AgentAccess(url=url, token_file=token, pin_file=pin)
        process.terminate()


def _wait_for(url: str) -> None:
    unverified = ssl._create_unverified_context()
    deadline = time.monotonic() + HANG_SECONDS
    while True:
        try:
            urllib.request.urlopen(url, timeout=HANG_SECONDS, context=unverified).close()
        except (urllib.error.URLError, TimeoutError):
            assert time.monotonic() < deadline, f"{url} does not answer"
            time.sleep(0.02)
        else:
            return


def test_result_contains_the_samples_of_the_agent(client: Path, tmp_path: Path, url: str, agent: AgentAccess) -> None:
    code, log, message = run(
        client, tmp_path, f"{url}/file.bin", agent=agent, cache_state=CacheState.WARM, trials=(1, 2)
    )
    assert code == 0, message
    for line in log.splitlines():
        validate(line)
    wanted = spec(trials=2, warmup=0, fileSize=str(SIZE), cacheState="Warm")
    status = conclude(wanted, add_trials(wanted, RecordStatus(), parse_output(log).trials, 1), NOW, None)
    assert {"serverDeviceReadBytes", "tcpRetransmits"} <= set(status.statistics)
    assert status.statistics["serverResidentPartsPerMillion"].mean >= 990_000
    assert {"ServerNotObserved", "CacheNotWarm"}.isdisjoint(note.reason for note in status.invalid)


def test_the_client_measures_its_link_before_the_first_trial(
    client: Path, tmp_path: Path, url: str, agent: AgentAccess
) -> None:
    link = PlannedLink(name="lte", up_kilobits_per_second=20_000, down_kilobits_per_second=20_000)
    code, log, message = run(client, tmp_path, f"{url}/file.bin", agent=agent, link=link, trials=(1, 2))
    assert code == 0, message
    trials = parse_output(log).trials
    (sample,) = {trial.client.link for trial in trials}
    assert sample is not None
    assert None not in sample.model_dump().values()
    assert (sample.upload_bits_per_second or 0) > 20_000_000  # loopback has no link
    without = run(client, tmp_path, f"{url}/file.bin", agent=agent)[1]
    assert all(trial.client.link is None for trial in parse_output(without).trials)


@pytest.mark.parametrize(("key", "reason"), [("token", "TokenRefused"), ("pin", "AgentKeyUnknown")])
def test_client_with_a_wrong_token_or_pin_fails_with_a_reason(
    client: Path, tmp_path: Path, url: str, agent: AgentAccess, key: str, reason: str
) -> None:
    (tmp_path / f"agent-{key}").write_text("another")
    code, log, message = run(client, tmp_path, f"{url}/file.bin", agent=agent)
    assert (code, log) == (1, "")
    seal = json.loads(message)
    validate(message)
    assert seal["failure"]["reason"] == reason
