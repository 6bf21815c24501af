"""Replaces kubelets: pods run at once, operators as processes on this machine, and clients replay recordings."""

import asyncio
import contextlib
import itertools
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp

from tests.api.server import ApiServer
from tests.operator.player import Client, Player, Pod, begin
from tests.operator.process import Operator, token_of
from tests.operator.relay import Relay
from tierbench.kube.client import ConflictError, Kube, NotFoundError
from tierbench.kube.meta import PODS, format_time, type_of
from tierbench.workloads.plan import ScheduledTrial
from tierbench.workloads.workload import LABEL_BENCHMARK, LABEL_ROLE

_OPERATOR = "operator"
"""The name of the container in an operator's pod."""
HOST = "127.0.0.1"
"""The address of all nodes."""
NOWHERE = "nowhere.invalid/"
"""A registry that has no images."""
_POLL_SECONDS = 0.1
_PIECE_BYTES = 1000
_ANSWER = aiohttp.ClientTimeout(total=10)


class Hold:
    """Holds clients of a benchmark in each trial from a number on, until they may continue."""

    def __init__(self, trial: int) -> None:
        self.at: ScheduledTrial | None = None
        """The trial in which a client is held."""
        self._from = trial
        self._released = asyncio.Event()

    async def wait(self, scheduled: ScheduledTrial) -> None:
        """Returns when a client may end the trial."""
        if scheduled.trial >= self._from and not self._released.is_set():
            self.at = scheduled
            await self._released.wait()

    def step(self) -> None:
        """Lets clients continue to their next trial, and holds them there."""
        self.at = None
        self._released.set()
        self._released = asyncio.Event()

    def release(self) -> None:
        """Lets clients continue without a hold."""
        self._released.set()


class Wait:
    """Keeps containers of pods waiting until it is over, for a reason that their status shows."""

    def __init__(self, reason: str, message: str) -> None:
        self.over = asyncio.Event()
        self._waiting = {"reason": reason, "message": message}

    def status(self, pod: Pod) -> dict[str, Any]:
        """Returns the status of a waiting pod."""
        state = {"state": {"waiting": self._waiting}}
        return {"containerStatuses": [{**_status(container), **state} for container in pod["spec"]["containers"]]}


class Kubelet(Player):
    """Runs every pod that is bound to a node, and writes the output of operators to `folder`."""

    def __init__(self, kube: Kube, server: ApiServer, folder: Path) -> None:
        super().__init__(kube)
        self.operators: dict[str, Operator] = {}
        """Operators by the names of their pods."""
        self.relays: dict[str, Relay] = {}
        """Connections to the API server by the names of the operators' pods."""
        self.holds: dict[tuple[str, str], Hold] = {}
        """Holds by namespace and benchmark."""
        self.durations: dict[tuple[str, str], Callable[[ScheduledTrial], int]] = {}
        """Durations of trials in nanoseconds, by namespace and benchmark."""
        self.waits: dict[tuple[str, str, str], Wait] = {}
        """Waits by namespace, benchmark and role."""
        self.without_power: dict[str, list[Pod]] = {}
        """The nodes without power, each with the changes of its pods that it missed."""
        self._server = server
        self._folder = folder
        self._addresses = (f"10.1.{number // 250}.{number % 250 + 1}" for number in itertools.count())
        self._pod_tasks: dict[str, asyncio.Task[None]] = {}
        self._removals: dict[str, asyncio.Task[None]] = {}

    async def may_end(self, client: Client, scheduled: ScheduledTrial) -> None:
        if hold := self.holds.get((client.namespace, client.benchmark)):
            await hold.wait(scheduled)

    async def deliver(self, pod: Pod, lines: bytes, trials: int) -> None:
        """Pushes lines to the operator that leads, as a client does."""
        volume = next((item for item in pod["spec"]["volumes"] if item["name"] == "collector"), None)
        if volume is None:
            return
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        secret = await self.kube.get(type_of("v1", "Secret"), namespace, volume["secret"]["secretName"])
        headers = {"Authorization": f"Bearer {b64decode(secret['data']['collector-token']).decode()}"}
        received, known = 0, {"wanted": True, "recorded": 0}
        async with aiohttp.ClientSession(headers=headers) as session:
            while known["wanted"] and known["recorded"] < trials:
                for operator in list(self.operators.values()):
                    url = f"https://{HOST}:{operator.collector}/v1/lines/{namespace}/{name}?offset={received}"
                    with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                        piece = lines[received : received + _PIECE_BYTES]
                        async with session.post(url, data=piece, ssl=False, timeout=_ANSWER) as answer:
                            if answer.status == HTTPStatus.OK:
                                known = await answer.json()
                                received = known["received"]
                await asyncio.sleep(_POLL_SECONDS)

    def nanoseconds(self, client: Client, scheduled: ScheduledTrial) -> int:
        duration = self.durations.get((client.namespace, client.benchmark))
        return duration(scheduled) if duration else 0

    def observe(self, pod: Pod, *, deleted: bool) -> None:
        metadata, node = pod["metadata"], pod["spec"].get("nodeName", "")
        if node in self.without_power and not deleted:
            self.without_power[node].append(pod)
            return
        super().observe(pod, deleted=deleted)
        uid: str = metadata["uid"]
        if deleted:
            if pod_task := self._pod_tasks.pop(uid, None):
                pod_task.cancel()
        elif not node:
            return
        elif "deletionTimestamp" in metadata:
            if metadata["deletionGracePeriodSeconds"] == 0 and metadata["name"] in self.operators:
                self.operators[metadata["name"]].process.kill()
            if uid not in self._removals:
                self._removals[uid] = begin(self._remove(pod))
        elif uid not in self._pod_tasks:
            self._pod_tasks[uid] = begin(self._run(pod))

    def power_on(self, node: str) -> None:
        """Restores the power of a node, which then receives the changes of its pods."""
        for pod in self.without_power.pop(node):
            self.observe(pod, deleted=False)

    async def _remove(self, pod: Pod) -> None:
        """Stops the processes of a pod, and then deletes the pod."""
        namespace, name, uid = (pod["metadata"][key] for key in ("namespace", "name", "uid"))
        if pod_task := self._pod_tasks.get(uid):
            pod_task.cancel()
            await asyncio.wait({pod_task})
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        with contextlib.suppress(NotFoundError, ConflictError):
            await self.kube.request("DELETE", PODS.path(namespace, name), body=body)

    async def _run(self, pod: Pod) -> None:
        containers = pod["spec"]["containers"]
        if containers[0]["name"] == _OPERATOR:
            await self._operate(pod)
            return
        labels = pod["metadata"].get("labels", {})
        key = (pod["metadata"]["namespace"], labels.get(LABEL_BENCHMARK, ""), labels.get(LABEL_ROLE, ""))
        wait = self.waits.get(key)
        if any(container["image"].startswith(NOWHERE) for container in containers):
            wait = Wait("ErrImagePull", "no such host")
        if wait:
            await self.report(pod, wait.status(pod))
            await wait.over.wait()
        await self.report(pod, self._runs(pod))

    async def _operate(self, pod: Pod) -> None:
        """Restarts the operator each time it ends, and reports whether it is ready."""
        name = pod["metadata"]["name"]
        folder, relay, status = self._folder / name, Relay(self._server.url), self._runs(pod)
        folder.mkdir()
        token = await asyncio.to_thread(token_of, self._server, pod["metadata"]["namespace"], pod["spec"])
        self.relays[name] = relay
        async with relay.listening():
            for restarts in itertools.count():
                operator = self.operators[name] = await asyncio.to_thread(self._begin, pod, folder, token, relay.url)
                try:
                    ready: bool | None = None
                    while operator.process.poll() is None:
                        if (found := await asyncio.to_thread(operator.is_ready)) != ready:
                            ready = found
                            await self.report(pod, _made_ready(status, restarts, ready=ready))
                        await asyncio.sleep(_POLL_SECONDS)
                finally:
                    del self.operators[name]
                    await asyncio.to_thread(operator.end)

    def _begin(self, pod: Pod, folder: Path, token: str, url: str) -> Operator:
        own = {"POD_NAME": pod["metadata"]["name"], "POD_NAMESPACE": pod["metadata"]["namespace"]}
        return Operator(self._server, folder, token, pod["spec"], own, url)

    def _runs(self, pod: Pod) -> dict[str, Any]:
        """Returns the status of a pod whose containers all run."""
        now, spec = format_time(self.now(pod)), pod["spec"]
        runs = {"ready": True, "started": True, "state": {"running": {"startedAt": now}}}
        done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
        return {
            "phase": "Running",
            "startTime": now,
            "hostIP": HOST,
            "podIP": next(self._addresses),
            "conditions": _conditions(now, ready=True),
            "containerStatuses": [{**_status(container), **runs} for container in spec["containers"]],
            "initContainerStatuses": [
                {**_status(container), "ready": True, "state": done} for container in spec.get("initContainers", ())
            ],
        }


def _status(container: Mapping[str, Any]) -> dict[str, Any]:
    image = container["image"]
    return {"name": container["name"], "image": image, "imageID": image, "ready": False, "restartCount": 0}


def _conditions(now: str, *, ready: bool) -> list[dict[str, Any]]:
    values = {"Initialized": True, "ContainersReady": ready, "Ready": ready}
    return [{"type": name, "status": str(value), "lastTransitionTime": now} for name, value in values.items()]


def _made_ready(status: Mapping[str, Any], restarts: int, *, ready: bool) -> dict[str, Any]:
    (container,) = status["containerStatuses"]
    return {
        **status,
        "conditions": _conditions(format_time(datetime.now(UTC)), ready=ready),
        "containerStatuses": [{**container, "restartCount": restarts, "ready": ready}],
    }
