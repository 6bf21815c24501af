"""Runs a control plane with scripted nodes, pods and clients. No container runs, and trials take no time."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from tests.api.connection import connected
from tests.api.server import ApiServer, api_server, controllers
from tests.cluster import binaries
from tests.e2e.benchmarks import HARDWARE, Running, node_class
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import Release
from tests.operator.kubelet import HOST, Hold, Kubelet, Wait
from tests.operator.site import Json, Site
from tests.ports import free_ports
from tests.timeouts import TIMEOUT_FACTOR
from tierbench.kube.client import Kube
from tierbench.kube.meta import format_time
from tierbench.workloads.plan import ScheduledTrial

_T = TypeVar("_T")
_MERGE = {"Content-Type": "application/merge-patch+json"}
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Loop:
    """An event loop in its own thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Runs a coroutine in the loop, and returns its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(120 * TIMEOUT_FACTOR)

    def call(self, function: Callable[[], object]) -> None:
        """Calls a function in the loop."""

        async def called() -> None:
            function()

        self.do(called())

    def close(self) -> None:
        """Cancels its tasks, and stops it."""
        self.do(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@dataclass(frozen=True)
class Scripted(Site):
    """An API server with controllers and a scheduler, and the kubelet of all nodes."""

    server: ApiServer
    loop: Loop
    kubelet: Kubelet
    release: Release

    @contextmanager
    def held(self, running: Running, trial: int) -> Iterator[Hold]:
        """Holds clients of a benchmark in each trial from this number on."""
        hold, key = Hold(trial), (running.kubectl.namespace, running.name)
        self.loop.call(lambda: self.kubelet.holds.update({key: hold}))
        try:
            yield hold
        finally:
            self.loop.call(lambda: self.kubelet.holds.pop(key))
            self.loop.call(hold.release)

    @contextmanager
    def waiting(self, running: Running, role: str, reason: str, message: str = "") -> Iterator[None]:
        """Keeps containers of a benchmark's pods of this role waiting, for a reason that their status shows."""
        key, wait = (running.kubectl.namespace, running.name, role), Wait(reason, message)
        self.loop.call(lambda: self.kubelet.waits.update({key: wait}))
        try:
            yield
        finally:
            self.loop.call(lambda: self.kubelet.waits.pop(key))
            self.loop.call(wait.over.set)

    @contextmanager
    def starting_server(self, running: Running, body: Json) -> Iterator[None]:
        with self.waiting(running, "server", "ContainerCreating"):
            running.kubectl.apply(body)
            running.wait_for_pod("server", running=False)
            yield

    @contextmanager
    def holding_clients(self, running: Running, body: Json, *, trial: int = 1) -> Iterator[None]:
        with self.held(running, trial) as hold:
            running.kubectl.apply(body)
            wait_for(f"trial {trial} of {running.name}", lambda: hold.at, 120)
            yield

    def strike(
        self,
        running: Running,
        body: Json,
        fault: Callable[[], object],
        *,
        trial: int = 1,
        phases: tuple[str, ...] = ("Complete",),
    ) -> None:
        with self.holding_clients(running, body, trial=trial):
            fault()
        running.wait_for_phase(*phases)

    def steps(self, running: Running, body: Json) -> Iterator[str]:
        with self.held(running, 1) as hold:
            with self.starting_server(running, body):
                yield "the server starts"
            while (at := self._next(running, hold)) != "Complete":
                yield at
                self.loop.call(hold.step)
        yield "Complete"

    def _next(self, running: Running, hold: Hold) -> str:
        """Returns where a client is held, or that the run is complete."""

        def reached() -> str:
            return str(hold.at) if hold.at else "Complete" if running.status.get("phase") == "Complete" else ""

        return wait_for(f"a trial of {running.name}, or the end of the run", reached, 120)

    def pids(self, pod: str) -> list[int]:
        return [self.kubelet.operators[pod].process.pid] if pod in self.kubelet.operators else []

    def kill(self, pod: str | None = None) -> None:
        pod = pod or self.release.pod
        before = wait_for(f"the operator in {pod}", lambda: self.pids(pod))
        os.kill(before[0], signal.SIGKILL)
        wait_for(f"another operator in {pod}", lambda: (found := self.pids(pod)) and found != before)

    def kill_and_delete(self, pod: str) -> None:
        self.release.kubectl("delete", "pod", pod, "--grace-period=0", "--force")

    @contextmanager
    def cut_off(self, pod: str) -> Iterator[None]:
        relay = self.kubelet.relays[pod]
        self.loop.call(relay.cut)
        try:
            yield
        finally:
            self.loop.call(relay.join)

    @contextmanager
    def unknown_image(self, running: Running) -> Iterator[str]:
        image = "nowhere.invalid/nginx:none"
        with self.waiting(running, "server", "ImagePullBackOff", f'Back-off pulling image "{image}"'):
            yield image

    @contextmanager
    def slow(self, running: Running) -> Iterator[None]:
        with self.taking(running, lambda scheduled: 10**10 + scheduled.trial * 10**7):
            yield

    @contextmanager
    def taking(self, running: Running, nanoseconds: Callable[[ScheduledTrial], int]) -> Iterator[None]:
        """Sets the duration of a benchmark's trials by its clients' clock."""
        key = (running.kubectl.namespace, running.name)
        self.loop.call(lambda: self.kubelet.durations.update({key: nanoseconds}))
        try:
            yield
        finally:
            self.loop.call(lambda: self.kubelet.durations.pop(key))

    def truncate(self, running: Running, trials: int) -> None:
        pod = running.wait_for_pod("client", running=False)
        log = self.kubelet.logs[running.kubectl.namespace, pod["metadata"]["name"]]
        starts = [number for number, line in enumerate(log.lines, start=1) if b'"TrialStarted"' in line]
        log.lines[starts[trials] :] = [log.lines[starts[trials]][:10]]

    @contextmanager
    def without_api_server(self) -> Iterator[None]:
        os.kill(self.server.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.server.pid, signal.SIGCONT)

    @contextmanager
    def without_power(self, node: str) -> Iterator[None]:
        self.loop.call(lambda: self.kubelet.without_power.update({node: []}))
        report_node(self.server, node, ready=False, since=timedelta(minutes=1))
        try:
            yield
        finally:
            report_node(self.server, node, ready=True)
            self.loop.call(lambda: self.kubelet.power_on(node))

    @contextmanager
    def without_logs(self, node: str) -> Iterator[None]:
        before = self.server.request("GET", f"/api/v1/nodes/{node}")["status"]["daemonEndpoints"]
        (closed,) = free_ports(1)
        set_endpoints(self.server, node, {"kubeletEndpoint": {"Port": closed}})
        try:
            yield
        finally:
            set_endpoints(self.server, node, before)

    @contextmanager
    def away(self, node: str) -> Iterator[None]:
        """Keeps the kubelet of a node from reporting in the context. Its logs cannot be read, either."""
        with self.without_logs(node):
            report_node(self.server, node, ready=False)
            yield
        report_node(self.server, node, ready=True)

    @contextmanager
    def clock_ahead(self, node: str, by: timedelta) -> Iterator[None]:
        """Sets the clock of a node ahead in the context."""
        self.loop.call(lambda: self.kubelet.ahead.update({node: by}))
        try:
            yield
        finally:
            self.loop.call(lambda: self.kubelet.ahead.pop(node))

    @contextmanager
    def crossover(self, running: Running) -> Iterator[None]:
        """Sets durations for cloud and jetson-nano: for small files, for large files, and for the size between them."""
        seconds = {1: 0.8, 2: 6.0, 3: 0.6, 4: 12.0, 5: 2.2, 6: 3.0}
        with self.taking(running, lambda scheduled: round(seconds[scheduled.case] * 10**9) + scheduled.trial * 10**6):
            yield

    def metrics_address(self) -> str:
        return f"{HOST}:{self.kubelet.operators[self.release.pod].port}"

    def collector_address(self) -> str:
        """Returns host and port of the operator's collector."""
        return f"{HOST}:{self.kubelet.operators[self.release.pod].collector}"


@contextmanager
def scripted(folder: Path) -> Iterator[Scripted]:
    """Starts the control plane with its nodes, and installs a release of the chart."""
    loop = Loop()
    try:
        with api_server(folder) as server:
            path = f"{binaries.build(binaries.asked())}:{os.environ['PATH']}"
            environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig), "PATH": path, "HOME": str(folder)}
            release = Release("tierbench", Kubectl(environment, "tierbench"))
            (port,) = free_ports(1)
            for name, hardware in HARDWARE.items():
                _add_node(server, f"{name.partition('-')[0]}-1", hardware, port)
            kubelet, stack = loop.do(_kubelet(server, folder, port))
            try:
                with ThreadPoolExecutor(1) as pool:
                    installed = pool.submit(release.install)
                    wait_for("the definitions", lambda: installed.done() or _are_served(server))
                    with controllers(server):
                        installed.result()
                        release.kubectl.apply(*(node_class(name, hw=hardware) for name, hardware in HARDWARE.items()))
                        yield Scripted(server, loop, kubelet, release)
            finally:
                loop.do(stack.aclose())
    finally:
        loop.close()


async def _kubelet(server: ApiServer, folder: Path, port: int) -> tuple[Kubelet, AsyncExitStack]:
    """Starts the kubelet. Returns it with the stack that stops it."""
    stack = AsyncExitStack()
    kubelet = Kubelet(Kube(await stack.enter_async_context(connected(server))), server, folder)
    await stack.enter_async_context(kubelet.serving(HOST, port))
    watching = asyncio.create_task(kubelet.run(""))
    stack.callback(watching.cancel)
    return kubelet, stack


def _add_node(server: ApiServer, name: str, hardware: str, port: int) -> None:
    """Creates a node that is Ready."""
    labels = {"hw": hardware, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    server.request("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
    capacity = {"cpu": "8", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    status = {
        "addresses": [{"type": "InternalIP", "address": HOST}, {"type": "Hostname", "address": name}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "capacity": capacity,
        "allocatable": capacity,
        "nodeInfo": {
            "architecture": "amd64",
            "kernelVersion": "6.12.47",
            "osImage": "Debian GNU/Linux 13 (trixie)",
            "kubeletVersion": "v1.34.4",
            "containerRuntimeVersion": "containerd://2.1.4",
            "operatingSystem": "linux",
            **dict.fromkeys(("bootID", "machineID", "systemUUID", "kubeProxyVersion"), ""),
        },
    }
    server.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, _MERGE)
    report_node(server, name, ready=True)
    server.request("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, _MERGE)


def set_endpoints(server: ApiServer, name: str, endpoints: Json) -> None:
    """Sets the port at which the API server reaches the kubelet of a node."""
    server.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"daemonEndpoints": endpoints}}, _MERGE)


def report_node(server: ApiServer, name: str, *, ready: bool, since: timedelta = timedelta()) -> None:
    """Reports whether a node is Ready, as its kubelet or the node lifecycle controller does."""
    now = format_time(datetime.now(UTC) - since)
    state = {"type": "Ready", "status": "True" if ready else "Unknown", "reason": "Reported"}
    conditions = [{**state, "lastHeartbeatTime": now, "lastTransitionTime": now}]
    server.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": conditions}}, _MERGE)


def _are_served(server: ApiServer) -> bool:
    """Returns whether the API server serves all CRDs."""
    found = server.request("GET", _CRDS)["items"]
    return bool(found) and all(
        any(
            item["type"] == "Established" and item["status"] == "True"
            for item in crd.get("status", {}).get("conditions") or ()
        )
        for crd in found
    )
