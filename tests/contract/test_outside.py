"""A real member measures for a real stand-in while operators and members are killed."""

import asyncio
import hashlib
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from tests.contract.conftest import HANG_SECONDS, ROOT, SIZE, Server
from tests.ports import free_ports
from tests.unit.apiserver.client import InProcessKube
from tests.unit.apiserver.server import ApiServer
from tierbench.api.contract import CONTRACT_VERSION
from tierbench.api.node_class import NODE_CLASSES
from tierbench.api.trial_plan import PlannedTrial, TransferPlan, TransferTarget
from tierbench.controller.collector import CollectorKey, Inbox, collector
from tierbench.controller.credentials import new_key
from tierbench.controller.node_classes import ClusterView
from tierbench.controller.outside import routes
from tierbench.kube.meta import format_time
from tierbench.metrics.server import tls_context
from tierbench.results.client_output import SealState, check_seal, parse_output
from tierbench.workloads.manifests import plan_document

KEY, SCOPE, TOKEN = CollectorKey(new_key()), ("uid-1", 1), "t0ken"
TRIALS = 20


class Cluster:
    """An API server with an external class, and the running operator."""

    def __init__(self) -> None:
        self.api, (self.port,) = ApiServer(), free_ports(1)
        expires = format_time(datetime.now(UTC) + timedelta(hours=1))
        digest = hashlib.sha256(TOKEN.encode()).hexdigest()
        invited = [{"name": "a", "tokenHash": digest, "expirationTime": expires}]
        spec = {"external": True, "invitations": invited}
        self.api.put(NODE_CLASSES, {"metadata": {"name": "laptop", "uid": "u"}, "spec": spec})
        self._inbox, self._pods = Inbox(), set[str]()

    def expect(self, pod: str) -> None:
        """Makes this operator and all later ones expect a stand-in's pod."""
        self._pods.add(pod)
        self._inbox.expect(("default", pod), SCOPE, lambda: None, wanted=False)

    def forget(self, pod: str) -> None:
        """Deletes a stand-in's pod."""
        self._pods.discard(pod)
        self._inbox.forget(("default", pod))

    @asynccontextmanager
    async def operator(self) -> AsyncIterator[None]:
        """Runs a new operator, which writes statuses."""
        view, self._inbox = ClusterView(), Inbox()
        self._inbox.key = KEY
        for raw in self.api.matching(NODE_CLASSES.path(None)):
            view.observe_class(raw, deleted=False)
        for pod in self._pods:
            self.expect(pod)
        url = f"https://127.0.0.1:{self.port}"
        found = routes(self._inbox, view, lambda: datetime.now(UTC), lambda: True, url, KEY)
        runner = web.AppRunner(collector(self._inbox, found), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port, ssl_context=tls_context(KEY.certificate, KEY.pem)).start()

        async def write() -> None:
            while await view.changed.wait():
                view.changed.clear()
                await view.write_class_statuses(InProcessKube(self.api))

        writing = asyncio.create_task(write())
        try:
            yield
        finally:
            writing.cancel()
            await runner.cleanup()


class Programs:
    """The processes of a member and of its stand-ins."""

    def __init__(self, client: Path, folder: Path, cluster: Cluster, url: str) -> None:
        self._client, self._folder, self._cluster, self._url = str(client), folder, cluster, url
        for name, value in KEY.credentials(SCOPE).items():
            (folder / name).write_bytes(value)

    async def member(self) -> asyncio.subprocess.Process:
        """Starts the member, with the same command each time."""
        words = (f"https://127.0.0.1:{self._cluster.port}", "--class=laptop", f"--pin={KEY.pin}", f"--token={TOKEN}")
        with (self._folder / "member.log").open("ab") as log:
            state = f"--state={self._folder}/state"
            return await asyncio.create_subprocess_exec(self._client, "join", *words, state, stderr=log)

    async def stand_in(self, pod: str, trials: Iterable[int]) -> tuple[int | None, str, str]:
        """Runs the pod of a stand-in. Returns its exit code, its log and its termination message."""
        target = TransferTarget(url=f"{self._url}/file.bin")
        schedule = tuple(PlannedTrial(trial=trial) for trial in trials)
        plan = plan_document(
            TransferPlan(
                contract=CONTRACT_VERSION, kind="Transfer", schedule=schedule, targets=(target,), size_bytes=SIZE
            )
        )
        self._cluster.expect(pod)
        message = self._folder / f"{pod}.message"
        base = f"https://127.0.0.1:{self._cluster.port}/v1"
        process = await asyncio.create_subprocess_exec(
            *(self._client, "stand-in", f"--plan={plan}", "--output=json", f"--termination-log={message}"),
            *("--class=laptop", f"--signature={KEY.signature(SCOPE, 'laptop', plan)}"),
            *(f"--work={base}/work/default/{pod}", "--absent-seconds=600", "--silent-seconds=600"),
            *(f"--collector-{name}-file={self._folder}/collector-{name}" for name in ("token", "pin")),
            stdout=asyncio.subprocess.PIPE,
        )
        log, _ = await asyncio.wait_for(process.communicate(), HANG_SECONDS)
        self._cluster.forget(pod)
        return process.returncode, log.decode(), message.read_text()


async def test_killed_members_and_operators_neither_lose_nor_duplicate_trials(
    client: Path, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request of the member's load is a step. At some steps, the member or the operator is killed."""
    monkeypatch.setattr("tierbench.controller.outside._RESTART_SECONDS", 5)  # a stand-in asks every two seconds
    cluster = Cluster()
    programs = Programs(client, tmp_path, cluster, server.url)
    loop, steps = asyncio.get_running_loop(), asyncio.Queue[int]()

    def step(number: int, _: object) -> bool:
        loop.call_soon_threadsafe(steps.put_nowait, number)
        return False

    server.misbehave = step
    member = await programs.member()
    printed: dict[int, int] = {}
    reasons: list[str] = []

    async def wait_for_step(number: int) -> None:
        while await steps.get() < number:
            pass

    async def strike() -> None:
        nonlocal member
        for number in (3, 6, 10, 15):
            async with cluster.operator():
                await wait_for_step(number)
                if number in {6, 15}:
                    member.send_signal(signal.SIGKILL)
                    await member.wait()
                    member = await programs.member()
        async with cluster.operator():
            await asyncio.Event().wait()

    striking = asyncio.create_task(strike())
    for attempt in range(1, 10):
        missing = [trial for trial in range(1, TRIALS + 1) if trial not in printed]
        if not missing:
            break
        code, log, message = await programs.stand_in(f"pod-{attempt}", missing)
        output = parse_output(log)
        seal = check_seal(output, message)
        assert seal.state is SealState.COMPLETE, (code, message)
        for trial in output.trials:
            printed[trial.trial] = printed.get(trial.trial, 0) + 1
        failure = json.loads(message).get("failure")
        assert (code == 0) == (failure is None)
        reasons.append("" if failure is None else failure["reason"])
    striking.cancel()
    member.send_signal(signal.SIGTERM)
    await member.wait()
    assert printed == dict.fromkeys(range(1, TRIALS + 1), 1)
    assert reasons[-1] == ""
    assert set(reasons[:-1]) <= {"Interrupted"}


@pytest.mark.release
@pytest.mark.parametrize("system", ["windows/amd64", "darwin/arm64", "linux/armv7"])
def test_client_compiles_for_other_systems_and_passes_vet(system: str) -> None:
    subprocess.run([ROOT / "images" / "programs", system], cwd=ROOT, check=True)
    name, architecture = system.split("/")
    ending = ".exe" if name == "windows" else ""
    assert (ROOT / "build" / "programs" / f"tierbench-client-{name}-{architecture}{ending}").stat().st_size > 1 << 20
    target = {"GOOS": name, "GOARCH": architecture.replace("armv7", "arm"), "CGO_ENABLED": "0"}
    vet = (str(ROOT / "tools" / "go"), "vet", ".")
    subprocess.run(vet, cwd=ROOT / "images" / "client", env={**os.environ, **target}, check=True)
