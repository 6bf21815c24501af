"""Runs the operator's tests on the built-in cluster of tests/e2e, with real kubelets and containers."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tests.cluster import Cluster
from tests.e2e.benchmarks import Running
from tests.e2e.kubectl import wait_for
from tests.e2e.operator_release import Release, image_values
from tests.e2e.strike import held, open_trials, strike
from tests.operator.site import Json, Site

_SLOW = "cloud-1"
_MOST_STEPS = 8
_LINK, _DISK = "300mbit", 20 * 2**20


@dataclass(frozen=True)
class OnCluster(Site):
    """A built-in cluster with a release of the chart."""

    cluster: Cluster
    release: Release

    @contextmanager
    def starting_server(self, running: Running, body: Json) -> Iterator[None]:
        running.kubectl.apply(body)
        running.wait_for_pod("server", running=False)
        yield

    @contextmanager
    def holding_clients(self, running: Running, body: Json, *, trial: int = 1) -> Iterator[None]:
        def is_open() -> bool:
            return any(one.number >= trial for one in open_trials(running, self.cluster))

        with ExitStack() as stack:
            with self.slow(running):
                running.kubectl.apply(body)
                wait_for(f"trial {trial} of {running.name}", is_open, 120)
                stack.enter_context(held(running, self.cluster))
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
        with self.slow(running):
            running.kubectl.apply(body)
            strike(running, self.cluster, fault, trial=trial, phases=phases)

    def steps(self, running: Running, body: Json) -> Iterator[str]:
        running.kubectl.apply(body)
        seen: set[str] = set()

        def new() -> str:
            status = running.status
            trials = (status.get("current") or {}).get("trials")
            step = f"{status.get('phase')} {status.get('progress')} {trials}"
            return "" if step in seen and status.get("phase") != "Complete" else step

        with self.slow(running):
            while running.status.get("phase") != "Complete" and len(seen) < _MOST_STEPS:
                step = wait_for("a step not seen before", new, 90)
                seen.add(step)
                yield step

    def pids(self, pod: str) -> list[int]:
        return self.release.pids(self.cluster, pod)

    def kill(self, pod: str | None = None) -> None:
        self.kill_and_delete(pod or self.release.pod)

    def kill_and_delete(self, pod: str) -> None:
        self.release.kill(self.cluster, pod)

    @contextmanager
    def cut_off(self, pod: str) -> Iterator[None]:
        processes = self.cluster.pod_processes(self.release.kubectl.namespace, pod)
        # The operator may end, but not the pause process.
        pause = next(process.pid for process in processes if process.name == "pause")
        network = ["nsenter", "--net", f"--target={pause}", "iptables"]
        subprocess.run([*network, "--insert", "OUTPUT", "--jump", "DROP"], check=True)
        try:
            yield
        finally:
            subprocess.run([*network, "--delete", "OUTPUT", "--jump", "DROP"], check=True)

    @contextmanager
    def unknown_image(self, running: Running) -> Iterator[str]:
        image = "nowhere.invalid/nginx:none"
        self.release.install(*image_values("nginx", image))
        try:
            yield image
        finally:
            self.release.install()

    @contextmanager
    def slow(self, running: Running) -> Iterator[None]:
        with self.cluster.link(_SLOW, "50mbit"):
            yield

    def truncate(self, running: Running, trials: int) -> None:
        pod = running.wait_for_pod("client", running=False)
        logs = self.cluster.node(pod["spec"]["nodeName"]).folder / "root" / "var" / "log" / "pods"
        (log,) = logs.glob(f"*_{pod['metadata']['uid']}/client/*.log")
        lines = log.read_bytes().splitlines(keepends=True)
        starts = [number for number, line in enumerate(lines, start=1) if b'"TrialStarted"' in line]
        os.truncate(log, sum(map(len, lines[: starts[trials]])) + 10)

    @contextmanager
    def without_api_server(self) -> Iterator[None]:
        self.cluster.stop("apiserver")
        try:
            yield
        finally:
            self.cluster.start("apiserver")
            self.cluster.wait_for_api()
            wait_for("every node is Ready again", self.cluster.ready, 150)

    @contextmanager
    def without_power(self, node: str) -> Iterator[None]:
        self.cluster.signal(node, signal.SIGKILL)
        try:
            wait_for(f"{node} is not Ready", lambda: not self.cluster.ready(), 60)
            yield
        finally:
            self.cluster.start(node)
            wait_for("every node is Ready again", self.cluster.ready, 90)

    @contextmanager
    def without_logs(self, node: str) -> Iterator[None]:
        with self.cluster.edge("no-logs", node):
            yield

    @contextmanager
    def crossover(self, running: Running) -> Iterator[None]:
        """Gives cloud-1 a slow link and jetson-1 a slow disk. Large files do not fit into its page cache."""
        with self.cluster.link("cloud-1", _LINK), _slow_disk(self.cluster, "jetson-1"):
            yield

    def metrics_address(self) -> str:
        address: str = self.release.kubectl.get("pod", self.release.pod)["status"]["podIP"]
        return f"{address}:8080"


@contextmanager
def _slow_disk(cluster: Cluster, name: str) -> Iterator[None]:
    """Limits reads of a node's containers, including new ones, to _DISK bytes per second."""
    node, done = cluster.node(name), threading.Event()

    def throttle() -> None:
        while not done.wait(0.2):
            cluster.cgroups.throttle(name, node.disk, _DISK)

    thread = threading.Thread(target=throttle)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        cluster.cgroups.throttle(name, node.disk, node.profile.disk_read)
