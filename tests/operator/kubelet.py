"""Stands in for kubelets: pods run at once, the operator's as a process here, clients by what was recorded of them."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.api.server import ApiServer
from tests.operator.player import Client, Player, Pod, begin
from tests.operator.process import HERE, Operator, token_of
from tests.operator.relay import Relay
from tierbench.kube.client import Kube
from tierbench.kube.clock import format_time
from tierbench.kube.errors import ConflictError, NotFoundError
from tierbench.kube.resources import PODS
from tierbench.workloads.names import LABEL_BENCHMARK, LABEL_ROLE
from tierbench.workloads.plan import ScheduledTrial

_OPERATOR = "operator"
"""The container of an operator's pod."""
HOST = "127.0.0.1"
"""Where the nodes are."""
_LOOK_SECONDS = 0.1


class Hold:
    """Clients of a benchmark stand in each trial from a number on, until they may go on."""

    def __init__(self, trial: int) -> None:
        self.at: ScheduledTrial | None = None
        """Where one stands."""
        self._from = trial
        self._free = asyncio.Event()

    async def wait(self, scheduled: ScheduledTrial) -> None:
        """Returns when a client may end the trial."""
        if scheduled.trial >= self._from and not self._free.is_set():
            self.at = scheduled
            await self._free.wait()

    def step(self) -> None:
        """They go on to their next trial, and stand there."""
        self.at = None
        self._free.set()
        self._free = asyncio.Event()

    def release(self) -> None:
        """They stand no more."""
        self._free.set()


class Wait:
    """Containers of pods wait until it is over, and say for what."""

    def __init__(self, reason: str, message: str) -> None:
        self.over = asyncio.Event()
        self._waiting = {"reason": reason, "message": message}

    def status(self, pod: Pod) -> dict[str, Any]:
        """That of a pod which waits."""
        state = {"state": {"waiting": self._waiting}}
        return {"containerStatuses": [{**_status(container), **state} for container in pod["spec"]["containers"]]}


class Kubelet(Player):
    """Runs every pod that is bound to a node. `folder` has what operators print."""

    def __init__(self, kube: Kube, server: ApiServer, folder: Path) -> None:
        super().__init__(kube)
        self.operators: dict[str, Operator] = {}
        """By the names of their pods."""
        self.relays: dict[str, Relay] = {}
        """Their ways to the API server, likewise."""
        self.holds: dict[tuple[str, str], Hold] = {}
        """By namespace and benchmark."""
        self.durations: dict[tuple[str, str], Callable[[ScheduledTrial], int]] = {}
        """Of trials, in nanoseconds, by namespace and benchmark."""
        self.waits: dict[tuple[str, str, str], Wait] = {}
        """By namespace, benchmark and role."""
        self.dark: dict[str, list[Pod]] = {}
        """Nodes without power, and what they do not see meanwhile of their pods."""
        self.paths: dict[str, str] = {}
        """Where the modules of an operator's image are, if not here."""
        self._server = server
        self._folder = folder
        self._addresses = (f"10.1.{number // 250}.{number % 250 + 1}" for number in itertools.count())
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Task[None]] = {}

    async def may_end(self, client: Client, scheduled: ScheduledTrial) -> None:
        if hold := self.holds.get((client.namespace, client.benchmark)):
            await hold.wait(scheduled)

    def nanoseconds(self, client: Client, scheduled: ScheduledTrial) -> int:
        took = self.durations.get((client.namespace, client.benchmark))
        return took(scheduled) if took else 0

    def see(self, pod: Pod, *, deleted: bool) -> None:
        metadata, node = pod["metadata"], pod["spec"].get("nodeName", "")
        if node in self.dark and not deleted:
            self.dark[node].append(pod)
            return
        super().see(pod, deleted=deleted)
        uid: str = metadata["uid"]
        if deleted:
            if life := self._lives.pop(uid, None):
                life.cancel()
        elif not node:
            return
        elif "deletionTimestamp" in metadata:
            if metadata["deletionGracePeriodSeconds"] == 0 and metadata["name"] in self.operators:
                self.operators[metadata["name"]].process.kill()
            if uid not in self._ends:
                self._ends[uid] = begin(self._remove(pod))
        elif uid not in self._lives:
            self._lives[uid] = begin(self._live(pod))

    def power_on(self, node: str) -> None:
        """The node sees what has become of its pods."""
        for pod in self.dark.pop(node):
            self.see(pod, deleted=False)

    async def _remove(self, pod: Pod) -> None:
        """Ends what runs of a pod, and then the pod."""
        namespace, name, uid = (pod["metadata"][key] for key in ("namespace", "name", "uid"))
        if life := self._lives.get(uid):
            life.cancel()
            await asyncio.wait({life})
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        with contextlib.suppress(NotFoundError, ConflictError):
            await self.kube.request("DELETE", PODS.path(namespace, name), body=body)

    async def _live(self, pod: Pod) -> None:
        containers = pod["spec"]["containers"]
        if containers[0]["name"] == _OPERATOR:
            await self._operate(pod)
            return
        labels = pod["metadata"].get("labels", {})
        whose = (pod["metadata"]["namespace"], labels.get(LABEL_BENCHMARK, ""), labels.get(LABEL_ROLE, ""))
        if wait := self.waits.get(whose):
            await self.report(pod, wait.status(pod))
            await wait.over.wait()
        await self.report(pod, self._runs(pod))

    async def _operate(self, pod: Pod) -> None:
        """Starts the operator again whenever it has ended, and reports whether it is ready."""
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
                        await asyncio.sleep(_LOOK_SECONDS)
                finally:
                    del self.operators[name]
                    await asyncio.to_thread(operator.end)

    def _begin(self, pod: Pod, folder: Path, token: str, url: str) -> Operator:
        own = {"POD_NAME": pod["metadata"]["name"], "POD_NAMESPACE": pod["metadata"]["namespace"]}
        path = self.paths.get(pod["spec"]["containers"][0]["image"], HERE)
        return Operator(self._server, folder, token, pod["spec"], own, url, path)

    def _runs(self, pod: Pod) -> dict[str, Any]:
        """The status of a pod whose containers all run."""
        now, spec = format_time(datetime.now(UTC)), pod["spec"]
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
