"""The client of the case that is next: started, followed trial by trial, replaced if lost, and its case concluded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from tierbench.api.benchmark import Phase
from tierbench.api.contract import Engine, Outcome, TrialLine
from tierbench.api.result import ResultPhase, ResultSpec, ResultStatus
from tierbench.api.trace import TraceSpec
from tierbench.domain import reasons
from tierbench.domain.actions import AcquireLeases, Action, Create, Decision, DeleteJob, Event, SaveResult, SaveTrace
from tierbench.domain.conditions import Said
from tierbench.domain.observed import PodLog
from tierbench.domain.placing import LEASE_MARGIN, refusal_event
from tierbench.domain.report import case_words, report
from tierbench.domain.run import Run
from tierbench.domain.views import JobView, PodView, Problem
from tierbench.plan import Case
from tierbench.results.output import SealState, check_seal
from tierbench.results.parts import PartOutput, merge_parts
from tierbench.results.record import conclude, due, fail, record
from tierbench.results.traces import collect
from tierbench.workloads.names import ROLE_CLIENT
from tierbench.workloads.workload import ClientSite, Part, Role, RunningServer

MAXIMUM_ATTEMPTS: Final = 3
_LONGEST_TROUBLE: Final = 300


@dataclass(frozen=True)
class _Measurement:
    """A case with its server ready, and all that its clients have said so far."""

    run: Run
    case: Case
    server: RunningServer
    spec: ResultSpec
    before: ResultStatus | None
    status: ResultStatus
    lines: tuple[TrialLine, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that a client of this case has."""
        return self.run.observed.workload.parts(self.case)

    @property
    def jobs(self) -> tuple[JobView, ...]:
        """The case's Jobs, oldest first."""
        number = self.run.status.number
        mine = [job for job in self.run.observed.jobs if job.run == number and job.case == self.case.number]
        return tuple(sorted(mine, key=lambda job: (job.attempt, job.part)))

    @property
    def attempts(self) -> int:
        """How many clients the case has had."""
        return max([0, *(job.attempt for job in self.jobs), *(trial.attempt for trial in self.status.trials)])

    @property
    def client(self) -> tuple[tuple[JobView, PodView | None], ...]:
        """The newest client: its parts that are there, each with its pod."""
        pods = {(pod.attempt, pod.part): pod for pod in _client_pods(self.run, self.case)}
        newest = self.attempts
        return tuple((job, pods.get((newest, job.part))) for job in self.jobs if job.attempt == newest)

    def save(self) -> tuple[Action, ...]:
        """Writes the trials that have come since."""
        if self.status == self.before:
            return ()
        return (SaveResult(self.run.result_name(self.case), self.spec, self.status),)

    def save_trace(self) -> tuple[Action, ...]:
        """Writes what TCP did over time, where that was traced."""
        traced = collect(self.lines)
        if not traced.traces:
            return ()
        spec = TraceSpec(benchmark=self.spec.benchmark, run=self.spec.run, case=self.spec.case)
        return (*self.save(), SaveTrace(self.run.result_name(self.case), spec, traced))

    def said(self) -> Said:
        """That the server is ready."""
        site = self.server.site
        return Said(reasons.SERVER_READY, True, reasons.READY, f"{site.name} is ready on {site.node}.")


def measure(run: Run, case: Case, server: RunningServer) -> Decision:
    """The next step of one case."""
    strays = stray_jobs(run, case)
    at = _fold(run, case, server)
    refused = run.observed.refused_results.get(run.result_name(case))
    if refused is not None:
        problem = Problem(reasons.RESULT_REFUSED, f"The API server did not take what was measured: {refused}")
        return _give_up(replace(at, status=at.before or ResultStatus(), lines=()), problem)
    if not at.client:
        return _start(at, strays)
    unread = [(pod, log_problem(run, pod)) for _, pod in at.client if pod is not None and is_unread(run, pod)]
    if any(problem is None for _, problem in unread):
        return _wait(at, 1.0)
    silent = next((problem for pod, problem in unread if problem is not None and _is_done(pod)), None)
    if silent is not None:
        return _give_up(at, silent)
    over = _over(at)
    if over is not None:
        return _wait(at, 1.0) if _others_measure(at) else _ended(at, *over)
    stuck = next((found for _, pod in at.client if (found := pod_problem(run, pod)) is not None), None)
    return _give_up(at, stuck) if stuck is not None else _wait(at, 30.0)


def _is_done(pod: PodView) -> bool:
    return pod.terminated is not None and pod.terminated.exit_code == 0


def _over(at: _Measurement) -> tuple[JobView, PodView | None] | None:
    """The part that says how the client ended: the first that was lost or failed, or the last once all have ended."""
    for job, pod in at.client:
        if job.finished and pod is None:
            return job, pod
        if pod is not None and pod.terminated is not None and pod.terminated.exit_code != 0:
            return job, pod
    job, pod = at.client[-1]
    if len(at.client) < len(at.parts):
        return job, None
    return (job, pod) if all(pod is not None and pod.terminated is not None for _, pod in at.client) else None


def _others_measure(at: _Measurement) -> bool:
    """Whether a client is in mid-trial that measured beside one that was lost: what it gets is kept."""
    if at.parts[0].role is not Role.SHARE:
        return False
    alive = [pod for _, pod in at.client if pod is not None and pod.terminated is None and not pod.deleting]
    outputs = [client_log(at.run, pod).output for pod in alive]
    return any(output.begun > len(output.trials) for output in outputs)


def _fold(run: Run, case: Case, server: RunningServer) -> _Measurement:
    """Adds to the result every trial that all parts of a client have printed; none is counted twice."""
    result = run.result(case)
    spec = run.result_spec(case) if result is None else result.spec
    status = ResultStatus() if result is None else result.status
    parts = run.observed.workload.parts(case)
    pods = _client_pods(run, case)
    lines: list[TrialLine] = []
    for attempt in sorted({pod.attempt for pod in pods}):
        mine = {pod.part: pod for pod in pods if pod.attempt == attempt}
        outputs = [_part_output(run, part, mine.get(part.index)) for part in parts]
        merged = merge_parts(outputs)
        lines += merged
        status = record(spec, status, merged, attempt)
    before = None if result is None else result.status
    return _Measurement(run, case, server, spec, before, status, tuple(lines))


def _part_output(run: Run, part: Part, pod: PodView | None) -> PartOutput:
    """What a part has printed. One that measures beside others is lost once it is known that it prints no more."""
    if pod is None:
        return PartOutput((), part.role is Role.ECHO)
    log = client_log(run, pod)
    failed = pod.terminated is not None and pod.terminated.exit_code != 0 and log.complete
    lost = part.role is Role.SHARE and failed
    return PartOutput(log.output.trials, part.role is Role.ECHO, lost)


def _client_pods(run: Run, case: Case) -> list[PodView]:
    number = run.status.number
    pods = [
        pod for pod in run.observed.pods if pod.role == ROLE_CLIENT and pod.run == number and pod.case == case.number
    ]
    return sorted(pods, key=lambda pod: pod.attempt)


def client_log(run: Run, pod: PodView) -> PodLog:
    """What a client's pod has printed."""
    return run.observed.logs.get(pod.uid, PodLog())


def is_unread(run: Run, pod: PodView) -> bool:
    """Whether a client has ended, and its log is not read to its end."""
    return pod.terminated is not None and not client_log(run, pod).complete


def log_problem(run: Run, pod: PodView) -> Problem | None:
    """That the log of a client that has ended cannot be read, though its node has had the time to come back."""
    trouble, patience = client_log(run, pod).trouble, timedelta(seconds=run.spec.timeouts.node_not_ready_seconds)
    if trouble is None or run.now - trouble.since <= patience:
        return None
    message = (
        f"The client has ended, and its log on node {pod.node} could not be read for {patience.total_seconds():.0f} s "
        f"({trouble.message[:_LONGEST_TROUBLE]}): see `kubectl logs {pod.name}`, and how the API server reaches the "
        f"kubelet of {pod.node}."
    )
    return Problem(reasons.LOGS_UNREACHABLE, message)


def stray_jobs(run: Run, case: Case) -> tuple[Action, ...]:
    """Jobs of cases that have ended, or of other runs."""
    number = run.status.number
    others = [job for job in run.observed.jobs if (job.run, job.case) != (number, case.number)]
    return tuple(DeleteJob(job.name) for job in others if not job.deleting)


def _start(at: _Measurement, strays: tuple[Action, ...] = (), *events: Event) -> Decision:
    """Starts a client for the trials that are missing."""
    run, case = at.run, at.case
    trials = due(at.spec, at.status)
    if not trials:
        return _conclude(at, strays)
    sites = _sites(at, trials)
    if isinstance(sites, Problem):
        return _give_up(at, sites)
    lease = AcquireLeases(run.needed_nodes, run.now + timedelta(seconds=sites[0].deadline_seconds) + LEASE_MARGIN)
    create = Create(tuple(run.observed.workload.client(site, case, at.server) for site in sites))
    status = report(run, Phase.RUNNING, at.said(), current=case)
    return Decision(status, (lease, create, *at.save(), *strays), events)


def _sites(at: _Measurement, trials: Sequence[int]) -> tuple[ClientSite, ...] | Problem:
    """Where each part of a new client runs."""
    run, case = at.run, at.case
    nodes = run.client_nodes(case)
    if isinstance(nodes, Problem):
        return nodes
    number, attempt = run.status.number, at.attempts + 1
    deadline = run.observed.workload.deadline_seconds(len(trials))
    sites = []
    for part, node in zip(at.parts, nodes, strict=True):
        node_class = run.observed.classes.get(part.node_class)
        if node_class is None:
            gone = f"NodeClass {part.node_class} was deleted during the run."
            return Problem(reasons.NODE_CLASS_NOT_FOUND, gone)
        name = run.observed.owner.job(number, case, attempt, part.index)
        sites.append(ClientSite(name, number, attempt, part, node, node_class.spec, trials, deadline))
    return tuple(sites)


def _wait(at: _Measurement, seconds: float) -> Decision:
    return Decision(report(at.run, Phase.RUNNING, at.said(), current=at.case), at.save(), wait_seconds=seconds)


def pod_problem(run: Run, pod: PodView | None) -> Problem | None:
    """What a client that has not ended will not recover from."""
    if pod is None or pod.deleting:
        return None
    node = run.node_problem(pod.node) if pod.node else None
    if node is not None or pod.problem is None:
        return node
    patience = timedelta(seconds=run.spec.timeouts.scheduling_seconds)
    return pod.problem if not pod.problem.transient or run.now - pod.created > patience else None


def _ended(at: _Measurement, job: JobView, pod: PodView | None) -> Decision:
    """A client has ended: by itself, or a part was lost. Goes on with the missing trials, or concludes the case."""
    missing = due(at.spec, at.status)
    if not missing:
        return _conclude(at)
    problem = why_ended(at.run, job, pod)
    if job.timed_out or not problem.transient or at.attempts >= MAXIMUM_ATTEMPTS:
        return _give_up(at, problem)
    message = f"{case_words(at.case)}: {problem.message} A new client goes on with trial {missing[0]}."
    return _start(at, _stop_rest(at), Event(problem.reason, message, warning=True))


def why_ended(run: Run, job: JobView, pod: PodView | None) -> Problem:
    """Why a client ended with trials missing."""
    if job.timed_out:
        limit = run.spec.timeouts.trial_seconds
        hint = "raise spec.timeouts.trialSeconds or take smaller levels"
        return Problem(reasons.TIMED_OUT, f"The client ran out of time ({limit} s a trial): {hint}.")
    if pod is None or pod.terminated is None:
        return Problem(reasons.CLIENT_LOST, "The client pod was deleted.", transient=True)
    output = client_log(run, pod).output
    check = check_seal(output, pod.terminated.message)
    if check.seal is not None and check.seal.failure is not None:
        failure = check.seal.failure
        return Problem(failure.reason, failure.message, transient=failure.reason == "Interrupted")
    if output.problems:
        hint = "install the client image and the operator from one release."
        return Problem(reasons.CLIENT_UNREADABLE, f"The client's output cannot be read ({output.problems[0]}): {hint}")
    if check.state is SealState.COMPLETE:
        return Problem(reasons.CLIENT_FAILED, "The client ended before its last trial.", transient=True)
    ending = f"{pod.terminated.reason or 'ended'}, exit code {pod.terminated.exit_code}"
    return Problem(
        reasons.CLIENT_LOST, f"The client pod {pod.name} was lost ({ending}): {check.message}", transient=True
    )


def _conclude(at: _Measurement, strays: tuple[Action, ...] = ()) -> Decision:
    """Ends the case with what was measured. The Job goes only once that is written."""
    run, case = at.run, at.case
    final = conclude(at.spec, at.status, run.now, _engine(at))
    actions = (*at.save_trace(), SaveResult(run.result_name(case), at.spec, final), *strays, *_delete_jobs(at))
    measured = final.phase is ResultPhase.MEASURED
    display = final.display
    words = f"mean {display.mean}, {display.throughput}, {final.counts.retries} retries" if measured else final.message
    number = len(run.cases) - len(run.due) + 1
    event = Event(
        reasons.CASE_MEASURED if measured else reasons.CASE_FAILED,
        f"{number}/{len(run.cases)} {case_words(case)}: {words}",
        warning=not measured,
    )
    return Decision(report(run, Phase.RUNNING, at.said(), current=case), actions, (event,), wait_seconds=0)


def _engine(at: _Measurement) -> Engine | None:
    for _, pod in at.client:
        if pod is not None and pod.terminated is not None:
            seal = check_seal(client_log(at.run, pod).output, pod.terminated.message).seal
            if seal is not None:
                return seal.engine
    return None


def _delete_jobs(at: _Measurement) -> tuple[Action, ...]:
    return tuple(DeleteJob(job.name) for job in at.jobs if not job.deleting)


def _stop_rest(at: _Measurement) -> tuple[Action, ...]:
    """Removes the parts of a client that wait for one that was lost."""
    waiting = [job for job, pod in at.client if not job.finished and (pod is None or pod.terminated is None)]
    return tuple(DeleteJob(job.name) for job in waiting if not job.deleting)


def _give_up(at: _Measurement, problem: Problem) -> Decision:
    """Ends the case early: Measured with a note if a trial was good, else Failed."""
    run, case = at.run, at.case
    good = [trial for trial in at.status.trials if trial.outcome is Outcome.COMPLETED and not trial.warmup]
    if good:
        final = conclude(at.spec, at.status, run.now, _engine(at))
    else:
        final = fail(at.spec, at.status, run.now, problem.reason, problem.message)
    actions = (*at.save_trace(), SaveResult(run.result_name(case), at.spec, final), *_delete_jobs(at))
    event = refusal_event(case, problem)
    return Decision(report(run, Phase.RUNNING, at.said(), current=case), actions, (event,), wait_seconds=0)
