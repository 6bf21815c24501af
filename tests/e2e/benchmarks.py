"""Benchmarks for tests, and assertions that hold for each benchmark that has ended."""

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
    """Returns a NodeClass of the nodes with these labels."""
    spec = {"nodeSelector": {"matchLabels": labels}}
    return {"apiVersion": API_VERSION, "kind": "NodeClass", "metadata": {"name": name}, "spec": spec}


def file_transfer(name: str = "files", **spec: Any) -> dict[str, Any]:
    """Returns a benchmark of one small file from the cloud-like node to the user's node. `spec` replaces fields."""
    body = {
        "servers": {"nodeClassNames": ["cloud"]},
        "clients": {"nodeClassNames": ["user"]},
        "fileSizes": ["1Mi"],
        "storage": {"emptyDir": {}},
        "repetitions": 3,
        "timeouts": {"schedulingSeconds": round(300 * SLOWNESS)},
        **spec,
    }
    return {"apiVersion": API_VERSION, "kind": "FileTransferBenchmark", "metadata": {"name": name}, "spec": body}


def broker(name: str = "brokers", **spec: Any) -> dict[str, Any]:
    """Returns a benchmark of Mosquitto on the cloud-like node, with a pair on the user's. `spec` replaces fields."""
    body = {
        "brokers": [{"name": "mosquitto", "mosquitto": {}}],
        "servers": {"nodeClassNames": ["cloud"]},
        "clients": {"nodeClassNames": ["user"]},
        "load": {"messagesPerPublisher": 50},
        "repetitions": 2,
        "timeouts": {"schedulingSeconds": round(300 * SLOWNESS), **spec.pop("timeouts", {})},
        **spec,
    }
    given = {key: value for key, value in body.items() if value is not None}
    return {"apiVersion": API_VERSION, "kind": "BrokerBenchmark", "metadata": {"name": name}, "spec": given}


def network(name: str = "networks", **spec: Any) -> dict[str, Any]:
    """Returns a benchmark of 1 s of iperf3 between the user's and the cloud-like node. `spec` replaces fields.

    Clients send a few echo requests before the load.
    """
    body = {
        "servers": {"nodeClassNames": ["cloud"]},
        "clients": {"nodeClassNames": ["user"]},
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
        """Returns its current object."""
        return self.kubectl.get(self.kind, self.name)

    @property
    def status(self) -> dict[str, Any]:
        """Returns its status, or an empty mapping if there is none yet."""
        status: dict[str, Any] = self.object.get("status", {})
        return status

    @property
    def results(self) -> list[dict[str, Any]]:
        """Returns its results by case. Each status includes the fields of its record, and its notes even if empty."""
        label = f"tierbench.io/benchmark={self.name}"
        every = sorted(self.kubectl.list("benchmarkresults", label), key=lambda item: int(item["spec"]["case"]))
        records = {
            item["metadata"]["name"]: item.get("status", {}) for item in self.kubectl.list("benchmarkrecords", label)
        }
        for result in every:
            notes: dict[str, Any] = {"invalid": [], "facts": []}
            result["status"] = {**notes, **records.get(result["metadata"]["name"], {}), **result.get("status", {})}
        return every

    def wait_for_phase(self, *phases: str, seconds: float = 120) -> dict[str, Any]:
        """Waits until the status has one of the phases, and returns it. If the run fails, it never becomes Complete."""

        def found() -> dict[str, Any] | None:
            status = self.status_in(*phases, *(("Failed",) if "Complete" in phases else ()))
            if status is not None and status["phase"] not in phases:
                cause = next(item["message"] for item in status["conditions"] if item["type"] == "Failed")
                raise AssertionError(f"{self.name} is not {' or '.join(phases)}. It has failed: {cause}")
            return status

        return wait_for(f"{self.name} is {' or '.join(phases)}", found, seconds)

    def status_in(self, *phases: str) -> dict[str, Any] | None:
        """Returns the status if it describes the current spec and has one of the phases."""
        item = self.object
        status: dict[str, Any] = item.get("status", {})
        current = status.get("observedGeneration") == item["metadata"]["generation"]
        return status if current and status.get("phase") in phases else None

    def wait_for_pod(self, role: str, *, running: bool = True, seconds: float = 60) -> dict[str, Any]:
        """Waits for a pod of this role, and returns it. By default the pod has to be running."""
        label = f"tierbench.io/benchmark={self.name},tierbench.io/role={role}"

        def found() -> dict[str, Any] | None:
            pods = [pod for pod in self.kubectl.list("pods", label) if "deletionTimestamp" not in pod["metadata"]]
            return next((pod for pod in pods if not running or pod["status"]["phase"] == "Running"), None)

        return wait_for(f"a {role} pod of {self.name}", found, seconds)

    def wait_for_trial(self, trial: int = 1, *, seconds: float = 120) -> None:
        """Waits until this trial, or a later one, has started in every client pod."""
        label = f"tierbench.io/benchmark={self.name},tierbench.io/role=client"

        def has_started(pod: str) -> bool:
            lines = self.kubectl.log(pod).splitlines()
            started = [json.loads(line) for line in lines if '"TrialStarted"' in line and line.endswith("}")]
            return any(record["trial"] >= trial for record in started if not record["warmup"])

        def all_have_started() -> bool:
            pods = self.kubectl.list("pods", label)
            return bool(pods) and all(has_started(pod["metadata"]["name"]) for pod in pods)

        wait_for(f"trial {trial} of {self.name}", all_have_started, seconds)

    def condition(self, kind: str) -> dict[str, Any]:
        """Returns the condition of this type."""
        return next((item for item in self.status.get("conditions", []) if item["type"] == kind), {})

    def wait_for_description(self, *words: str) -> str:
        """Waits until `kubectl describe` prints all these words, and returns the text. Events follow the status."""

        def description() -> str:
            text = self.kubectl("describe", self.kind, self.name)
            return text if all(word in text for word in words) else ""

        return wait_for(f"{', '.join(words)} in the description of {self.name}", description)

    def leftovers(self) -> list[str]:
        """Returns the names of its remaining objects, except results."""
        label = f"tierbench.io/benchmark={self.name}"
        names = [f"{kind}/{item['metadata']['name']}" for kind in CHILDREN for item in self.kubectl.list(kind, label)]
        holder = f"{self.kubectl.namespace}/{self.name}/"
        leases = self.kubectl.inside(LEASES).list("leases")
        return names + [
            f"lease/{item['metadata']['name']}" for item in leases if item["spec"]["holderIdentity"].startswith(holder)
        ]


def assert_every_trial_once(running: Running, trials: int = 3, *, outage: bool = False) -> None:
    """Asserts that every case is measured, and has each trial exactly once. All trials are good.

    If a node had an outage, its trials may have been interrupted. They are kept, and were measured again.
    """
    results = running.results
    assert results
    for result in results:
        status = result["status"]
        assert status["phase"] == "Complete", status
        every = [trial for trial in status["trials"] if not trial.get("warmup")]
        counted = [trial["trial"] for trial in every if not (outage and trial.get("interrupted"))]
        assert counted == list(range(1, trials + 1)), (result["metadata"]["name"], counted)
        assert status["counts"]["completed"] == trials
        assert status["statistics"]["durationNanoseconds"]["count"] == trials


def assert_nothing_left(running: Running) -> None:
    """Waits until its pods, Jobs, Services, Secrets and Leases are gone."""
    wait_for(f"nothing is left of {running.name}", lambda: not running.leftovers(), 60)
