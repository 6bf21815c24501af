"""Stands in for the kubelets of simulated nodes where kwok says nothing: what a client prints, and how it ends."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from aiohttp import web

from benchmarks.scale.recorded import Script
from tierbench.api.timestamps import format_time
from tierbench.kube.client import PODS, Kube, NotFoundError
from tierbench.kube.credentials import certificates
from tierbench.kube.news import Changed
from tierbench.kube.watch import watch
from tierbench.metrics.authorization import tls_context
from tierbench.workloads.names import CLIENT, LABEL_BENCHMARK, LABEL_CASE, LABEL_ROLE, ROLE_CLIENT

PORT: Final = 10250
SIMULATED: Final = "sim-"
"""What the names of simulated nodes begin with."""

_QUERY: Final = {"labelSelector": f"{LABEL_ROLE}={ROLE_CLIENT}"}
Pod = Mapping[str, Any]
Name = tuple[str, str]
"""Namespace and name."""


@dataclass
class _Log:
    """What a pod has printed so far."""

    lines: list[bytes] = field(default_factory=list)
    ended: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def print(self, line: bytes = b"", *, ended: bool = False) -> None:
        if line:
            self.lines.append(line)
        self.ended = ended
        self.changed.set()
        self.changed = asyncio.Event()


@dataclass
class Seen:
    """When what happened, by the monotonic clock: trials by namespace, benchmark, case and number, once all parts have
    printed them; and of pods by namespace, benchmark and first case that they appeared and ended."""

    printed: dict[tuple[str, str, int, int], float] = field(default_factory=dict)
    appeared: dict[tuple[str, str, int], float] = field(default_factory=dict)
    ended: dict[tuple[str, str, int], float] = field(default_factory=dict)


class Kubelet:
    """Plays every client on simulated nodes: a trial takes `pace` seconds, and parts of one client keep step. None
    begins unless `go` is set."""

    def __init__(self, kube: Kube) -> None:
        self.pace = 1.0
        self.go = asyncio.Event()
        self.go.set()
        self.seen = Seen()
        self.following = 0
        self._kube = kube
        self._logs: dict[Name, _Log] = {}
        self._plays: dict[Name, asyncio.Task[None]] = {}
        self._barriers: dict[tuple[str, str, str], asyncio.Barrier] = {}

    async def run(self) -> None:
        """Watches pods for ever."""
        async for news in watch(self._kube, PODS, None, _QUERY):
            if isinstance(news, Changed):
                self._see(news.item, deleted=news.deleted)

    def _see(self, pod: Pod, *, deleted: bool) -> None:
        name = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        if not pod["spec"].get("nodeName", SIMULATED).startswith(SIMULATED):
            return
        self.seen.appeared.setdefault(_case_of(pod), time.monotonic())
        if deleted:
            self._logs.pop(name, _Log()).print(ended=True)
            if play := self._plays.pop(name, None):
                play.cancel()
        elif pod["status"]["phase"] == "Running" and name not in self._plays:
            self._logs[name] = _Log()
            self._plays[name] = asyncio.create_task(self._play(pod, self._logs[name]))

    async def _play(self, pod: Pod, log: _Log) -> None:
        container = next(item for item in pod["spec"]["containers"] if item["name"] == CLIENT)
        script, (namespace, benchmark, first) = Script(container["args"]), _case_of(pod)
        together = (namespace, benchmark, script.barrier)
        barrier = self._barriers.setdefault(together, asyncio.Barrier(script.parts))
        for turn in script.turns:
            await self.go.wait()
            await barrier.wait()
            log.print(script.begin(turn, datetime.now(UTC)))
            await asyncio.sleep(self.pace)
            log.print(script.end(turn, datetime.now(UTC)))
            self.seen.printed[namespace, benchmark, turn.case, turn.trial] = time.monotonic()
        log.print(ended=True)
        self.seen.ended[namespace, benchmark, first] = time.monotonic()
        await self._end(pod, script.seal)

    async def _end(self, pod: Pod, seal: str) -> None:
        """As a kubelet reports a container that has ended well."""
        now, metadata = format_time(datetime.now(UTC)), pod["metadata"]
        (status,) = pod["status"]["containerStatuses"]
        began = status["state"]["running"]["startedAt"]
        ended = {"exitCode": 0, "reason": "Completed", "startedAt": began, "finishedAt": now, "message": seal}
        conditions = [
            {"type": name, "status": "False", "reason": "PodCompleted", "lastTransitionTime": now}
            for name in ("Ready", "ContainersReady")
        ]
        containers = [{**status, "ready": False, "started": False, "state": {"terminated": ended}}]
        change = {"phase": "Succeeded", "conditions": conditions, "containerStatuses": containers}
        try:
            await self._kube.request(
                "PATCH",
                PODS.path(metadata["namespace"], metadata["name"], "status"),
                body={"status": change},
                content_type="application/strategic-merge-patch+json",
            )
        except NotFoundError:
            return

    @asynccontextmanager
    async def serving(self, address: str) -> AsyncIterator[None]:
        """Serves logs at the address, as kubelets do."""
        app = web.Application()
        app.add_routes([web.get("/containerLogs/{namespace}/{pod}/{container}", self._answer)])
        runner, made = web.AppRunner(app, access_log=None), certificates("kubelet")
        await runner.setup()
        try:
            await web.TCPSite(runner, address, PORT, ssl_context=tls_context(made["tls.crt"], made["tls.key"])).start()
            yield
        finally:
            for play in self._plays.values():
                play.cancel()
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        log = self._logs.get((request.match_info["namespace"], request.match_info["pod"]))
        if log is None:
            raise web.HTTPNotFound
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        follow = request.query.get("follow") == "true"
        self.following += follow
        try:
            with contextlib.suppress(ConnectionResetError):  # whoever followed has gone
                await _send(log, response, follow=follow)
        finally:
            self.following -= follow
        return response


async def _send(log: _Log, response: web.StreamResponse, *, follow: bool) -> None:
    sent = 0
    while True:
        ended, changed = log.ended, log.changed
        if new := log.lines[sent:]:
            sent += len(new)
            await response.write(b"".join(new))
        elif ended or not follow:
            return
        else:
            await changed.wait()


def _case_of(pod: Pod) -> tuple[str, str, int]:
    labels = pod["metadata"]["labels"]
    return pod["metadata"]["namespace"], labels[LABEL_BENCHMARK], int(labels[LABEL_CASE])
