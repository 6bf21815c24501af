"""The real client pushes its lines to the operator's collector, which is sometimes unavailable."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from tests.contract.conftest import HANG_SECONDS
from tests.contract.test_client import command
from tierbench.controller.collector import CollectorKey, Inbox, collector
from tierbench.controller.credentials import new_key
from tierbench.metrics.server import tls_context
from tierbench.results.client_output import Output, SealState, check_seal, parse_output

POD, SCOPE, TRIALS = ("default", "pod"), ("uid-1", 1), 5
KEY = CollectorKey(new_key())


class Operator:
    """An operator that has just started, and expects the client."""

    def __init__(self, *, wanted: bool = True) -> None:
        self.inbox = Inbox()
        self.inbox.key = KEY
        self._wanted = wanted
        self._line = asyncio.Event()
        assert self.output == Output()

    @property
    def output(self) -> Output:
        """What the client has pushed."""
        return self.inbox.expect(POD, SCOPE, self._line.set, wanted=self._wanted)

    async def complete(self) -> Output:
        """Waits until the client has pushed everything. Returns it."""
        while self.output.lines < TRIALS:
            self._line.clear()
            await self._line.wait()
        return self.output


@asynccontextmanager
async def serving(operator: Operator, port: int = 0) -> AsyncIterator[int]:
    """Serves the collector of an operator. Yields its port."""
    runner = web.AppRunner(collector(operator.inbox), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls_context(KEY.certificate, KEY.pem))
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


class Client:
    """The process of a client that knows a collector."""

    def __init__(self, program: Path, folder: Path, url: str, port: int, timeout: int = 60) -> None:
        credentials = KEY.credentials(SCOPE)
        for name, value in credentials.items():
            (folder / name).write_bytes(value)
        self._message = folder / "termination"
        self._command: list[str | Path] = [
            *command(program, self._message, f"{url}/file.bin", range(1, TRIALS + 1)),
            f"--collector=https://127.0.0.1:{port}/v1/lines/default/pod",
            *(f"--collector-{name}-file={folder}/collector-{name}" for name in ("token", "pin")),
            *(f"--collector-timeout-seconds={timeout}", f"--spool={folder}/lines"),
        ]

    async def run(self) -> tuple[int | None, bytes, bytes]:
        """Returns its exit code, log and error output."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*map(str, self._command), stdout=pipe, stderr=pipe)
        log, errors = await asyncio.wait_for(process.communicate(), HANG_SECONDS)
        return process.returncode, log, errors

    @property
    def message(self) -> str:
        """The termination message, which the client writes before it pushes."""
        return self._message.read_text() if self._message.exists() else ""


async def test_client_runs_until_an_operator_has_stored_its_trials(client: Path, tmp_path: Path, url: str) -> None:
    """The first operator is killed when it has all lines, and has stored none of them."""
    async with serving(Operator()) as port:
        pushing = Client(client, tmp_path, url, port)
        running = asyncio.create_task(pushing.run())
    killed, operator = Operator(), Operator()
    async with serving(killed, port):
        await killed.complete()
    assert not running.done()
    async with serving(operator, port):
        output = await operator.complete()
        assert check_seal(output, pushing.message).state is SealState.COMPLETE
        assert not running.done()
        operator.inbox.acknowledge(POD, TRIALS)
        code, log, errors = await running
    assert (code, errors) == (0, b"")
    assert [trial.line for trial in output.printed] == list(parse_output(log.decode()).trials)


async def test_client_ends_at_once_if_the_operator_reads_its_log(client: Path, tmp_path: Path, url: str) -> None:
    operator = Operator(wanted=False)
    async with serving(operator) as port:
        code, log, errors = await Client(client, tmp_path, url, port).run()
    assert (code, errors, log.count(b'"Trial"')) == (0, b"", TRIALS)
    assert operator.output == Output()


@pytest.mark.parametrize("fault", ["no one listens", "another key"])
async def test_client_that_cannot_push_still_prints_and_seals_its_trials(
    client: Path, tmp_path: Path, url: str, fault: str
) -> None:
    async with serving(Operator()) as port:
        pushing = Client(client, tmp_path, url, port, timeout=0)
        if fault == "another key":
            (tmp_path / "collector-pin").write_bytes(CollectorKey(new_key()).credentials(SCOPE)["collector-pin"])
            code, log, errors = await pushing.run()
    if fault == "no one listens":
        code, log, errors = await pushing.run()
    assert (code, b"could not be delivered" in errors) == (0, True)
    assert check_seal(parse_output(log.decode()), pushing.message).state is SealState.COMPLETE
