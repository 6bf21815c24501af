"""The simulated cluster with nodes that lose their connection and have skewed clocks."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tests.plans import plan_of
from tests.unit.domain.objects import seal, trial_line
from tests.unit.domain.world import World
from tierbench.api.run_policy import MAXIMUM_CASES
from tierbench.domain.decision import FailedRequest, Observed, PodLog
from tierbench.domain.run import Run
from tierbench.domain.views import JobView, PodView, Termination
from tierbench.results.client_output import parse_output
from tierbench.workloads.workload import ROLE_CLIENT

NOTICED = timedelta(seconds=45)
"""How long Kubernetes takes to notice that a node is away."""
TIMEOUT = timedelta(seconds=20)
"""How long a client waits for a server before the trial or the client fails."""
STALL, FAIL, EXIT, LOCAL, HANG = "stall", "fail", "exit", "local", "hang"
"""What a trial does without its connection: it waits, it fails, its client fails, it needs none, or its client prints
nothing."""


@dataclass
class OutageWorld(World):
    """While a node is away, the API server has what its kubelet reported last, and logs cannot be read."""

    mode: str = STALL
    ahead: dict[str, timedelta] = field(default_factory=dict)
    """How far the clocks of nodes are ahead."""
    remembers: bool = True
    """Whether the operator still knows what it read of logs before."""
    _cut: dict[str, datetime] = field(default_factory=dict)
    _begun: dict[str, datetime] = field(default_factory=dict)
    _reported: dict[str, PodView] = field(default_factory=dict)
    _read: dict[str, str] = field(default_factory=dict)

    def cut_off(self, name: str) -> None:
        """Cuts a node off."""
        self._cut[name] = self.now
        pods = [pod for pod in self.pods.values() if pod.node == name]
        self._reported |= {pod.uid: pod for pod in pods}
        self._read |= {pod.uid: self.logs.get(pod.uid, "") for pod in pods}

    def reconnect(self, name: str) -> None:
        """Connects a node again."""
        del self._cut[name]
        self.nodes[name] = replace(self.nodes[name], ready=True, unready_since=None)
        for pod in self.pods.values():
            if pod.node == name:
                self._reported.pop(pod.uid, None)

    def is_away(self, name: str) -> bool:
        """Returns whether a node is cut off."""
        return name in self._cut

    def observe(self) -> Observed:
        """Returns what a reconcile observes now."""
        return replace(super().observe(), pods=tuple(map(self._visible, self.pods.values())))

    def _visible(self, pod: PodView) -> PodView:
        shown = replace(pod, clock_ahead=self.ahead.get(pod.node, timedelta(0)))
        if pod.node not in self._cut:
            return shown
        known = self._reported.get(pod.uid, shown)
        noticed = not self.nodes[pod.node].ready
        return replace(known, name=pod.name, deleting=pod.deleting, ready=known.ready and not noticed)

    def _log(self, pod: PodView) -> PodLog:
        if pod.node not in self._cut:
            return super()._log(pod)
        ended = self._visible(pod).terminated is not None and self.remembers
        output = parse_output(self._read.get(pod.uid, "") if self.remembers else "")
        return PodLog(output, ended, None if ended else FailedRequest(self._cut[pod.node], "no route to host"), ended)

    def step(self) -> None:
        """Takes a step in which kubelets that are cut off start and remove no pod."""
        for name, since in self._cut.items():
            if self.nodes[name].ready and self.now - since >= NOTICED:
                self.nodes[name] = replace(self.nodes[name], ready=False, unready_since=self.now)
        paused = {pod.name: pod for pod in self.pods.values() if pod.node in self._cut and not self._runs(pod)}
        self.pods = {name: pod for name, pod in self.pods.items() if name not in paused}
        super().step()
        self.pods |= paused

    def _runs(self, pod: PodView) -> bool:
        return pod.started and not pod.deleting

    def _job_step(self, job: JobView) -> None:
        pod, limit = self.pods.get(job.name), self.manifests[job.name]["spec"]["activeDeadlineSeconds"]
        if not job.finished and self.now - job.created >= timedelta(seconds=limit):
            self.jobs[job.name] = replace(job, finished=True, timed_out=True, ended=self.now)
            if pod is not None:
                self.pods[pod.name] = replace(pod, deleting=True)
        elif pod is None or pod.node not in self._cut:
            super()._job_step(job)

    def _print_next(self, pod: PodView) -> None:
        if self.mode == HANG:
            return
        turns, done = plan_of(self.manifests[pod.name])["schedule"], len(self.logs.get(pod.uid, "").splitlines())
        if done < len(turns) and (since := self._cut_since(pod, turns[done]["case"])) is not None:
            self._begun.setdefault(pod.uid, self.now)
            if self.now - max(since, self._begun[pod.uid]) >= TIMEOUT:
                self._time_out(pod, turns[done]["case"], turns[done]["trial"])
        else:
            super()._print_next(pod)
            self._begun[pod.uid] = self.now

    def _cut_since(self, pod: PodView, case: int) -> datetime | None:
        """Returns when the connection between a client and its server was cut, or None."""
        if not self._cut or self.mode == LOCAL:
            return None
        return next((since for name, since in self._cut.items() if name in {pod.node, *self._servers(case)}), None)

    def _servers(self, case: int) -> set[str]:
        """Returns the node of a case's server. A preflight may use any."""
        status = self.benchmark.status.run
        assert status is not None
        run = Run(self.observe(), status, self.now)
        return {str(run.server_node(one.server)) for one in run.cases if case in {one.number} or case > MAXIMUM_CASES}

    def _time_out(self, pod: PodView, case: int, trial: int) -> None:
        start, nanoseconds = self.span_of(pod, case)
        log = self.logs.get(pod.uid, "")
        if self.mode == FAIL:
            self.logs[pod.uid] = log + trial_line(
                trial, outcome="Failed", nanoseconds=nanoseconds, case=case, start=start
            )
            self.printed.append((pod.name, f"{case}:{trial}"))
            self._begun[pod.uid] = self.now
        elif self.mode == EXIT:
            message = seal(log, {"reason": "AgentUnreachable", "message": "no answer"})
            self.pods[pod.name] = replace(pod, terminated=Termination(1, "Error", message))

    def span_of(self, pod: PodView, case: int) -> tuple[datetime, int]:
        """Includes the time for which a trial waited for its connection."""
        start, nanoseconds = super().span_of(pod, case)
        begun = self._begun.get(pod.uid, start)
        if begun < start:
            start, nanoseconds = begun, round((self.now - begun).total_seconds() * 1e9)
        return start + self.ahead.get(pod.node, timedelta(0)), nanoseconds

    def clients(self) -> list[PodView]:
        """Returns the pods of clients, as they are on their nodes."""
        return [pod for pod in self.pods.values() if pod.role == ROLE_CLIENT]
