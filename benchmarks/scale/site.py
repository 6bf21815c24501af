"""Creates a cluster with one real node, and installs the operator on that node with the chart."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.scale.audit import Audit
from benchmarks.scale.connection import connected
from benchmarks.scale.kubelet import CLIENTS, PORT, Kubelet
from benchmarks.scale.nodes import simulated
from benchmarks.scale.peer import run_peer
from benchmarks.scale.process import Process
from benchmarks.scale.waits import ready_after
from tests.cluster import Cluster, binaries, images
from tests.e2e.kubectl import Kubectl, wait_for
from tests.e2e.operator_release import Release, pids
from tierbench.kube.client import Kube

NAMESPACE: Final = "scale"
_RELEASE: Final = "tierbench"
_ACCOUNT: Final = f"system:serviceaccount:{_RELEASE}:{_RELEASE}"
_NODE: Final = "operator-1"
_NODES: Final = Path(__file__).parent / "nodes.toml"
_STAGES: Final = Path(__file__).parent / "stages.yaml"
_IMAGES: Final = ("operator",)
_MANAGED: Final = "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake"
_READY_SECONDS: Final = 180


@dataclass(frozen=True)
class Site:
    """`kube` connects as the administrator, and `operator` as the operator. Only the operator may write results."""

    cluster: Cluster
    release: Release
    kubectl: Kubectl
    kube: Kube
    operator: Kube
    kubelet: Kubelet
    audit: Audit

    async def peer(self, task: str, **arguments: Any) -> tuple[float, Any]:
        """Runs a bare program as the operator, and on its node. Returns the seconds of its process, and its result."""
        enter = partial(self.cluster.cgroups.enter, f"{_NODE}/peer")
        return await run_peer(self.cluster.kubeconfig, _ACCOUNT, task, arguments, enter)

    def nodes(self, classes: dict[str, int]) -> AbstractAsyncContextManager[None]:
        """Keeps this many simulated nodes of each class until the context ends."""
        return simulated(self.kube, self.kubectl, classes)

    async def create_namespaces(self, *names: str) -> None:
        """Creates empty namespaces."""
        for name in names:
            await asyncio.to_thread(self.kubectl.inside(name).create_namespace)

    async def stop(self) -> None:
        """Ends the operator, and waits until its pod is gone."""
        await self.scale(0)

    async def begin(self) -> None:
        """Starts the operator, and waits until its pod runs, ready or not."""
        await self.scale(1)

    async def scale(self, replicas: int) -> None:
        """Scales the operator, and waits until this many pods of it run, ready or not."""
        await asyncio.to_thread(self._scale, replicas)

    async def restart(self) -> Process:
        """Restarts the operator, and waits until it is ready."""
        await self.stop()
        await self.begin()
        if await self.seconds_to_ready() is None:
            raise RuntimeError(f"the operator did not become ready: {await asyncio.to_thread(self.restarts)} restarts")
        return await self.process()

    def _scale(self, replicas: int) -> None:
        kubectl = self.release.kubectl
        kubectl("scale", "deployment", self.release.name, f"--replicas={replicas}")
        label = f"app.kubernetes.io/instance={self.release.name}"

        def reached() -> bool:
            pods = kubectl.list("pods", label)
            return len(pods) == replicas and all(pod["status"]["phase"] == "Running" for pod in pods)

        wait_for(f"{replicas} pods of the operator", reached, 60)

    async def seconds_to_ready(self) -> float | None:
        """Returns the seconds from the start of the operator's process until it reports that it is ready.

        Returns None if it restarts or is slow. The peer has no pod: sandbox, volumes and probes take a second or two.
        """
        process = await self.process()
        return await ready_after(await self.address(), process, _READY_SECONDS)

    async def address(self) -> str:
        """Returns the address of the operator's pod."""
        return str((await asyncio.to_thread(self._pod))["status"]["podIP"])

    def restarts(self) -> int:
        """Returns how often the operator's container restarted."""
        return _restarts(self._pod())

    def _pod(self) -> dict[str, Any]:
        return self.release.kubectl.get("pod", self.release.pod)

    async def process(self) -> Process:
        """Returns the operator's process."""

        def found() -> list[int]:
            return pids(self.cluster, self.release.kubectl.namespace, self.release.pod, "tierbench-operator")

        return Process((await asyncio.to_thread(wait_for, "the operator's process", found, 30))[-1])

    async def metric(self, name: str) -> float:
        """Returns a metric of the operator, summed over all labels."""
        text = await asyncio.to_thread(self.release.metrics)
        lines = (line.rpartition(" ") for line in text.splitlines() if line.startswith((f"{name} ", f"{name}{{")))
        return sum(float(value) for _, _, value in lines)


def _restarts(pod: Mapping[str, Any]) -> int:
    return sum(item["restartCount"] for item in pod["status"].get("containerStatuses", ()))


@asynccontextmanager
async def site(scenario: str, memory: str = "") -> AsyncIterator[Site]:
    """Creates the cluster of a scenario, and deletes it at the end. `memory` replaces the chart's limit."""
    cluster = Cluster(f"{os.environ.get('CLUSTER_NAME', 'tierbench')}-scale-{scenario}")
    try:
        await asyncio.to_thread(_up, cluster)
        path = f"{cluster.binaries}:{os.environ['PATH']}"
        environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PATH": path}
        release = Release(_RELEASE, Kubectl(environment, _RELEASE))
        await asyncio.to_thread(release.install, *([f"operator.resources.limits.memory={memory}"] if memory else []))
        await asyncio.to_thread(_start_kwok, cluster)
        async with connected(cluster.kubeconfig) as kube, connected(cluster.kubeconfig, _ACCOUNT) as operator:
            kubelet, audit = Kubelet(kube), Audit(cluster.control_plane.audit_log)
            async with kubelet.serving(cluster.addresses.host, PORT), asyncio.TaskGroup() as group:
                playing = group.create_task(kubelet.run(CLIENTS))
                found = Site(cluster, release, Kubectl(environment, NAMESPACE), kube, operator, kubelet, audit)
                await found.create_namespaces(NAMESPACE)
                yield found
                playing.cancel()
    finally:
        await asyncio.to_thread(cluster.down)


def _up(cluster: Cluster) -> None:
    binaries.tool("kwok")
    cluster.down()
    cluster.up(_NODES, audited=_ACCOUNT)
    cluster.load([images.build(name) for name in _IMAGES])


def _start_kwok(cluster: Cluster) -> None:
    """Starts kwok next to the control plane, so that it ends with the cluster."""
    plane = cluster.control_plane
    plane.machine.start(
        "kwok",
        str(binaries.tool("kwok")),
        f"--kubeconfig={plane.kubeconfig('admin')}",
        f"--config={_STAGES}",
        _MANAGED,
        f"--node-ip={cluster.addresses.host}",
        f"--node-port={PORT}",
        "--node-lease-duration-seconds=40",
        "--cidr=10.0.0.0/8",
    )
