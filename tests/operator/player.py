"""Plays what clients in pods print, line by line, and how they end; serves their logs as kubelets do."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import aiohttp
from aiohttp import web

from tests.operator.recorded import Script
from tierbench.controller.credentials import certificates
from tierbench.kube.client import Kube
from tierbench.kube.clock import format_time
from tierbench.kube.errors import ConflictError, NotFoundError
from tierbench.kube.informer import WatchEvent, list_and_watch
from tierbench.kube.resources import PODS
from tierbench.metrics.server import tls_context
from tierbench.workloads.names import CLIENT, LABEL_ATTEMPT, LABEL_BENCHMARK, LABEL_CASE, LABEL_ROLE, ROLE_CLIENT
from tierbench.workloads.plan import ScheduledTrial

_AGAIN_SECONDS = 0.2
_logger = logging.getLogger(__name__)
Pod = Mapping[str, Any]
Name = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True)
class Client:
    """Whose a client's pod is. `case` is the first of those that it measures."""

    namespace: str
    benchmark: str
    case: int
    attempt: int

    @classmethod
    def of(cls, pod: Pod) -> "Client":
        """That of a pod."""
        labels = pod["metadata"]["labels"]
        benchmark, case, attempt = labels[LABEL_BENCHMARK], labels[LABEL_CASE], labels[LABEL_ATTEMPT]
        return cls(pod["metadata"]["namespace"], benchmark, int(case), int(attempt))


@dataclass
class Log:
    """What a pod has printed so far."""

    lines: list[bytes] = field(default_factory=list)
    ended: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def print(self, line: bytes) -> None:
        """Adds a line."""
        self.lines.append(line)
        self._wake()

    def end(self) -> None:
        """No more lines come."""
        self.ended = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def send(self, response: web.StreamResponse, *, follow: bool) -> None:
        """Sends it, followed until it ends."""
        sent = 0
        while True:
            ended, changed = self.ended, self._changed
            if new := self.lines[sent:]:
                sent += len(new)
                await response.write(b"".join(new))
            elif ended or not follow:
                return
            else:
                await changed.wait()


class Player:
    """Plays every client that runs on nodes whose names begin with `nodes`. Parts of one client keep step."""

    def __init__(self, kube: Kube, nodes: str = "") -> None:
        self.kube = kube
        self.following = 0
        """How many logs are followed."""
        self.logs: dict[Name, Log] = {}
        self._nodes = nodes
        self._plays: dict[Name, asyncio.Task[None]] = {}
        self._barriers: dict[tuple[str, str, str], asyncio.Barrier] = {}

    async def may_begin(self, client: Client, scheduled: ScheduledTrial) -> None:
        """Returns when a client may begin a trial."""

    async def may_end(self, client: Client, scheduled: ScheduledTrial) -> None:
        """Returns when it may end it."""

    def nanoseconds(self, client: Client, scheduled: ScheduledTrial) -> int:
        """How long a trial takes by the client's clock; 0 for as long as was recorded."""
        return 0

    async def run(self, labels: str) -> None:
        """Watches the pods that bear the labels, for ever."""
        async for news in list_and_watch(self.kube, PODS, None, {"labelSelector": labels} if labels else {}):
            if isinstance(news, WatchEvent) and news.item["spec"].get("nodeName", self._nodes).startswith(self._nodes):
                self.see(news.item, deleted=news.deleted)

    def see(self, pod: Pod, *, deleted: bool) -> None:
        """Takes in a pod as the watch shows it."""
        name = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        if deleted:
            if log := self.logs.pop(name, None):
                log.end()
            if play := self._plays.pop(name, None):
                play.cancel()
        elif is_client(pod) and pod["status"]["phase"] == "Running" and name not in self._plays:
            self.logs[name] = Log()
            self._plays[name] = begin(self._play(pod, self.logs[name]))

    async def _play(self, pod: Pod, log: Log) -> None:
        container = next(item for item in pod["spec"]["containers"] if item["name"] == CLIENT)
        script, client = Script(container["args"]), Client.of(pod)
        together = (client.namespace, client.benchmark, script.barrier)
        barrier = self._barriers.setdefault(together, asyncio.Barrier(script.parts))
        for scheduled in script.schedule:
            await self.may_begin(client, scheduled)
            await barrier.wait()
            log.print(script.begin(scheduled, datetime.now(UTC)))
            await self.may_end(client, scheduled)
            log.print(script.end(scheduled, datetime.now(UTC), self.nanoseconds(client, scheduled)))
        log.end()
        await self.end(pod, 0, script.seal)

    async def end(self, pod: Pod, exit_code: int, message: str) -> None:
        """As a kubelet reports that the only container of a pod has ended."""
        now, good = format_time(datetime.now(UTC)), exit_code == 0
        (status,) = pod["status"]["containerStatuses"]
        ended = {
            "exitCode": exit_code,
            "reason": "Completed" if good else "Error",
            "startedAt": status["state"]["running"]["startedAt"],
            "finishedAt": now,
            "message": message,
        }
        conditions = [
            {"type": name, "status": "False", "reason": "PodCompleted", "lastTransitionTime": now}
            for name in ("Ready", "ContainersReady")
        ]
        containers = [{**status, "ready": False, "started": False, "state": {"terminated": ended}}]
        phase = "Succeeded" if good else "Failed"
        await self.report(pod, {"phase": phase, "conditions": conditions, "containerStatuses": containers})

    async def report(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Changes a pod's status, unless the pod is gone; tries again while the API server is away."""
        path = PODS.path(pod["metadata"]["namespace"], pod["metadata"]["name"], "status")
        change = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        patch = partial(self.kube.request, "PATCH", path, content_type="application/strategic-merge-patch+json")
        while True:
            try:
                await patch(body=change)
            except (NotFoundError, ConflictError):
                return
            except (aiohttp.ClientError, TimeoutError):
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                return

    @asynccontextmanager
    async def serving(self, address: str, port: int) -> AsyncIterator[None]:
        """Serves logs at the address, as kubelets do."""
        app = web.Application()
        app.add_routes([web.get("/containerLogs/{namespace}/{pod}/{container}", self._answer)])
        runner, made = web.AppRunner(app, access_log=None, shutdown_timeout=0.1), certificates("kubelet")
        await runner.setup()
        try:
            await web.TCPSite(runner, address, port, ssl_context=tls_context(made["tls.crt"], made["tls.key"])).start()
            yield
        finally:
            for play in self._plays.values():
                play.cancel()
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        log = self.logs.get((request.match_info["namespace"], request.match_info["pod"]))
        if log is None:
            raise web.HTTPNotFound
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        follow = request.query.get("follow") == "true"
        self.following += follow
        try:
            with contextlib.suppress(ConnectionResetError):  # its reader has gone
                await log.send(response, follow=follow)
        finally:
            self.following -= follow
        return response


def is_client(pod: Pod) -> bool:
    """Whether a pod is a benchmark's client."""
    labels: Mapping[str, str] = pod["metadata"].get("labels", {})
    return labels.get(LABEL_ROLE) == ROLE_CLIENT and LABEL_BENCHMARK in labels


def begin(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """A task; what it fails with is logged."""

    def look(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            _logger.error("A pod is no longer played", exc_info=error)

    task = asyncio.create_task(work)
    task.add_done_callback(look)
    return task
