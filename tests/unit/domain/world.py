"""A model of a cluster for the tests of `decide`: nodes, objects, a kubelet and a Job controller, step by step.

It has the views that `decide` reads, not JSON objects as tests/unit/apiserver has. So the property tests can kill the
operator between any two writes of hundreds of runs, in milliseconds per run.
"""

import hashlib
import json
import zlib
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from tests.plans import plan_of
from tierbench.api.benchmark import Benchmark, BenchmarkSpec
from tierbench.api.node_class import NodeClass
from tierbench.api.policy import Policy, Quotas
from tierbench.api.record import BenchmarkRecord
from tierbench.api.result import LABEL_SUPERSEDED, BenchmarkResult, ResultPhase
from tierbench.domain.decide import decide, needs_reconcile
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
    Event,
    FailedRequest,
    MarkSuperseded,
    Observed,
    PodLog,
    ReleaseLeases,
    SaveRecord,
    SaveResult,
)
from tierbench.domain.results import ResultMetadata
from tierbench.domain.views import JobView, LeaseView, NodeView, PodView, Termination
from tierbench.kinds.broker.spec import BrokerBenchmark
from tierbench.kinds.file_transfer.spec import FileTransferBenchmark
from tierbench.kinds.network.spec import NetworkBenchmark
from tierbench.kinds.registry import workload_of
from tierbench.results.client_output import Output, SealState, add_sealed, check_seal, parse_output
from tierbench.workloads.workload import (
    LABEL_ATTEMPT,
    LABEL_CASE,
    LABEL_PART,
    LABEL_PART_ROLE,
    LABEL_PARTS,
    LABEL_PASS,
    LABEL_RUN,
    LABEL_SLOT,
    ROLE_CLIENT,
    ROLE_SERVER,
    Images,
    Owner,
    Role,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
OWNER = Owner("FileTransferBenchmark", "default", "demo", "uid-1")
IMAGES = Images(
    client="client:1",
    programs={name: f"{name}:1" for name in ("nginx", "mosquitto", "kafka", "paho", "sinetstream", "network")},
    user=10_000,
    alternatives={"nginx": {"1.19.6": "nginx:1.19.6"}, "mosquitto": {"1.6.9": "mosquitto:1.6.9"}},
)
MAXIMUM_RECONCILES = 2000
METADATA = {"name": "demo", "namespace": "default", "uid": "uid-1", "generation": 1}
MEASURED: dict[str, dict[str, Any]] = {
    "echo": {"server": {"cpuPartsPerMillion": 10_000}},
    "broker": {
        "exchange": {"pairs": 2, "sent": 200, "received": 198, "lost": 2, "connectNanoseconds": 1000},
        "distributions": {
            "roundTrip": {"schema": 6, "count": 198, "sumNanoseconds": 198_000, "indexes": [638], "counts": [198]}
        },
    },
    "network": {
        "network": {"upload": {"bitsPerSecond": 90_000_000, "receivedBytes": 11_250_000, "sentBytes": 11_300_000}}
    },
    "network Download": {"network": {"download": {"bitsPerSecond": 80_000_000}}},
}
"""The measured values of a trial, by the kind of the client's plan."""
KIND = "FileTransferBenchmark"
TIME = "2026-01-01T00:00:{:02}Z"


def node(name: str, hardware: str, *, ready: bool = True) -> NodeView:
    """A node labelled hw=HARDWARE."""
    return NodeView(
        name=name,
        labels={"hw": hardware},
        ready=ready,
        unready_since=None if ready else START,
        schedulable=True,
        architecture="arm64",
        kernel="6.1",
        os_image="Debian",
        kubelet="v1.34",
        runtime="containerd",
        cpu_millicores=4000,
        memory_bytes=4 * 2**30,
        storage_bytes=32 * 2**30,
    )


def node_class(name: str) -> NodeClass:
    """A class of the nodes labelled hw=NAME."""
    spec = {"nodeSelector": {"matchLabels": {"hw": name}}}
    return NodeClass.model_validate({"metadata": {"name": name}, "spec": spec})


def benchmark(**spec: Any) -> FileTransferBenchmark:
    """A benchmark of two server classes, two sizes and three repetitions, unless the spec says otherwise."""
    body = {
        "servers": {"nodeClassNames": ["cloud", "jetson"]},
        "clients": {"nodeClassNames": ["user"]},
        "fileSizes": ["1Mi", "2Mi"],
        "repetitions": 3,
        **spec,
    }
    return FileTransferBenchmark.model_validate({"metadata": METADATA, "spec": body})


def broker_benchmark(**spec: Any) -> BrokerBenchmark:
    """A Mosquitto on two classes, two payload sizes, clients in two pods."""
    body = {
        "brokers": [{"name": "mosquitto", "mosquitto": {}}],
        "servers": {"nodeClassNames": ["cloud", "jetson"]},
        "clients": {"nodeClassNames": ["user"], "pods": 2},
        "payload": {"sizes": ["100", "1Ki"]},
        "pairs": [4],
        "repetitions": 3,
        **spec,
    }
    given = {name: value for name, value in body.items() if value is not None}
    return BrokerBenchmark.model_validate({"metadata": METADATA, "spec": given})


def network_benchmark(**spec: Any) -> NetworkBenchmark:
    """iperf3 on two classes, both ways."""
    body = {
        "servers": {"nodeClassNames": ["cloud", "jetson"]},
        "clients": {"nodeClassNames": ["user"]},
        "repetitions": 3,
        **spec,
    }
    return NetworkBenchmark.model_validate({"metadata": METADATA, "spec": body})


def trial_line(
    number: int,
    *,
    outcome: str = "Completed",
    warmup: bool = False,
    nanoseconds: int = 10**9,
    measured: dict[str, Any] | None = None,
    case: int = 0,
) -> str:
    """Returns the line that a client prints when a trial has ended."""
    body: dict[str, Any] = {
        "contract": 1,
        "record": "Trial",
        "case": case,
        "trial": number,
        "warmup": warmup,
        "outcome": outcome,
        "startTime": "2026-01-01T00:00:00Z",
        "durationNanoseconds": nanoseconds,
        "client": {"cpuNanoseconds": nanoseconds // 100},
        **(measured or {"transfer": {"bytes": 2**20, "downloads": 1, "retryCauses": {}}}),
    }
    if outcome == "Failed":
        body["failure"] = {"reason": "AttemptsExhausted", "message": "20 attempts"}
    return json.dumps(body) + "\n"


def packed(log: str) -> str:
    """Returns Trial lines as a seal holds them."""
    return b64encode(zlib.compress(log.encode())).decode()


def seal(log: str, failure: dict[str, Any] | None = None, version: str = "1", held: str = "") -> str:
    """Returns the termination message for a log. It holds the trials of `held`."""
    lines = log.splitlines(keepends=True)
    body: dict[str, Any] = {
        "contract": 1,
        "trials": len(lines),
        "sha256": hashlib.sha256("".join(lines).encode()).hexdigest(),
        "engine": {"name": "tierbench-client", "version": version, "architecture": "arm64"},
    }
    if failure is not None:
        body["failure"] = failure
    if held:
        body["lines"] = packed(held)
    return json.dumps(body)


def one_by_one(action: Action) -> list[Action]:
    """Returns the writes of an action. The operator may be killed between any two of them."""
    return [Create((manifest,)) for manifest in action.manifests] if isinstance(action, Create) else [action]


def _head(result: BenchmarkResult) -> ResultMetadata:
    name, status = result.metadata.name, result.status
    controller = (OWNER.uid, OWNER.kind, OWNER.name)
    return ResultMetadata(
        name,
        f"uid-{name}",
        1,
        result.spec.run,
        status.stored_bytes,
        controller,
        status.phase != "Running",
        result.superseded,
    )


def _client(pod: PodView) -> tuple[str, int, int, int, int]:
    """Returns the key that the parts of a client share."""
    return pod.role, pod.run, pod.case, pod.pass_number, pod.attempt


@dataclass
class World:
    """The whole cluster. `reconcile` is one reconcile of an operator without memory."""

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
    reads_records: tuple[str, ...] = ()
    logs: dict[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    printed: list[tuple[str, str]] = field(default_factory=list)
    deleted: bool = False
    uids: int = 0
    nanoseconds: int = 10**9
    engine: str = "1"
    rejected_create: FailedRequest | None = None
    policy: Policy = field(default_factory=Policy)
    images: Images = IMAGES
    quotas: Quotas = field(default_factory=Quotas)
    forbidden: str = ""
    """The error for every pod of a Job, if the API server rejects them."""
    isolated: bool = False
    unreachable_logs: dict[str, int] = field(default_factory=dict)
    """The nodes whose logs cannot be read, and how many of the last trials the seals of their clients hold."""
    unreachable_since: datetime = START + timedelta(days=9)
    unreadable: set[str] = field(default_factory=set)
    permanently_rejected: set[str] = field(default_factory=set)
    needs_earlier_runs: bool = False
    reads_logs: bool = False
    lines_behind: int = 0
    """How many lines of a running client the operator has not read yet, unless it reads the log to its end."""
    unreadable_logs_since: datetime | None = None

    @property
    def owner(self) -> Owner:
        """The benchmark as the owner of its children."""
        return replace(OWNER, kind=self.benchmark.KIND.kind)

    def observe(self) -> Observed:
        """Returns what a reconcile observes now."""
        run = self.benchmark.status.run
        number = 0 if run is None else run.number
        return Observed(
            benchmark=self.benchmark,
            owner=self.owner,
            workload=workload_of(self.owner, self.benchmark.spec, self.images, self.policy),
            policy=self.policy,
            classes=dict(self.classes),
            nodes=dict(self.nodes),
            leases=dict(self.leases),
            pods=tuple(self.pods.values()),
            jobs=tuple(self.jobs.values()),
            services=dict(self.services),
            results={
                name: one.model_copy(update={"record": None})
                for name, one in self.results.items()
                if one.spec.run == number
            },
            records={name: self.records.get(name) for name in self.reads_records},
            earlier={name: one for name, one in self.results.items() if one.spec.run != number}
            if self.needs_earlier_runs
            else None,
            known_results=tuple(map(_head, self.results.values())),
            logs={pod.uid: self._log(pod) for pod in self.pods.values() if pod.role == ROLE_CLIENT},
            quotas=self.quotas,
            rejected_create=self.rejected_create,
            rejected_pods={name: FailedRequest(START, self.forbidden) for name in self.jobs if self.forbidden},
            isolated=self.isolated,
            unreadable=frozenset(self.unreadable),
            permanently_rejected=frozenset(self.permanently_rejected),
        )

    def _log(self, pod: PodView) -> PodLog:
        if pod.node in self.unreachable_logs:
            return self._sealed(pod)
        complete, lines = pod.terminated is not None, self.logs.get(pod.uid, "").splitlines(keepends=True)
        failed = None if self.unreadable_logs_since is None else FailedRequest(self.unreadable_logs_since, "timeout")
        current = complete or (self.reads_logs and failed is None)
        read = lines if current else lines[: max(len(lines) - self.lines_behind, 0)]
        return PodLog(parse_output("".join(read)), complete, None if current else failed, current)

    @property
    def due(self) -> bool:
        """Whether the benchmark has to be reconciled."""
        status, policy = self.benchmark.status, self.benchmark.spec.run_policy
        generation = self.benchmark.metadata.generation
        later = policy.ttl_seconds_after_finished is not None or policy.schedule is not None
        return not self.deleted and needs_reconcile(status.observed_generation, generation, status.phase, later=later)

    def reconcile(self, killed_after: Callable[[int], int | None] | None = None) -> Decision:
        """Reconciles once. `killed_after` returns after how many of its writes the operator is killed, or None."""
        decision = decide(self.observe(), self.now)
        self.needs_earlier_runs, self.reads_records = decision.needs_earlier_runs, decision.reads_records
        self.reads_logs = decision.reads_logs
        writes: list[Callable[[], None]] = [partial(self._set_status, decision)]
        writes += [partial(self._carry_out, one) for action in decision.actions for one in one_by_one(action)]
        killed = None if killed_after is None else killed_after(len(writes))
        for write in writes[:killed]:
            write()
        if killed is None:
            self.events.extend(decision.events)
        return decision

    def run(self) -> None:
        """Reconciles and takes steps until the benchmark is settled."""
        for _ in range(MAXIMUM_RECONCILES):
            if not self.due:
                return
            self.advance()
        raise AssertionError(f"not settled after {MAXIMUM_RECONCILES} reconciles: {self.benchmark.status}")

    def advance(self) -> None:
        """Reconciles once, then lets the cluster take a step unless the operator reconciles again at once."""
        if self.reconcile().requeue_after > 0:
            self.step()

    def step(self) -> None:
        """Lets each part of the cluster take one step, and one second pass."""
        self.now += timedelta(seconds=1)
        for pod in list(self.pods.values()):
            if pod.deleting and pod.role == ROLE_CLIENT and pod.terminated is None:
                message = seal(self.logs.get(pod.uid, ""), {"reason": "Interrupted", "message": "it was terminated"})
                self.pods[pod.name] = replace(pod, terminated=Termination(1, "Error", message))
            elif pod.deleting:
                del self.pods[pod.name]
            elif pod.role == ROLE_SERVER:
                self.pods[pod.name] = replace(pod, ready=True, started=True)
            elif pod.role == ROLE_CLIENT and pod.terminated is None:
                self._print_next(pod)
        for job in list(self.jobs.values()):
            self._job_step(job)

    def _print_next(self, pod: PodView) -> None:
        plan = plan_of(self.manifests[pod.name])
        turns = [(turn["case"], turn["trial"]) for turn in plan["schedule"]]
        parts = [one for one in self.pods.values() if _client(one) == _client(pod)]
        if plan.get("parts", 1) > len(parts):
            return  # its barrier opens when all parts exist
        log = self.logs.get(pod.uid, "")
        done = len(log.splitlines())
        if done < len(turns):
            case, number = turns[done]
            direction = " Download" if plan.get("direction") == "Download" else ""
            measured, time = self.measured_by(plan["kind"].lower() + direction, case), self.nanoseconds_of(case)
            self.logs[pod.uid] = log + trial_line(number, nanoseconds=time, measured=measured, case=case)
            self.printed.append((pod.name, f"{case}:{number}"))
            others = {_client(one) for one in self.pods.values() if one.role == ROLE_CLIENT and one.terminated is None}
            assert others == {_client(pod)}, "two clients measured at the same time"
            self.pods[pod.name] = replace(pod, started=True)
        else:
            held = self.unreachable_logs.get(pod.node, 0)
            lines = "".join(log.splitlines(keepends=True)[-held:]) if held else ""
            message = seal(log, version=self.engine, held=lines)
            self.pods[pod.name] = replace(pod, terminated=Termination(0, "Completed", message))

    def _sealed(self, pod: PodView) -> PodLog:
        """Returns what an operator knows that cannot read a log, and could not follow it."""
        failed = FailedRequest(self.unreachable_since, "dial tcp 10.0.0.9:10250: i/o timeout")
        if pod.terminated is None:
            return PodLog(error=failed)
        output = add_sealed(Output(), pod.terminated.message)
        complete = check_seal(output, pod.terminated.message).state is SealState.COMPLETE
        return PodLog(output, complete, failed, complete)

    def nanoseconds_of(self, case: int) -> int:
        """Returns the duration of the trial that is printed now."""
        return self.nanoseconds

    def measured_by(self, command: str, case: int) -> dict[str, Any] | None:
        """Returns what a trial measures, except for its time."""
        return MEASURED.get(command)

    def _job_step(self, job: JobView) -> None:
        pod = self.pods.get(job.name)
        if pod is None and not job.finished and not self.forbidden:
            place = {"case": job.case, "pass_number": job.pass_number, "attempt": job.attempt, "part": job.part}
            labels = self.manifests[job.name]["spec"]["template"]["metadata"]["labels"]
            parts, role = int(labels[LABEL_PARTS]), Role(labels[LABEL_PART_ROLE])
            made = self._pod(job.name, ROLE_CLIENT, job.run, **place)
            self.pods[job.name] = replace(made, parts=parts, part_role=role)
        elif pod is not None and pod.terminated is not None:
            self.jobs[job.name] = replace(job, finished=True)

    def kill_pod(self, name: str) -> None:
        """Deletes a pod by force. Its Job fails, if it has one."""
        pod = self.pods.pop(name)
        if pod.role == ROLE_CLIENT and name in self.jobs:
            self.jobs[name] = replace(self.jobs[name], finished=True)

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
            node="u1" if role == ROLE_CLIENT else "",
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

    def _carry_out(self, action: Action) -> None:  # noqa: PLR0912, PLR0915 (one branch an action)
        match action:
            case AcquireLeases(nodes, until):
                for name in nodes:
                    lease = self.leases.get(name)
                    holder = self.observe().holder
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
                assert all(trial in status.trials for trial in known), "a trial was lost"
                raw = {"metadata": {"name": name}, "spec": spec.to_json(), "status": status.to_json()}
                self.records[name] = BenchmarkRecord.model_validate(raw)
                self._join(name)
            case SaveResult(name, spec, status):
                before = self.results.get(name)
                record = self.records.get(name)
                sealed = record is None or record.status.ended is not None
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
        """Joins a result with its record, for the assertions of tests. The result has not changed by that."""
        vars(self.results[name])["record"] = self.records.get(name)

    def _create(self, manifest: dict[str, Any]) -> None:
        name, labels = manifest["metadata"]["name"], manifest["metadata"]["labels"]
        match manifest["kind"]:
            case "Pod" if name not in self.pods:
                self.pods[name] = self._pod(name, ROLE_SERVER, int(labels[LABEL_RUN]), slot=int(labels[LABEL_SLOT]))
            case "Service":
                self.services.setdefault(name, {**manifest, "spec": {**manifest["spec"], "clusterIP": "198.18.64.1"}})
            case "Job" if name not in self.jobs:
                keys = (LABEL_RUN, LABEL_CASE, LABEL_PASS, LABEL_ATTEMPT, LABEL_PART)
                run, case, pass_number, attempt, part = (int(labels[key]) for key in keys)
                self.jobs[name] = JobView(name, run, case, pass_number, attempt, part, False, False, False)
                self.manifests[name] = manifest


def raw_benchmark(name: str, run: int, *, ended: bool = True, **more: Any) -> dict[str, Any]:
    state = {"number": run, "startTime": TIME.format(0), **({"completionTime": TIME.format(1)} if ended else {})}
    policy = {"baselineRun": more.pop("baseline", None)}
    metadata = {"name": name, "namespace": "a", "uid": f"uid-of-{name}"}
    return {"kind": KIND, "metadata": metadata, "spec": {"runPolicy": policy}, "status": {"run": state, **more}}


def raw_result(name: str, benchmark: str, run: int, stored: int = 1000) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "a", "uid": f"uid-of-{name}"}
    place = {"nodeClass": "c", "node": "n"}
    case = {"case": 1, "levels": {}, "server": place, "client": place, "trials": 1}
    spec = {"benchmark": {"kind": KIND, "name": benchmark}, "run": run, **case}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Complete", "storedBytes": stored}}
