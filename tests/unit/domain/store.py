"""The API server of the simulated cluster: its objects, and how users and the operator change them."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from tests.unit.domain.objects import METADATA, OWNER, START, benchmark, node, node_class
from tierbench.api.benchmark import Benchmark, BenchmarkSpec
from tierbench.api.node_class import NodeClass
from tierbench.api.policy import Quotas
from tierbench.api.record import BenchmarkRecord
from tierbench.api.result import LABEL_SUPERSEDED, BenchmarkResult, ResultPhase
from tierbench.domain.decision import (
    AcquireLeases,
    Action,
    Create,
    CreateCredentials,
    Decision,
    DeleteBenchmark,
    DeleteJob,
    DeleteResult,
    DeleteServer,
    MarkSuperseded,
    ReleaseLeases,
    SaveRecord,
    SaveResult,
)
from tierbench.domain.views import JobView, LeaseView, NodeView, PodView
from tierbench.workloads.workload import (
    LABEL_ATTEMPT,
    LABEL_CASE,
    LABEL_PART,
    LABEL_PASS,
    LABEL_RUN,
    LABEL_SLOT,
    LABEL_WORK,
    ROLE_CLIENT,
    ROLE_SERVER,
    Owner,
)


def pinned_to(manifest: dict[str, Any]) -> str:
    """Returns the node of a pod or of the pods of a Job. A pod that is not pinned runs on the node of users."""
    pod = manifest["spec"]["template"]["spec"] if manifest["kind"] == "Job" else manifest["spec"]
    affinity = pod.get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return "u1"
    terms = required["nodeSelectorTerms"]
    name: str = terms[0]["matchFields"][0]["values"][0]
    return name


@dataclass
class Store:
    """The objects of the cluster. Its assertions hold for every write of the operator."""

    benchmark: Benchmark = field(default_factory=benchmark)
    nodes: dict[str, NodeView] = field(
        default_factory=lambda: {n.name: n for n in (node("c1", "cloud"), node("j1", "jetson"), node("u1", "user"))}
    )
    classes: dict[str, NodeClass] = field(
        default_factory=lambda: {name: node_class(name) for name in ("cloud", "jetson", "user")}
    )
    now: datetime = START
    leases: dict[str, LeaseView] = field(default_factory=dict)
    pods: dict[str, PodView] = field(default_factory=dict)
    jobs: dict[str, JobView] = field(default_factory=dict)
    manifests: dict[str, dict[str, Any]] = field(default_factory=dict)
    services: dict[str, dict[str, Any]] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    results: dict[str, BenchmarkResult] = field(default_factory=dict)
    records: dict[str, BenchmarkRecord] = field(default_factory=dict)
    quotas: Quotas = field(default_factory=Quotas)
    deleted: bool = False
    uids: int = 0

    @property
    def owner(self) -> Owner:
        """The benchmark as the owner of its children."""
        return replace(OWNER, kind=self.benchmark.KIND.kind)

    def kill_pod(self, name: str) -> None:
        """Deletes a pod by force. Its Job fails, if it has one."""
        pod = self.pods.pop(name)
        if pod.role == ROLE_CLIENT and name in self.jobs:
            self.jobs[name] = replace(self.jobs[name], finished=True, ended=self.now)

    def change_spec(self, **policy: Any) -> None:
        """Changes the run policy, as a user would."""
        spec = self.benchmark.spec
        self._replace_spec(spec.model_copy(update={"run_policy": spec.run_policy.model_copy(update=policy)}))

    def edit(self, **fields: Any) -> None:
        """Changes fields of the spec, as a user would."""
        body = {"metadata": METADATA, "spec": {**self.benchmark.spec.to_json(), **fields}}
        self._replace_spec(type(self.benchmark).model_validate(body).spec)

    def _replace_spec(self, spec: BenchmarkSpec) -> None:
        metadata = self.benchmark.metadata
        update = {"spec": spec, "metadata": metadata.model_copy(update={"generation": metadata.generation + 1})}
        self.benchmark = self.benchmark.model_copy(update=update)

    def _set_status(self, decision: Decision) -> None:
        self.benchmark = self.benchmark.model_copy(update={"status": decision.status})

    def _pod(
        self,
        name: str,
        role: str,
        run: int,
        *,
        slot: int = -1,
        case: int = 0,
        pass_number: int = 0,
        attempt: int = 0,
        part: int = 0,
    ) -> PodView:
        self.uids += 1
        return PodView(
            name=name,
            uid=f"pod-{self.uids}",
            role=role,
            run=run,
            slot=slot,
            case=case,
            pass_number=pass_number,
            attempt=attempt,
            part=part,
            node=pinned_to(self.manifests[name]) if name in self.manifests else "",
            pod_ip="198.19.0.1",
            host_ip="198.18.0.1",
            image_id="" if role == ROLE_CLIENT else "docker.io/library/server@sha256:1",
            created=self.now,
            started=False,
            ready=False,
            deleting=False,
            problem=None,
            terminated=None,
        )

    def _carry_out(self, action: Action) -> None:  # noqa: PLR0912, PLR0915 (one branch per action)
        match action:
            case AcquireLeases(nodes, until):
                for name in nodes:
                    lease = self.leases.get(name)
                    holder = f"{self.owner.namespace}/{self.owner.name}/{self.owner.uid}"
                    assert until <= self.now + timedelta(seconds=self.quotas.lease_seconds + 60)
                    assert lease is None or lease.holder == holder or lease.expires <= self.now
                    self.leases[name] = LeaseView(name, holder, self.now if lease is None else lease.acquired, until)
            case ReleaseLeases(nodes):
                for name in nodes:
                    self.leases.pop(name, None)
            case Create(manifests):
                for manifest in manifests:
                    self._create(manifest)
            case CreateCredentials(credentials):
                self.secrets.add(credentials.manifest["metadata"]["name"])
            case DeleteServer(name):
                if name in self.pods:
                    self.pods[name] = replace(self.pods[name], deleting=True)
                self.services.pop(name, None)
                self.services.pop(f"{name}-agent", None)
                self.secrets.discard(self.owner.attached(name))
            case DeleteJob(name):
                if self.jobs.pop(name, None) is not None and name in self.pods:  # the pod outlives its Job
                    pod = self.pods.pop(name)
                    outliving = f"{name}-{pod.uid}"
                    self.pods[outliving] = replace(pod, name=outliving, deleting=True)
                    self.manifests[outliving] = self.manifests[name]
            case SaveRecord(name, spec, status):
                record = self.records.get(name)
                assert name in self.results, "a record has no owner"
                assert record is None or record.status.ended is None, "a sealed record was written again"
                known = () if record is None else record.status.trials
                kept = {(trial.trial, trial.attempt) for trial in status.trials if trial.interrupted}
                lost = [trial for trial in known if trial not in status.trials]
                assert all((trial.trial, trial.attempt) in kept for trial in lost), "a trial was lost"
                raw = {"metadata": {"name": name}, "spec": spec.to_json(), "status": status.to_json()}
                self.records[name] = BenchmarkRecord.model_validate(raw)
                self._join(name)
            case SaveResult(name, spec, status):
                before = self.results.get(name)
                record = self.records.get(name)
                sealed = record is None or not record.status.trials or record.status.ended is not None
                assert status.phase is ResultPhase.RUNNING or sealed, "a result was sealed before its record"
                assert before is None or before.status.phase is ResultPhase.RUNNING, "a sealed result was written again"
                head = {"name": name} if before is None else before.metadata.to_json()
                raw = {"metadata": head, "spec": spec.to_json(), "status": status.to_json()}
                self.results[name] = BenchmarkResult.model_validate(raw)
                self._join(name)
            case MarkSuperseded(name):
                result = self.results[name]
                metadata = result.metadata.model_copy(update={"labels": {LABEL_SUPERSEDED: "true"}})
                self.results[name] = result.model_copy(update={"metadata": metadata})
                self._join(name)
            case DeleteResult(name):
                self.results.pop(name, None)
                self.records.pop(name, None)
            case DeleteBenchmark():
                self.deleted = True

    def _join(self, name: str) -> None:
        """Joins a result with its record, for the assertions of tests. This does not change the result."""
        vars(self.results[name])["record"] = self.records.get(name)

    def _create(self, manifest: dict[str, Any]) -> None:
        name, labels = manifest["metadata"]["name"], manifest["metadata"]["labels"]
        match manifest["kind"]:
            case "Pod" if name not in self.pods:
                pod = self._pod(name, ROLE_SERVER, int(labels[LABEL_RUN]), slot=int(labels[LABEL_SLOT]))
                self.pods[name] = replace(pod, node=pinned_to(manifest))
            case "Service":
                self.services.setdefault(name, {**manifest, "spec": _served(manifest["spec"])})
            case "Job" if name not in self.jobs:
                keys = (LABEL_RUN, LABEL_CASE, LABEL_PASS, LABEL_ATTEMPT, LABEL_PART)
                run, case, pass_number, attempt, part = (int(labels[key]) for key in keys)
                work = timedelta(seconds=int(labels[LABEL_WORK])) if LABEL_WORK in labels else None
                place = (name, run, case, pass_number, attempt, part)
                self.jobs[name] = JobView(*place, False, False, False, self.now, work)
                self.manifests[name] = manifest


def _served(spec: dict[str, Any]) -> dict[str, Any]:
    """Returns the spec of a Service with its addresses."""
    on_nodes = spec["type"] == "NodePort"
    ports = [{**port, "nodePort": 30000 + number} if on_nodes else port for number, port in enumerate(spec["ports"])]
    return {**spec, "clusterIP": "198.18.64.1", "ports": ports}
