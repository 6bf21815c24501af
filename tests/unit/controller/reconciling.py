"""One benchmark, its reconciler and the API server. A test decides when it reconciles."""

import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.unit.apiserver.server import ApiServer, Raw
from tests.unit.controller.operator import context_of, relist
from tests.unit.domain.objects import benchmark, node, node_class, seal, trial_line
from tierbench.api.record import RECORDS
from tierbench.api.result import RESULTS
from tierbench.controller.context import FINALIZER
from tierbench.controller.reconciler import BenchmarkReconciler
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kube.meta import JOBS, PODS, SERVICES
from tierbench.workloads.workload import LABEL_ROLE, LABEL_RUN, LABEL_SLOT, Owner

OWNER = Owner("FileTransferBenchmark", "default", "demo", "uid-1")
RESOURCE = FileTransferBenchmark.KIND.resource
SERVER, CLIENT, RESULT = "ft-demo-r1-s1", "ft-demo-r1-c001-a1", "ft-demo-r1-c001"
DEADLINE = 60
"""The number of reconciles after which a test fails."""


class WaitError(Exception):
    """A reconcile has ended, and the reconciler would wait for the next."""


def labels(role: str | None, **more: str) -> dict[str, str]:
    """Returns the labels of an object of the benchmark."""
    own = {**OWNER.selector, LABEL_RUN: "1", LABEL_SLOT: "0", **more}
    return own if role is None else {**own, LABEL_ROLE: role}


def foreign(name: str, role: str | None, **more: str) -> Raw:
    """Returns a pod of another owner with labels of the benchmark."""
    return {"metadata": {"name": name, "labels": labels(role, **more)}, "spec": {}, "status": {}}


class Demo:
    """A benchmark named demo, of one case with one trial unless the test says otherwise, on nodes c1 and u1."""

    def __init__(self, repetitions: int = 1) -> None:
        self.api = ApiServer()
        spec = {"servers": {"nodeClassNames": ["cloud"]}, "fileSizes": ["1Mi"], "repetitions": repetitions}
        stored = benchmark(**spec).to_json()
        stored["metadata"] |= {
            "labels": {"team": "edge", "argocd.argoproj.io/instance": "app"},
            "finalizers": [FINALIZER],
        }
        self.api.put(RESOURCE, stored)
        self.context = context_of(self.api)
        self.context.cluster.nodes = {one.name: one for one in (node("c1", "cloud"), node("u1", "user"))}
        self.context.cluster.classes = {name: node_class(name) for name in ("cloud", "user")}
        self.reconciler = BenchmarkReconciler(self.context, RESOURCE, OWNER)

    @property
    def raw(self) -> Raw:
        """The benchmark as it is stored."""
        return self.stored(RESOURCE, "demo")

    @property
    def status(self) -> Raw:
        """The status of the benchmark."""
        found: Raw = self.raw.get("status", {})
        return found

    @property
    def results(self) -> list[Raw]:
        """The stored results."""
        return self.api.matching(RESULTS.path(None))

    @property
    def result_status(self) -> Raw:
        """The status of the first result; empty without one."""
        found: Raw = self.results[0].get("status", {}) if self.results else {}
        return found

    @property
    def record_status(self) -> Raw:
        """The status of the first record; empty without one."""
        records = self.api.matching(RECORDS.path(None))
        found: Raw = records[0].get("status", {}) if records else {}
        return found

    def stored(self, resource: Any, name: str) -> Raw:
        """Returns a stored object."""
        found = self.api.get(resource, name)
        assert found is not None
        return found

    def messages(self, reason: str) -> list[str]:
        """Returns the messages of the events with this reason."""
        return [message for found, message in self.api.events if found == reason]

    def condition(self, kind: str) -> tuple[str, str] | None:
        """Returns the status and the reason of a condition, or None."""
        conditions = {item["type"]: item for item in self.status.get("conditions", [])}
        return (conditions[kind]["status"], conditions[kind]["reason"]) if kind in conditions else None

    @property
    def clients(self) -> list[str]:
        """The names of the Jobs that were created."""
        created = [one for one in self.api.writes if one.method == "POST" and one.path.endswith("/jobs")]
        return [one.body["metadata"]["name"] for one in created if one.body is not None]

    def relist(self) -> None:
        """Lets the operator see the objects as they are."""
        relist(self.api, self.context)

    async def reconcile(self) -> bool:
        """Reconciles once. Returns whether the reconciler continues."""
        self.relist()
        try:
            await self.reconciler.run()
        except WaitError:
            return True
        return False

    async def until(self, holds: Callable[[], object], reconciles: int = DEADLINE) -> None:
        """Reconciles until something holds."""
        for _ in range(reconciles):
            if holds():
                return
            await self.reconcile()
        raise AssertionError("the reconciles changed nothing")

    async def clean_up(self) -> None:
        """Cleans up after the benchmark was deleted."""
        self.api.delete(RESOURCE, "demo")
        for _ in range(DEADLINE):
            self.relist()
            with contextlib.suppress(WaitError):
                await self.reconciler.clean_up()
                return
        raise AssertionError("the cleanup did not end")

    async def until_server(self) -> None:
        """Reconciles until the server's pod exists."""
        await self.until(lambda: SERVER in self.api.names("pods"))

    async def until_client(self) -> None:
        """Reconciles until the client's Job exists, on a server that is ready."""
        await self.until_server()
        pod = self.stored(PODS, SERVER)
        ready = {"type": "Ready", "status": "True"}
        status = {"phase": "Running", "podIP": "10.0.0.1", "conditions": [ready]}
        self.api.put(PODS, {**pod, "spec": {**pod["spec"], "nodeName": "c1"}, "status": status})
        for name in self.api.names("services"):
            self.api.change(SERVICES, name, spec={"clusterIP": "10.1.0.1"})
        await self.until(lambda: CLIENT in self.api.names("jobs"))

    async def until_measured(self, log: str | None = None, held: str = "") -> None:
        """Reconciles until the client's pod has ended, with its log and its seal, which holds some trials."""
        await self.until_client()
        log = trial_line(1) if log is None else log
        ended = {"exitCode": 0, "reason": "Completed", "message": seal(log, held=held)}
        self.put_client("Succeeded", {"terminated": ended}, log)

    def put_client(self, phase: str, state: Raw, log: str) -> None:
        """Stores the client's pod in this phase, with the state of its container and its log."""
        job = self.stored(JOBS, CLIENT)["metadata"]
        owner = {"kind": "Job", "name": CLIENT, "uid": job["uid"], "controller": True}
        status = {"phase": phase, "containerStatuses": [{"name": "client", "state": state}]}
        metadata = {"name": f"{CLIENT}-x", "labels": job["labels"], "ownerReferences": [owner]}
        self.api.put(PODS, {"metadata": metadata, "spec": {"nodeName": "u1"}, "status": status})
        self.api.logs[f"{CLIENT}-x"] = log.encode()

    def delete_pods(self) -> None:
        """Deletes all pods, as kubelets and the garbage collector do."""
        for name in self.api.names("pods"):
            self.api.force_delete(PODS, name)

    def age(self, resource: Any, name: str, seconds: float) -> None:
        """Sets the age of an object."""
        created = self.api.now() - timedelta(seconds=seconds)
        self.api.change(resource, name, metadata={"creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ")})
