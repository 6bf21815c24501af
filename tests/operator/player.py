"""Replays the output of clients line by line, reports how they end, and serves their logs as kubelets do."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import aiohttp
from aiohttp import web

from tests.operator.recorded import Replay
from tests.plans import plan_in
from tierbench.controller.credentials import certificates
from tierbench.kube.client import ConflictError, Kube, NotFoundError
from tierbench.kube.informer import WatchEvent, list_and_watch
from tierbench.kube.meta import PODS, format_time
from tierbench.metrics.server import tls_context
from tierbench.workloads.check import ASKS, LABEL_CHECK_ROLE
from tierbench.workloads.plan import ScheduledTrial
from tierbench.workloads.workload import CLIENT, LABEL_ATTEMPT, LABEL_BENCHMARK, LABEL_CASE, LABEL_ROLE, ROLE_CLIENT

_RETRY_SECONDS = 0.2
_logger = logging.getLogger(__name__)
Pod = Mapping[str, Any]
Name = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True)
class Client:
    """The benchmark of a client's pod. `case` is the first case that it measures."""

    namespace: str
    benchmark: str
    case: int
    attempt: int

    @classmethod
    def of(cls, pod: Pod) -> "Client":
        """Returns the client to which a pod belongs."""
        labels = pod["metadata"]["labels"]
        benchmark, case, attempt = labels[LABEL_BENCHMARK], labels[LABEL_CASE], labels[LABEL_ATTEMPT]
        return cls(pod["metadata"]["namespace"], benchmark, int(case), int(attempt))


@dataclass
class Log:
    """The output of a pod so far."""

    lines: list[bytes] = field(default_factory=list)
    ended: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def print(self, line: bytes) -> None:
        """Adds a line."""
        self.lines.append(line)
        self._wake()

    def end(self) -> None:
        """Marks the log as complete."""
        self.ended = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def send(self, response: web.StreamResponse, *, follow: bool) -> None:
        """Writes the lines to a response. If `follow` is true, waits for more until the log is complete."""
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
    """Replays every client on nodes whose names begin with `nodes`. The parts of one client run in lockstep."""

    def __init__(self, kube: Kube, nodes: str = "") -> None:
        self.kube = kube
        self.following = 0
        """The number of logs that are being followed."""
        self.logs: dict[Name, Log] = {}
        self.ahead: dict[str, timedelta] = {}
        """How far the clocks of nodes are ahead."""
        self._nodes = nodes
        self._plays: dict[Name, asyncio.Task[None]] = {}
        self._barriers: dict[tuple[str, str, str], asyncio.Barrier] = {}

    def now(self, pod: Pod) -> datetime:
        """Returns the time by the clock of a pod's node."""
        return datetime.now(UTC) + self.ahead.get(pod["spec"]["nodeName"], timedelta(0))

    async def may_begin(self, client: Client, scheduled: ScheduledTrial) -> None:
        """Waits until a client may begin a trial."""

    async def may_end(self, client: Client, scheduled: ScheduledTrial) -> None:
        """Waits until a client may end a trial."""

    async def deliver(self, pod: Pod, lines: bytes, trials: int) -> None:
        """Waits until a client has delivered its lines, if it has to."""

    def nanoseconds(self, client: Client, scheduled: ScheduledTrial) -> int:
        """Returns the duration of a trial by the client's clock, or 0 for the recorded duration."""
        return 0

    async def run(self, labels: str) -> None:
        """Watches the pods with these labels until it is cancelled."""
        async for event in list_and_watch(self.kube, PODS, None, {"labelSelector": labels} if labels else {}):
            if isinstance(event, WatchEvent):
                node: str = event.item["spec"].get("nodeName", self._nodes)
                if node.startswith(self._nodes):
                    self.observe(event.item, deleted=event.deleted)

    def observe(self, pod: Pod, *, deleted: bool) -> None:
        """Starts or stops a replay for a pod that the watch has shown."""
        name = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        if deleted:
            if log := self.logs.pop(name, None):
                log.end()
            if play := self._plays.pop(name, None):
                play.cancel()
        elif is_client(pod) and pod["status"]["phase"] == "Running" and name not in self._plays:
            self.logs[name] = Log()
            self._plays[name] = begin(self._play(pod, self.logs[name]))
        elif is_check_client(pod) and pod["status"]["phase"] == "Running" and name not in self._plays:
            self.logs[name] = Log()
            self._plays[name] = begin(self._check(pod, self.logs[name]))

    async def _check(self, pod: Pod, log: Log) -> None:
        """Reports that a check pod reaches all its peers, and that its node lacks nothing."""
        peers = [text.removeprefix("--peer=") for text in pod["spec"]["containers"][0]["args"] if "--peer=" in text]
        ways = dict.fromkeys(("tcp", "udp", "ping", "service", "nodePort", "dns"), "ok")
        now = format_time(datetime.now(UTC))
        line = {
            "contract": 1,
            "record": "Check",
            "startedAt": now,
            "endedAt": now,
            "architecture": "amd64",
            "ping": "ok",
        }
        line |= {"memoryCgroup": True, "cgroupVersion": 2, "freeBytes": 90 << 30, "sizeBytes": 100 << 30}
        line |= {"peers": [{"name": json.loads(peer)["name"], **ways} for peer in peers]}
        text = json.dumps(line)
        log.print(f"{text}\n".encode())
        log.end()
        await self.end(pod, 0, text)

    async def _play(self, pod: Pod, log: Log) -> None:
        container = next(item for item in pod["spec"]["containers"] if item["name"] == CLIENT)
        replay, client = Replay(plan_in(container["args"])), Client.of(pod)
        group = (client.namespace, client.benchmark, replay.barrier)
        barrier = self._barriers.setdefault(group, asyncio.Barrier(replay.parts))
        for scheduled in replay.schedule:
            await self.may_begin(client, scheduled)
            await barrier.wait()
            log.print(replay.begin(scheduled, self.now(pod)))
            await self.may_end(client, scheduled)
            log.print(replay.end(scheduled, self.nanoseconds(client, scheduled)))
        log.end()
        await self.deliver(pod, b"".join(log.lines), len(replay.schedule))
        await self.end(pod, 0, replay.seal)

    async def end(self, pod: Pod, exit_code: int, message: str) -> None:
        """Reports, as a kubelet does, that the only container of a pod has ended."""
        now, succeeded = format_time(self.now(pod)), exit_code == 0
        (status,) = pod["status"]["containerStatuses"]
        ended = {
            "exitCode": exit_code,
            "reason": "Completed" if succeeded else "Error",
            "startedAt": status["state"]["running"]["startedAt"],
            "finishedAt": now,
            "message": message,
        }
        conditions = [
            {"type": name, "status": "False", "reason": "PodCompleted", "lastTransitionTime": now}
            for name in ("Ready", "ContainersReady")
        ]
        containers = [{**status, "ready": False, "started": False, "state": {"terminated": ended}}]
        phase = "Succeeded" if succeeded else "Failed"
        await self.report(pod, {"phase": phase, "conditions": conditions, "containerStatuses": containers})

    async def report(self, pod: Pod, status: Mapping[str, Any]) -> None:
        """Patches a pod's status, unless the pod is gone. Retries while the API server is down."""
        path = PODS.path(pod["metadata"]["namespace"], pod["metadata"]["name"], "status")
        change = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        patch = partial(self.kube.request, "PATCH", path, content_type="application/strategic-merge-patch+json")
        while True:
            try:
                await patch(body=change)
            except (NotFoundError, ConflictError):
                return
            except (aiohttp.ClientError, TimeoutError):
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    @asynccontextmanager
    async def serving(self, address: str, port: int) -> AsyncIterator[None]:
        """Serves logs at this address, as kubelets do."""
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
            with contextlib.suppress(ConnectionResetError):  # the reader has closed the connection
                await log.send(response, follow=follow)
        finally:
            self.following -= follow
        return response


def is_client(pod: Pod) -> bool:
    """Returns whether a pod is a benchmark's client."""
    labels: Mapping[str, str] = pod["metadata"].get("labels", {})
    return labels.get(LABEL_ROLE) == ROLE_CLIENT and LABEL_BENCHMARK in labels


def is_check_client(pod: Pod) -> bool:
    """Returns whether a pod of `kubectl tierbench doctor` sends requests to others."""
    labels: Mapping[str, str] = pod["metadata"].get("labels", {})
    return labels.get(LABEL_CHECK_ROLE) == ASKS


def begin(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Starts a task, and logs the error that ends it."""

    def log_error(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            _logger.error("The task of a pod failed", exc_info=error)

    task = asyncio.create_task(work)
    task.add_done_callback(log_error)
    return task
