"""Defines what the operator's tests need from a cluster, with scripted kubelets or with real ones."""

import os
import secrets
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from urllib.request import urlopen

from tests.cluster.processes import Process
from tests.e2e.benchmarks import Running
from tests.e2e.kubectl import ANSWER_SECONDS, Kubectl, wait_for
from tests.e2e.operator_release import Release

Json = dict[str, Any]


class Site(ABC):
    """A cluster with a release of the chart, and a node of each class of tests.e2e.benchmarks.HARDWARE."""

    release: Release

    def kubectl(self, namespace: str) -> Kubectl:
        """Returns kubectl for a namespace."""
        return self.release.kubectl.inside(namespace)

    @contextmanager
    def namespace(self, words: str, security: str = "privileged") -> Iterator[Kubectl]:
        """Creates a namespace with this Pod Security Standard, and deletes it with its objects at the end."""
        kubectl = self.kubectl(f"t-{words.replace('_', '-')[:32].rstrip('-')}-{secrets.token_hex(3)}")
        kubectl.create_namespace(security)
        try:
            yield kubectl
        finally:
            kubectl("delete", "filetransferbenchmarks,brokerbenchmarks,networkbenchmarks", "--all", "--wait")
            kubectl("delete", "namespace", kubectl.namespace, "--wait=false")

    @abstractmethod
    def starting_server(self, running: Running, body: Json) -> AbstractContextManager[None]:
        """Applies a benchmark. In the context, the pod of its server does not run yet."""

    @abstractmethod
    def holding_clients(self, running: Running, body: Json, *, trial: int = 1) -> AbstractContextManager[None]:
        """Applies a benchmark. In the context, its clients are held in this trial or in a later one."""

    @abstractmethod
    def strike(
        self,
        running: Running,
        body: Json,
        fault: Callable[[], object],
        *,
        trial: int = 1,
        phases: tuple[str, ...] = ("Complete",),
    ) -> None:
        """Applies a benchmark, causes a fault while its clients are held, and waits until it has one of the phases.

        The clients' own timestamps show that the fault fell into a trial.
        """

    @abstractmethod
    def steps(self, running: Running, body: Json) -> Iterator[str]:
        """Applies a benchmark, and yields at each visible step until it is Complete, with its clients held."""

    @abstractmethod
    def pids(self, pod: str) -> list[int]:
        """Returns the pids on this machine of the operator's processes in a pod."""

    @abstractmethod
    def kill(self, pod: str | None = None) -> None:
        """Kills the operator with SIGKILL, and waits until its container restarts."""

    @abstractmethod
    def kill_and_delete(self, pod: str) -> None:
        """Kills the operator in a pod with SIGKILL, and deletes the pod."""

    @abstractmethod
    def cut_off(self, pod: str) -> AbstractContextManager[None]:
        """Keeps the requests of an operator from the API server in the context."""

    @abstractmethod
    def unknown_image(self, running: Running) -> AbstractContextManager[str]:
        """Makes the image of a file server impossible to pull in the context. Yields its name."""

    @abstractmethod
    def slow(self, running: Running) -> AbstractContextManager[None]:
        """Makes trials of a benchmark with its server on the cloud-like node take far longer in the context."""

    @abstractmethod
    def truncate(self, running: Running, trials: int) -> None:
        """Truncates the log of a client that has ended, within the trial after this number of trials."""

    @abstractmethod
    def without_api_server(self) -> AbstractContextManager[None]:
        """Keeps the API server from responding in the context."""

    @abstractmethod
    def without_power(self, node: str) -> AbstractContextManager[None]:
        """Cuts the power of a node in the context, so that it is not Ready."""

    @abstractmethod
    def without_logs(self, node: str) -> AbstractContextManager[None]:
        """Closes the port of a node's kubelet in the context, so that no log can be read."""

    @abstractmethod
    def crossover(self, running: Running) -> AbstractContextManager[None]:
        """Makes large files take longer from the jetson-like node, and small ones from the cloud-like one."""

    @abstractmethod
    def metrics_address(self) -> str:
        """Returns host and port of the operator's /metrics."""

    def metrics(self) -> str:
        """Returns the text of the operator's /metrics."""
        with urlopen(f"http://{self.metrics_address()}/metrics", timeout=ANSWER_SECONDS) as answer:
            text: str = answer.read().decode()
        return text

    @contextmanager
    def without_operator(self) -> Iterator[None]:
        """Runs no operator in the context."""
        self.scale(0)
        try:
            yield
        finally:
            self.scale(1)

    def scale(self, replicas: int) -> None:
        """Scales the operator's Deployment, and waits until the replicas are ready."""
        self.release.kubectl("scale", "deployment", self.release.name, f"--replicas={replicas}")
        self.wait_for_operators(replicas)

    def wait_for_operators(self, number: int) -> None:
        """Waits until there are this many operators, and all are ready."""
        label = f"app.kubernetes.io/instance={self.release.name}"

        def ready() -> bool:
            statuses = [pod["status"].get("containerStatuses", ()) for pod in self.release.kubectl.list("pods", label)]
            return [[item["ready"] for item in status] for status in statuses] == [[True]] * number

        wait_for(f"{number} operators are ready", ready)

    @contextmanager
    def stopped(self, pod: str) -> Iterator[None]:
        """Stops the operator with SIGSTOP, and continues it at the end."""
        pids = self.pids(pod)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)


def programs(pids: Iterable[int]) -> frozenset[bytes]:
    """Returns the programs that processes on this machine execute. Needs no API server."""
    return frozenset(Process(pid).program for pid in pids)
