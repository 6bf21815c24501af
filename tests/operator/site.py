"""Where the operator's tests run, and what they do to it: written once, for scripted kubelets and for real ones."""

import os
import secrets
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from urllib.request import urlopen

from tests.e2e.benchmarks import Running
from tests.e2e.kubectl import ANSWER_SECONDS, Kubectl, wait_for
from tests.e2e.operator_release import Release

Json = dict[str, Any]


class Site(ABC):
    """A cluster with a release of the chart, and a node of each class of tests.e2e.benchmarks.HARDWARE."""

    release: Release

    def kubectl(self, namespace: str) -> Kubectl:
        """kubectl in a namespace."""
        return self.release.kubectl.inside(namespace)

    @contextmanager
    def namespace(self, words: str, security: str = "privileged") -> Iterator[Kubectl]:
        """kubectl in a new namespace of this Pod Security Standard, which goes at the end with what is in it."""
        kubectl = self.kubectl(f"t-{words.replace('_', '-')[:32].rstrip('-')}-{secrets.token_hex(3)}")
        kubectl.create_namespace(security)
        try:
            yield kubectl
        finally:
            kubectl("delete", "filetransferbenchmarks,brokerbenchmarks,networkbenchmarks", "--all", "--wait")
            kubectl("delete", "namespace", kubectl.namespace, "--wait=false")

    @abstractmethod
    def starting(self, running: Running, body: Json) -> AbstractContextManager[None]:
        """Applies a benchmark; in the context its server has a pod."""

    @abstractmethod
    def standing(self, running: Running, body: Json, *, trial: int = 1) -> AbstractContextManager[None]:
        """Applies a benchmark; in the context its clients stand still, in this trial or in a later one."""

    @abstractmethod
    def strike(
        self,
        running: Running,
        body: Json,
        harm: Callable[[], object],
        *,
        trial: int = 1,
        phases: tuple[str, ...] = ("Complete",),
    ) -> None:
        """Applies a benchmark, does harm while its clients stand, and waits until it has one of the phases.

        By their own clocks, the harm fell into a trial.
        """

    @abstractmethod
    def steps(self, running: Running, body: Json) -> Iterator[str]:
        """Applies a benchmark, and stops at each visible step until it is Complete. Its clients stand still there."""

    @abstractmethod
    def pids(self, pod: str) -> list[int]:
        """The operator's processes in a pod, by their pids on this machine."""

    @abstractmethod
    def kill(self, pod: str | None = None) -> None:
        """SIGKILL to the operator; another process takes its place."""

    @abstractmethod
    def lose(self, pod: str) -> None:
        """SIGKILL to the operator in a pod, and its pod is gone."""

    @abstractmethod
    def cut_off(self, pod: str) -> AbstractContextManager[None]:
        """What an operator asks of the API server does not arrive there."""

    @abstractmethod
    def unknown_image(self, running: Running) -> AbstractContextManager[str]:
        """In the context the image of a file server cannot be pulled; gives its name."""

    @abstractmethod
    def slow(self, running: Running) -> AbstractContextManager[None]:
        """In the context trials of a benchmark with its server on the cloud-like node take far longer than before."""

    @abstractmethod
    def truncate(self, running: Running, trials: int) -> None:
        """The log of a client that has ended ends within the trial after so many."""

    @abstractmethod
    def without_api_server(self) -> AbstractContextManager[None]:
        """In the context the API server answers nothing."""

    @abstractmethod
    def without_power(self, node: str) -> AbstractContextManager[None]:
        """In the context a node does nothing, and the cluster has seen that."""

    @abstractmethod
    def crossover(self, running: Running) -> AbstractContextManager[None]:
        """In the context large files take longer from the jetson-like node, and small ones from the cloud-like one."""

    @abstractmethod
    def bring_earlier_images(self) -> None:
        """Images of tests.versions.VERSION can be run."""

    @abstractmethod
    def metrics_address(self) -> str:
        """Where the operator's /metrics is: host and port."""

    def metrics(self) -> str:
        """What the operator's /metrics says."""
        with urlopen(f"http://{self.metrics_address()}/metrics", timeout=ANSWER_SECONDS) as answer:
            text: str = answer.read().decode()
        return text

    @contextmanager
    def without_operator(self) -> Iterator[None]:
        """In the context there is none."""
        self.scale(0)
        try:
            yield
        finally:
            self.scale(1)

    def scale(self, replicas: int) -> None:
        """So many operators, ready."""
        self.release.kubectl("scale", "deployment", self.release.name, f"--replicas={replicas}")
        self.wait_for_operators(replicas)

    def wait_for_operators(self, number: int) -> None:
        """Waits until there are so many, and all are ready."""
        label = f"app.kubernetes.io/instance={self.release.name}"

        def ready() -> bool:
            statuses = [pod["status"].get("containerStatuses", ()) for pod in self.release.kubectl.list("pods", label)]
            return [[item["ready"] for item in status] for status in statuses] == [[True]] * number

        wait_for(f"{number} operators are ready", ready)

    @contextmanager
    def stopped(self, pod: str) -> Iterator[None]:
        """SIGSTOP to the operator, and SIGCONT at the end."""
        pids = self.pids(pod)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
