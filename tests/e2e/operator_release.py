"""A release of the chart, and the processes of its operator."""

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from images.naming import reference
from tests.cluster import Cluster
from tests.e2e.benchmarks import LEASES
from tests.e2e.kubectl import Kubectl, wait_for
from tests.timeouts import TIMEOUT_FACTOR

CHART = Path(__file__).parents[2] / "charts" / "tierbench"
PERMITTED = (
    "policy.access={ClusterIP,PodIP,NodePort,HostNetwork}",
    "policy.plainSecrets=true",
    "policy.links=true",
    "metrics.authorization=false",
)
"""Values that permit what tests need and what the chart refuses by default."""


def image_values(image: str, name: str) -> tuple[str, str]:
    """Returns the values that make the chart use this image."""
    repository, _, tag = name.rpartition(":")
    return f"{image}.image.repository={repository}", f"{image}.image.tag={tag}"


def pids(cluster: Cluster, namespace: str, pod: str, program: str) -> list[int]:
    """Returns the pids on this machine of the pod's processes whose command line contains `program`."""
    found = [process.pid for process in cluster.pod_processes(namespace, pod)]
    return [pid for pid in found if program.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()]


@dataclass(frozen=True)
class Release:
    """One `helm install` of tierbench, by default for all namespaces because tests create many.

    Every install has the `values`. A release in the `built_in` cluster also has values that fit its nodes.

    IMAGES in the environment replaces images: "nginx=docker.io/library/nginx:1.31 kafka=docker.io/apache/kafka:4.3.1".
    """

    name: str
    kubectl: Kubectl
    built_in: bool = True
    values: tuple[str, ...] = ()

    def install(self, *values: str, chart: Path = CHART) -> None:
        """Installs or upgrades the release, and waits until the operator is ready."""
        self.helm(
            "upgrade",
            "--install",
            self.name,
            str(chart),
            "--reset-values",
            "--create-namespace",
            "--wait",
            "--timeout",
            f"{120 * TIMEOUT_FACTOR:.0f}s",
            *self._flags(values),
        )

    def template(self, *values: str) -> str:
        """Returns the manifests that Helm renders without access to a cluster, as for a GitOps tool."""
        return self.helm("template", self.name, str(CHART), "--no-hooks", *self._flags(values))

    def test(self) -> None:
        """Runs the chart's own test."""
        self.helm("test", self.name)

    def uninstall(self) -> None:
        """Uninstalls the release."""
        self.helm("uninstall", self.name, "--wait", "--ignore-not-found")

    def _flags(self, values: tuple[str, ...]) -> list[str]:
        other = f"mosquitto.alternatives.other={reference('mosquitto')}"
        chosen = ("operator.nodeSelector.hw=user", other) if self.built_in else ()
        replaced = [word.split("=", 1) for word in os.environ.get("IMAGES", "").split()]
        asked = [value for image, name in replaced for value in image_values(image, name)]
        where = () if any(value.startswith("watchNamespaces=") for value in values) else ("allNamespaces=true",)
        settings = (*PERMITTED, *chosen, *asked, *where, *self.values, *values)
        return [flag for value in settings for flag in ("--set", value)]

    def helm(self, *arguments: str) -> str:
        """Runs Helm in the release's namespace, and returns its output."""
        command = ["helm", "--namespace", self.kubectl.namespace, *arguments]
        done = subprocess.run(command, env=self.kubectl.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def pod(self) -> str:
        """Returns the name of the operator's pod."""
        label = f"app.kubernetes.io/instance={self.name}"

        def running() -> list[str]:
            pods = self.kubectl.list("pods", label, "status.phase=Running")
            return [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]

        return wait_for("the operator runs", running, 60)[0]

    @property
    def leader(self) -> str:
        """Returns the name of the pod that leads, or an empty string if none leads."""
        leases = self.kubectl.inside(LEASES).list("leases", "tierbench.io/operator=true")
        name = f"operator.{self.kubectl.namespace}.{self.name}"
        held = [lease["spec"] for lease in leases if lease["metadata"]["name"] == name]
        return next((str(spec["holderIdentity"]) for spec in held if spec.get("acquireTime")), "")

    def pids(self, cluster: Cluster, pod: str) -> list[int]:
        """Returns the pids of the operator's processes in one of its pods."""
        return pids(cluster, self.kubectl.namespace, pod, "tierbench-operator")

    def kill(self, cluster: Cluster, pod: str | None = None) -> None:
        """Kills the operator's process with SIGKILL, and deletes its pod.

        The kubelet would restart the container later after each kill.
        """
        pod = pod or self.pod
        for pid in self.pids(cluster, pod):
            os.kill(pid, signal.SIGKILL)
        self.kubectl("delete", "pod", pod, "--grace-period=0", "--force")

    def ready(self) -> None:
        """Waits until the operator is ready again."""

        def is_ready() -> bool:
            pod = self.kubectl.get("pod", self.pod)
            return all(container["ready"] for container in pod["status"].get("containerStatuses", []))

        wait_for("the operator is ready", is_ready, 60)

    def metrics(self) -> str:
        """Returns the text of /metrics."""
        return self.kubectl(
            "get", "--raw", f"/api/v1/namespaces/{self.kubectl.namespace}/pods/{self.pod}:8080/proxy/metrics"
        )
