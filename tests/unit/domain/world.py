"""A model of a cluster for the tests of `decide`: nodes, objects, a kubelet and a Job controller, step by step.

It has the views that `decide` reads, not JSON objects like tests/unit/apiserver. So the property tests can kill the
operator between any two writes of hundreds of runs, in milliseconds per run.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from tests.plans import plan_of
from tests.unit.domain.objects import IMAGES, MEASURED, OWNER, START, seal, trial_line
from tests.unit.domain.store import Store
from tierbench.api.policy import Policy
from tierbench.api.result import BenchmarkResult
from tierbench.domain.decide import decide, needs_reconcile
from tierbench.domain.decision import Action, Create, Decision, Event, FailedRequest, Observed, PodLog
from tierbench.domain.results import ResultMetadata
from tierbench.domain.views import JobView, PodView, Termination
from tierbench.kinds.registry import workload_of
from tierbench.results.client_output import Output, SealState, add_sealed, check_seal, parse_output
from tierbench.workloads.workload import LABEL_PART_ROLE, LABEL_PARTS, ROLE_CLIENT, ROLE_SERVER, Images, Role

MAXIMUM_RECONCILES = 2000


def single_writes(action: Action) -> list[Action]:
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
class World(Store):
    """The whole cluster. `reconcile` is one reconcile of an operator without memory."""

    reads_records: tuple[str, ...] = ()
    logs: dict[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    printed: list[tuple[str, str]] = field(default_factory=list)
    nanoseconds: int = 10**9
    engine: str = "1"
    rejected_create: FailedRequest | None = None
    policy: Policy = field(default_factory=Policy)
    images: Images = IMAGES
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
        """Whether the benchmark must be reconciled."""
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
        writes += [partial(self._carry_out, one) for action in decision.actions for one in single_writes(action)]
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
            measured = self.measured_by(plan["kind"].lower() + direction, case)
            start, time = self.span_of(pod, case)
            self.logs[pod.uid] = log + trial_line(number, nanoseconds=time, measured=measured, case=case, start=start)
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
        """Returns what an operator knows that can neither read nor follow a log."""
        failed = FailedRequest(self.unreachable_since, "dial tcp 10.0.0.9:10250: i/o timeout")
        if pod.terminated is None:
            return PodLog(error=failed)
        output = add_sealed(Output(), pod.terminated.message)
        complete = check_seal(output, pod.terminated.message).state is SealState.COMPLETE
        return PodLog(output, complete, failed, complete)

    def span_of(self, pod: PodView, case: int) -> tuple[datetime, int]:
        """Returns when the trial that is printed now began by its client's clock, and its duration."""
        return self.now - timedelta(seconds=1), self.nanoseconds_of(case)

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
        elif pod is not None and pod.terminated is not None and not job.finished:
            self.jobs[job.name] = replace(job, finished=True, ended=self.now)
