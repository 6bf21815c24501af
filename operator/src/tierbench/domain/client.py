"""The client of a block: its Jobs as they are in the cluster, started, followed, and what they have printed."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Final

from tierbench.api.contract import TrialLine
from tierbench.domain import reasons
from tierbench.domain.actions import Action, Create, DeleteJob
from tierbench.domain.observed import PodLog
from tierbench.domain.placement import hold
from tierbench.domain.quotas import seconds_left, too_long
from tierbench.domain.run import Run
from tierbench.domain.servers import lasting
from tierbench.domain.views import JobView, PodView, Problem
from tierbench.results.output import PrintedTrial, SealState, check_seal
from tierbench.results.parts import PartOutput, merge_parts
from tierbench.workloads.names import LAYOUT, ROLE_CLIENT, ROLE_SERVER
from tierbench.workloads.plan import Case, ScheduledTrial, ServerPlacement
from tierbench.workloads.workload import ClientInstance, ClientPart, Role, RunningServer, Target, Workload

_START_SECONDS: Final = 120
_LONGEST_TROUBLE: Final = 300
_SOON_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 30.0
_POD_SECONDS: Final = 5.0  # nothing wakes the loop when a pod is refused


@dataclass(frozen=True)
class Client:
    """Of cases of a workload that differ in nothing but their server, in one pass. `known_attempts` are those that
    their results tell of."""

    run: Run
    workload: Workload
    cases: tuple[Case, ...]
    pass_number: int = 1
    known_attempts: int = 0

    @property
    def first(self) -> Case:
        """The case by which its Jobs are known."""
        return self.cases[0]

    @property
    def parts(self) -> tuple[ClientPart, ...]:
        """The parts that a client of these cases has."""
        return self.workload.parts(self.first)

    @cached_property
    def jobs(self) -> tuple[JobView, ...]:
        """Its Jobs, oldest first."""
        mine = [job for job in self.run.observed.jobs if self._is_mine(job)]
        return tuple(sorted(mine, key=lambda job: (job.attempt, job.part)))

    @cached_property
    def pods(self) -> tuple[PodView, ...]:
        """Its pods, oldest first; a pod may outlive its Job."""
        mine = [pod for pod in self.run.observed.pods if pod.role == ROLE_CLIENT and self._is_mine(pod)]
        return tuple(sorted(mine, key=lambda pod: pod.attempt))

    def _is_mine(self, view: JobView | PodView) -> bool:
        mine = (self.run.status.number, self.first.number, self.pass_number)
        return (view.run, view.case, view.pass_number) == mine

    @property
    def attempts(self) -> int:
        """How many clients the cases have had in this pass."""
        return max([self.known_attempts, *(job.attempt for job in self.jobs)])

    @cached_property
    def newest(self) -> tuple[tuple[JobView, PodView | None], ...]:
        """The parts of the newest client that are there, each with its pod."""
        newest = self.attempts
        pods = {pod.part: pod for pod in self.pods if pod.attempt == newest}
        return tuple((job, pods.get(job.part)) for job in self.jobs if job.attempt == newest)

    @property
    def is_to_start(self) -> bool:
        """Whether there is none, or not all of it."""
        return not self.newest or self.is_half_made

    @cached_property
    def is_half_made(self) -> bool:
        """Whether the newest lacks parts, and none has begun: an operator was killed between two of its Jobs."""
        waits = all(
            not job.finished and not job.deleting and (pod is None or self._waits(pod)) for job, pod in self.newest
        )
        return waits and 0 < len(self.newest) < len(self.parts)

    @property
    def waits_in_vain(self) -> bool:
        """Whether it waits for what a server of another version would have: that version was here in between."""
        ours = any(pod.role == ROLE_SERVER and pod.layout == LAYOUT for pod in self.run.observed.pods)
        waiting = all(pod is None or self._waits(pod) for _, pod in self.newest)
        return ours and waiting and any(job.layout != LAYOUT and not job.finished for job, _ in self.newest)

    def _waits(self, pod: PodView) -> bool:
        output = self.log(pod).output
        return pod.terminated is None and not output.begun and not output.lines

    def log(self, pod: PodView) -> PodLog:
        """What a pod has printed."""
        return self.run.observed.logs.get(pod.uid, PodLog())

    def delete(self) -> tuple[Action, ...]:
        """Removes all of its Jobs."""
        return tuple(DeleteJob(job.name) for job in self.jobs if not job.deleting)

    def delete_others(self) -> tuple[Action, ...]:
        """Removes Jobs of blocks that have ended, or of other passes and runs."""
        others = (job for job in self.run.observed.jobs if not self._is_mine(job))
        return tuple(DeleteJob(job.name) for job in others if not job.deleting)


def start(
    client: Client,
    servers: Mapping[ServerPlacement, RunningServer],
    nodes: Sequence[str],
    schedule: Sequence[ScheduledTrial],
    spare_seconds: int = 0,
) -> tuple[Action, ...] | Problem:
    """What starts the next client, or makes one whole that is half made, on a node a part, for these trials. The nodes
    are held `spare_seconds` longer."""
    trials = Counter(scheduled.case for scheduled in schedule)
    over = too_long(client.run)
    if over is not None:
        return over
    targets = tuple(
        Target(case, servers[case.server], client.workload.deadline_seconds(trials[case.number]))
        for case in client.cases
        if case.number in trials
    )
    seconds = min(_START_SECONDS + sum(target.deadline_seconds for target in targets), seconds_left(client.run))
    instances = _instances(client, nodes, schedule, seconds)
    if isinstance(instances, Problem):
        return instances
    jobs = tuple(client.workload.client(instance, targets) for instance in instances)
    return hold(client.run, seconds + spare_seconds), Create(jobs)


def _instances(
    client: Client, nodes: Sequence[str], schedule: Sequence[ScheduledTrial], seconds: int
) -> tuple[ClientInstance, ...] | Problem:
    observed, number, first = client.run.observed, client.run.status.number, client.first
    attempt = client.attempts + (not client.is_half_made)
    instances = []
    for part, node in zip(client.parts, nodes, strict=True):
        node_class = observed.classes.get(part.node_class)
        if node_class is None:
            gone = f"NodeClass {part.node_class} was deleted during the run."
            return Problem(reasons.NODE_CLASS_NOT_FOUND, gone)
        name = observed.owner.job(number, first, client.pass_number, attempt, part.index)
        place = (name, number, first.number, attempt, part, node, node_class.spec)
        instances.append(ClientInstance(*place, schedule, seconds, client.pass_number))
    return tuple(instances)


Wanted = Callable[[PrintedTrial], bool]


def fold(client: Client, case: Case, wanted: Wanted = lambda _: True) -> Iterator[tuple[int, tuple[TrialLine, ...]]]:
    """The trials of a case that all parts have printed, by attempt: of all of them those that are wanted."""
    for attempt in sorted({pod.attempt for pod in client.pods}):
        pods = {pod.part: pod for pod in client.pods if pod.attempt == attempt}
        parts = [_output_of(client, case, part, pods.get(part.index), wanted) for part in client.parts]
        yield attempt, merge_parts(parts)


def _output_of(client: Client, case: Case, part: ClientPart, pod: PodView | None, wanted: Wanted) -> PartOutput:
    """What a part has printed of a case. One that measures beside others is lost once it is known that it prints no
    more. Lines without a number are of the case by which the client is known."""
    if pod is None:
        return PartOutput((), part.role is Role.ECHO)
    log = client.log(pod)
    failed = pod.terminated is not None and pod.terminated.exit_code != 0 and log.complete
    lost = part.role is Role.SHARE and failed
    of_case = (trial for trial in log.output.printed if (trial.case or client.first.number) == case.number)
    return PartOutput(tuple(trial.line for trial in of_case if wanted(trial)), part.role is Role.ECHO, lost)


@dataclass(frozen=True)
class Over:
    """A client is over. The part says how: the first that was lost or failed, or the last once all have ended."""

    job: JobView
    pod: PodView | None


def follow(client: Client) -> Over | Problem | float:
    """That it is over, or what it will not recover from, or after how many seconds to look again."""
    pods = [pod for _, pod in client.newest if pod is not None]
    unread = [(pod, _log_problem(client, pod)) for pod in pods if _is_unread(client, pod)]
    if any(problem is None for _, problem in unread):
        return _SOON_SECONDS
    silent = next((problem for pod, problem in unread if problem is not None and _is_done(pod)), None)
    if silent is not None:
        return silent
    over = _over(client)
    if over is not None:
        return _SOON_SECONDS if _others_measure(client) else over
    problems = (_lack(client, job) if pod is None else _pod_problem(client, pod) for job, pod in client.newest)
    stuck = next((found for found in problems if found is not None), None)
    patience = _PATIENCE_SECONDS if len(pods) == len(client.newest) else _POD_SECONDS
    return patience if stuck is None else stuck


def _is_done(pod: PodView) -> bool:
    return pod.terminated is not None and pod.terminated.exit_code == 0


def _is_unread(client: Client, pod: PodView) -> bool:
    """Whether it has ended, and its log is not read to its end."""
    return pod.terminated is not None and not client.log(pod).complete


def _log_problem(client: Client, pod: PodView) -> Problem | None:
    """That the log of a client that has ended cannot be read, though its node has had the time to come back."""
    run, error = client.run, client.log(pod).error
    patience = timedelta(seconds=run.spec.timeouts.node_not_ready_seconds)
    if error is None or run.now - error.since <= patience:
        return None
    message = (
        f"The client has ended, and its log on node {pod.node} could not be read for {patience.total_seconds():.0f} s "
        f"({error.message[:_LONGEST_TROUBLE]}): see `kubectl logs {pod.name}`, and how the API server reaches the "
        f"kubelet of {pod.node}."
    )
    return Problem(reasons.LOGS_UNREACHABLE, message)


def _over(client: Client) -> Over | None:
    if client.waits_in_vain:
        return Over(client.newest[0][0], None)
    for job, pod in client.newest:
        if job.finished and pod is None:
            return Over(job, pod)
        if pod is not None and pod.terminated is not None and pod.terminated.exit_code != 0:
            return Over(job, pod)
    job, pod = client.newest[-1]
    if len(client.newest) < len(client.parts):
        return Over(job, None)
    return Over(job, pod) if all(pod is not None and pod.terminated is not None for _, pod in client.newest) else None


def _others_measure(client: Client) -> bool:
    """Whether a part is in mid-trial that measured beside one that was lost: what it gets is kept."""
    if client.parts[0].role is not Role.SHARE:
        return False
    pods = (pod for _, pod in client.newest if pod is not None and pod.terminated is None and not pod.deleting)
    outputs = (client.log(pod).output for pod in pods)
    return any(output.begun > len(output.printed) for output in outputs)


def _lack(client: Client, job: JobView) -> Problem | None:
    """Why a part has no pod, and will have none."""
    return lasting(client.run, client.run.observed.rejected_pods.get(job.name))


def _pod_problem(client: Client, pod: PodView) -> Problem | None:
    """What a part that has not ended will not recover from."""
    if pod.deleting:
        return None
    run = client.run
    node = run.node_problem(pod.node) if pod.node else None
    if node is not None or pod.problem is None:
        return node
    patience = timedelta(seconds=run.spec.timeouts.scheduling_seconds)
    return pod.problem if not pod.problem.transient or run.now - pod.created > patience else None


def why_over(client: Client, over: Over) -> Problem:
    """Why a client ended with trials missing. A transient reason lets another try."""
    job, pod = over.job, over.pod
    if job.timed_out:
        return too_long(client.run) or _timed_out(client, 0)
    if client.waits_in_vain:
        message = "The client was started by another version of tierbench, and cannot use the server that is there."
        return Problem(reasons.CLIENT_LOST, message, transient=True)
    if pod is None or pod.terminated is None:
        return Problem(reasons.CLIENT_LOST, "The client pod was deleted.", transient=True)
    output = client.log(pod).output
    check = check_seal(output, pod.terminated.message)
    if check.seal is not None and check.seal.failure is not None:
        failure = check.seal.failure
        if failure.reason == reasons.TIMED_OUT:
            return _timed_out(client, failure.case)
        return Problem(failure.reason, failure.message, failure.reason == "Interrupted", failure.case)
    if output.problems:
        hint = "install the client image and the operator from one release."
        return Problem(reasons.CLIENT_UNREADABLE, f"The client's output cannot be read ({output.problems[0]}): {hint}")
    if check.state is SealState.COMPLETE:
        return Problem(reasons.CLIENT_FAILED, "The client ended before its last trial.", transient=True)
    ending = f"{pod.terminated.reason or 'ended'}, exit code {pod.terminated.exit_code}"
    return Problem(
        reasons.CLIENT_LOST, f"The client pod {pod.name} was lost ({ending}): {check.message}", transient=True
    )


def _timed_out(client: Client, case: int) -> Problem:
    limit = client.run.spec.timeouts.trial_seconds
    hint = "raise spec.timeouts.trialSeconds or take smaller levels"
    return Problem(reasons.TIMED_OUT, f"The client ran out of time ({limit} s a trial): {hint}.", case=case)
