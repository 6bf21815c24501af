"""Benchmarks for tests, and what is to be true of each when it has ended."""

import json
from dataclasses import dataclass
from typing import Any

from tests.e2e.kubectl import Kubectl, wait_for
from tests.timeouts import SLOWNESS

CHILDREN = ("pods", "jobs", "services", "configmaps", "secrets", "persistentvolumeclaims", "networkpolicies")
API_VERSION = "tierbench.io/v1alpha1"
HOST_PATH = {"hostPath": {"path": "/var/lib/tierbench"}}
HARDWARE = {"cloud": "cloud", "jetson-nano": "jetson-nano", "user": "user"}
LEASES = "tierbench-leases"
SHORT_PREFLIGHT = {"durationSeconds": 1, "ping": {"count": 5, "intervalMilliseconds": 10}}


def node_class(name: str, **labels: str) -> dict[str, Any]:
    """A NodeClass of the nodes that bear these labels."""
    spec = {"nodeSelector": {"matchLabels": labels}}
    return {"apiVersion": API_VERSION, "kind": "NodeClass", "metadata": {"name": name}, "spec": spec}


def file_transfer(name: str = "files", **spec: Any) -> dict[str, Any]:
    """A benchmark of one small file from the cloud-like node to the user's, unless the spec says otherwise."""
    body = {
        "servers": {"nodeClasses": ["cloud"]},
        "clients": {"nodeClasses": ["user"]},
        "fileSizes": ["1Mi"],
        "storage": {"emptyDir": {}},
        "repetitions": 3,
        "timeouts": {"schedulingSeconds": round(300 * SLOWNESS)},
        **spec,
    }
    return {"apiVersion": API_VERSION, "kind": "FileTransferBenchmark", "metadata": {"name": name}, "spec": body}


def broker(name: str = "brokers", **spec: Any) -> dict[str, Any]:
    """A Mosquitto on the cloud-like node, and one pair on the user's, unless the spec says otherwise."""
    body = {
        "brokers": [{"name": "mosquitto", "mosquitto": {}}],
        "servers": {"nodeClasses": ["cloud"]},
        "clients": {"nodeClasses": ["user"]},
        "load": {"messagesPerPublisher": 50},
        "repetitions": 2,
        "timeouts": {"schedulingSeconds": round(300 * SLOWNESS)},
        **spec,
    }
    given = {key: value for key, value in body.items() if value is not None}
    return {"apiVersion": API_VERSION, "kind": "BrokerBenchmark", "metadata": {"name": name}, "spec": given}


def network(name: str = "networks", **spec: Any) -> dict[str, Any]:
    """A second of iperf3 from the user's node to the cloud-like one, after a few echo requests, unless the spec says
    otherwise."""
    body = {
        "servers": {"nodeClasses": ["cloud"]},
        "clients": {"nodeClasses": ["user"]},
        "durationSeconds": 1,
        "ping": {"count": 5, "intervalMilliseconds": 10},
        "repetitions": 2,
        "timeouts": {"schedulingSeconds": round(300 * SLOWNESS)},
        **spec,
    }
    return {"apiVersion": API_VERSION, "kind": "NetworkBenchmark", "metadata": {"name": name}, "spec": body}


@dataclass(frozen=True)
class Running:
    """A benchmark in the cluster."""

    kubectl: Kubectl
    name: str = "files"
    kind: str = "filetransferbenchmark"

    @property
    def object(self) -> dict[str, Any]:
        """As it is now."""
        return self.kubectl.get(self.kind, self.name)

    @property
    def status(self) -> dict[str, Any]:
        """Its status, empty before there is one."""
        status: dict[str, Any] = self.object.get("status", {})
        return status

    @property
    def results(self) -> list[dict[str, Any]]:
        """Its results, by case."""
        label = f"tierbench.io/benchmark={self.name}"
        return sorted(self.kubectl.list("benchmarkresults", label), key=lambda item: int(item["spec"]["case"]))

    def wait_for_phase(self, *phases: str, seconds: float = 120) -> dict[str, Any]:
        """The status, once it has one of the phases."""
        return wait_for(f"{self.name} is {' or '.join(phases)}", lambda: self.status_in(*phases), seconds)

    def status_in(self, *phases: str) -> dict[str, Any] | None:
        """The status, if it is of the present spec and has one of the phases."""
        item = self.object
        status: dict[str, Any] = item.get("status", {})
        current = status.get("observedGeneration") == item["metadata"]["generation"]
        return status if current and status.get("phase") in phases else None

    def wait_for_pod(self, role: str, *, running: bool = True, seconds: float = 60) -> dict[str, Any]:
        """A pod of this role, once it runs."""
        label = f"tierbench.io/benchmark={self.name},tierbench.io/role={role}"

        def found() -> dict[str, Any] | None:
            pods = [pod for pod in self.kubectl.list("pods", label) if "deletionTimestamp" not in pod["metadata"]]
            return next((pod for pod in pods if not running or pod["status"]["phase"] == "Running"), None)

        return wait_for(f"a {role} pod of {self.name}", found, seconds)

    def wait_for_trial(self, trial: int = 1, *, seconds: float = 120) -> None:
        """Returns while this trial, or one after it, is under way in every client pod."""
        label = f"tierbench.io/benchmark={self.name},tierbench.io/role=client"

        def began(pod: str) -> bool:
            lines = self.kubectl.log(pod).splitlines()
            started = [json.loads(line) for line in lines if '"TrialStarted"' in line and line.endswith("}")]
            return any(record["trial"] >= trial for record in started if not record["warmup"])

        def all_began() -> bool:
            pods = self.kubectl.list("pods", label)
            return bool(pods) and all(began(pod["metadata"]["name"]) for pod in pods)

        wait_for(f"trial {trial} of {self.name}", all_began, seconds)

    def condition(self, kind: str) -> dict[str, Any]:
        """One condition."""
        return next((item for item in self.status.get("conditions", []) if item["type"] == kind), {})

    def wait_for_description(self, *words: str) -> str:
        """What `kubectl describe` says, once all these words are in it: events come after the status."""

        def told() -> str:
            story = self.kubectl("describe", self.kind, self.name)
            return story if all(word in story for word in words) else ""

        return wait_for(f"{', '.join(words)} in the description of {self.name}", told)

    def leftovers(self) -> list[str]:
        """What is still there of it, results apart."""
        label = f"tierbench.io/benchmark={self.name}"
        names = [f"{kind}/{item['metadata']['name']}" for kind in CHILDREN for item in self.kubectl.list(kind, label)]
        holder = f"{self.kubectl.namespace}/{self.name}/"
        leases = self.kubectl.inside(LEASES).list("leases")
        return names + [
            f"lease/{item['metadata']['name']}" for item in leases if item["spec"]["holderIdentity"].startswith(holder)
        ]


def assert_every_trial_once(running: Running, trials: int = 3) -> None:
    """Every case measured, each trial there exactly once, all good."""
    results = running.results
    assert results
    for result in results:
        status = result["status"]
        assert status["phase"] == "Measured", status
        counted = [trial["trial"] for trial in status["trials"] if not trial.get("warmup")]
        assert counted == list(range(1, trials + 1)), (result["metadata"]["name"], counted)
        assert status["counts"]["completed"] == trials
        assert status["statistics"]["durationNanoseconds"]["count"] == trials


def assert_nothing_left(running: Running) -> None:
    """Pods, Jobs, Services, Secrets, Leases: all gone."""
    wait_for(f"nothing is left of {running.name}", lambda: not running.leftovers(), 60)
