"""The client of a block: its Jobs and pods, how they start and end, and the trials in their logs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

from tierbench.api.contract import MAXIMUM_OUTPUT_BYTES, MAXIMUM_TRIALS
from tierbench.api.measurements import Outage
from tierbench.domain import reasons
from tierbench.domain.collecting import has_waited, log_problem
from tierbench.domain.decision import Action, Create, DeleteJob, PodLog
from tierbench.domain.outages import UNNOTICED, describe, explains, of_nodes, open_outage, time_away, undisturbed_since
from tierbench.domain.placement import held_too_long, renew_leases, seconds_left
from tierbench.domain.run import Run, class_deleted
from tierbench.domain.servers import persistent_problem
from tierbench.domain.views import JobView, PodView, Problem
from tierbench.results.client_output import Output, SealState, check_seal
from tierbench.workloads.plan import Case, ScheduledTrial, ServerPlacement
from tierbench.workloads.workload import (
    ROLE_CLIENT,
    ClientInstance,
    ClientPart,
    Role,
    RunningServer,
    Target,
    Workload,
)

_START_SECONDS: Final = 120
_LOG_SECONDS: Final = 1.0
_TRIAL_SECONDS: Final = 30.0
_POD_SECONDS: Final = 5.0  # no event tells that the API server rejects a pod
_INVALID_ARGUMENTS: Final = "InvalidArguments"
NOTICE_SECONDS: Final = 5.0
"""How often a client looks whether a node is away."""


@dataclass(frozen=True)
class Client:
    """The client of cases that differ only in their server, in one pass. It has one Job per part and attempt.
    `known_attempts` is the newest attempt in the results of the cases."""

    run: Run
    workload: Workload
    cases: tuple[Case, ...]
    pass_number: int = 1
    known_attempts: int = 0

    @property
    def first(self) -> Case:
        """The case whose number the Jobs have as a label."""
        return self.cases[0]

    @property
    def parts(self) -> tuple[ClientPart, ...]:
        """The parts of the client."""
        return self.workload.parts(self.first)

    @cached_property
    def jobs(self) -> tuple[JobView, ...]:
        """The Jobs of the client, oldest first."""
        owned = [job for job in self.run.observed.jobs if self._owns(job)]
        return tuple(sorted(owned, key=lambda job: (job.attempt, job.part)))

    @cached_property
    def pods(self) -> tuple[PodView, ...]:
        """The pods of the client, oldest first. A pod may outlive its Job."""
        owned = [pod for pod in self.run.observed.pods if pod.role == ROLE_CLIENT and self._owns(pod)]
        return tuple(sorted(owned, key=lambda pod: pod.attempt))

    def _owns(self, view: JobView | PodView) -> bool:
        key = (self.run.status.number, self.first.number, self.pass_number)
        return (view.run, view.case, view.pass_number) == key

    @property
    def attempts(self) -> int:
        """The number of clients that have been started for the cases in this pass.

        A deleted Job counts while it has pods: a Job of the same attempt would pass for theirs.
        """
        started = (*(job.attempt for job in self.jobs), *(pod.attempt for pod in self.pods))
        return max((self.known_attempts, *started))

    @cached_property
    def newest(self) -> tuple[tuple[JobView, PodView | None], ...]:
        """The Jobs of the newest attempt, each with its pod."""
        newest = self.attempts
        pods = {pod.part: pod for pod in self.pods if pod.attempt == newest}
        return tuple((job, pods.get(job.part)) for job in self.jobs if job.attempt == newest)

    @property
    def is_startable(self) -> bool:
        """Whether the newest attempt has no Jobs, or not all of them."""
        return not self.newest or self.is_partially_created

    @cached_property
    def is_partially_created(self) -> bool:
        """Whether the newest attempt lacks Jobs and has not measured: the operator was killed between two of them."""
        waits = all(
            not job.finished and not job.deleting and (pod is None or self._waits(pod)) for job, pod in self.newest
        )
        return waits and 0 < len(self.newest) < len(self.parts)

    def _waits(self, pod: PodView) -> bool:
        output = self.log(pod).output
        return pod.terminated is None and not output.begun and not output.lines

    @cached_property
    def nodes(self) -> frozenset[str]:
        """The nodes of the client and its servers."""
        found = {pod.node for pod in self.pods}
        for case in self.cases:
            clients = self.run.client_nodes(case)
            found |= {str(self.run.server_node(case.server)), *(() if isinstance(clients, Problem) else clients)}
        return frozenset(found)

    @property
    def created(self) -> datetime:
        """When the first Job of the client was created."""
        return min((job.created for job in self.jobs), default=self.run.now)

    def outages(self, since: datetime) -> tuple[Outage, ...]:
        """Returns the outages of its nodes that have not ended before a time."""
        known = self.run.status.outages
        return of_nodes(known, self.nodes, since) if known else ()

    @property
    def _started(self) -> datetime:
        """When the newest attempt was created."""
        return min((job.created for job, _ in self.newest), default=self.run.now)

    @property
    def interrupted_by(self) -> tuple[Outage, ...]:
        """The outages of its nodes since the newest attempt was created."""
        return self.outages(self._started)

    @property
    def worked(self) -> timedelta:
        """For how long the newest attempt could work."""
        since, now = self._started, self.run.now
        return now - since - time_away(self.interrupted_by, since, now, self.run.longest_outage)

    @property
    def is_late(self) -> bool:
        """Whether the newest attempt could work for as long as it may."""
        return any(job.work is not None and self.worked > job.work for job, _ in self.newest)

    @property
    def is_cut_off(self) -> bool:
        """Whether one of its nodes is away, but not for too long."""
        outage = open_outage(self.run.status.outages, self.nodes)
        return outage is not None and self.run.node_problem(outage.node) is None

    def may_be_cut_off(self, failures: Iterable[str]) -> bool:
        """Whether the newest attempt has just failed as it does if a node is away, which Kubernetes may not have
        noticed yet. `failures` are those of its last trials."""
        ended = [(job, pod) for job, pod in self.newest if pod is not None and pod.terminated is not None]
        causes = {*failures, *(self._failure(pod) for _, pod in ended if pod is not None)}
        if not any(explains(cause) for cause in causes - {reasons.CLIENT_LOST}) or self.interrupted_by:
            return False
        inside, now = not all(case.server.external for case in self.cases), self.run.now
        return inside and any(
            not job.finished or (job.ended is not None and now - job.ended < UNNOTICED) for job, _ in ended
        )

    def _failure(self, pod: PodView) -> str:
        """Returns why a part says that it has failed."""
        seal = None if pod.terminated is None else check_seal(self.log(pod).output, pod.terminated.message).seal
        return "" if seal is None or seal.failure is None else seal.failure.reason

    def log(self, pod: PodView) -> PodLog:
        """Returns the log of a pod."""
        return self.run.observed.logs.get(pod.uid, PodLog())

    def delete(self) -> tuple[Action, ...]:
        """Deletes all Jobs of the client."""
        return tuple(DeleteJob(job.name) for job in self.jobs if not job.deleting)

    def delete_others(self) -> tuple[Action, ...]:
        """Deletes the Jobs of other blocks, passes and runs."""
        others = (job for job in self.run.observed.jobs if not self._owns(job))
        return tuple(DeleteJob(job.name) for job in others if not job.deleting)


def start_client(
    client: Client,
    servers: Mapping[ServerPlacement, RunningServer],
    nodes: Sequence[str],
    schedule: Sequence[ScheduledTrial],
    spare_seconds: int = 0,
) -> tuple[Action, ...] | Problem:
    """Creates the Jobs of the next attempt, or the missing ones of a partially created attempt: one per part and node,
    for these trials. The Leases of the nodes last `spare_seconds` longer than the Jobs."""
    trials = Counter(scheduled.case for scheduled in schedule)
    problem = held_too_long(client.run)
    if problem is not None:
        return problem
    external = client.run.observed.is_external(client.parts[0].node_class)
    targets = tuple(
        Target(case, servers[case.server], client.workload.deadline_seconds(trials[case.number]), external)
        for case in client.cases
        if case.number in trials
    )
    away = client.run.spec.timeouts.node_not_ready_seconds
    absent = 2 * away if external else 0  # before a member takes the work, and after it
    work = _START_SECONDS + absent + sum(target.deadline_seconds for target in targets)
    seconds = min(work + away, seconds_left(client.run))
    instances = _instances(client, nodes, schedule, seconds, max(seconds - work, 0))
    if isinstance(instances, Problem):
        return instances
    jobs = tuple(client.workload.client(instance, targets) for instance in instances)
    return renew_leases(client.run, seconds + spare_seconds), Create(jobs)


def _instances(
    client: Client, nodes: Sequence[str], schedule: Sequence[ScheduledTrial], seconds: int, away: int
) -> tuple[ClientInstance, ...] | Problem:
    observed, number, first = client.run.observed, client.run.status.number, client.first
    absent = client.run.spec.timeouts.node_not_ready_seconds
    attempt = client.attempts + (not client.is_partially_created)
    instances = []
    for part, node in zip(client.parts, nodes, strict=True):
        node_class = observed.classes.get(part.node_class)
        if node_class is None:
            return class_deleted(part.node_class)
        name = observed.owner.job(number, first, client.pass_number, attempt, part.index)
        place = (name, number, first.number, attempt, part, node, node_class.spec)
        work = (schedule, seconds, client.pass_number, len(client.parts), away)
        instances.append(ClientInstance(*place, *work, absent, absent + client.workload.deadline_seconds(1)))
    return tuple(instances)


@dataclass(frozen=True)
class ClientExit:
    """The end of a client, by the part that decides it: the first that was lost or failed, else the last one. It is
    `late` if it did not end in time."""

    job: JobView
    pod: PodView | None
    late: bool = False


def follow_client(client: Client) -> ClientExit | Problem | float:
    """Returns how the client ended, a problem that it does not recover from, or after how many seconds to reconcile."""
    pods = [pod for _, pod in client.newest if pod is not None]
    if any(_is_unread(client, pod) for pod in pods):
        return _LOG_SECONDS
    silent = [log_problem(client.run, pod, client.log(pod)) for pod in pods if _has_succeeded(pod)]
    if any(silent):
        return next(filter(None, silent))
    client_exit = _exit(client)
    if client_exit is not None:
        return _LOG_SECONDS if _others_measure(client) else client_exit
    rejected = client.run.observed.rejected_pods
    problems = (
        persistent_problem(client.run, rejected.get(job.name)) if pod is None else _pod_problem(client, pod)
        for job, pod in client.newest
    )
    stuck = next((found for found in problems if found is not None), None)
    if stuck is None and client.is_late:
        return ClientExit(*client.newest[-1], late=True)
    seconds = _TRIAL_SECONDS if len(pods) == len(client.newest) else _POD_SECONDS
    return seconds if stuck is None else stuck


def _has_succeeded(pod: PodView) -> bool:
    return pod.terminated is not None and pod.terminated.exit_code == 0


def _is_unread(client: Client, pod: PodView) -> bool:
    log = client.log(pod)
    return pod.terminated is not None and not log.complete and not has_waited(client.run, pod, log)


def _exit(client: Client) -> ClientExit | None:
    for job, pod in client.newest:
        if job.finished and pod is None:
            return ClientExit(job, pod)
        if pod is not None and pod.terminated is not None and pod.terminated.exit_code != 0:
            return ClientExit(job, pod)
        if pod is not None and client.log(pod).output.full:
            return ClientExit(job, pod)
    job, pod = client.newest[-1]
    if len(client.newest) < len(client.parts):
        return ClientExit(job, None)
    all_ended = all(pod is not None and pod.terminated is not None for _, pod in client.newest)
    return ClientExit(job, pod) if all_ended else None


def _others_measure(client: Client) -> bool:
    """Whether another part with the role SHARE is in the middle of a trial, which is kept although a part was lost."""
    if client.parts[0].role is not Role.SHARE:
        return False
    pods = (pod for _, pod in client.newest if pod is not None and pod.terminated is None and not pod.deleting)
    outputs = (client.log(pod).output for pod in pods)
    return any(output.begun > len(output.printed) and not output.full for output in outputs)


def _pod_problem(client: Client, pod: PodView) -> Problem | None:
    """Returns the problem that a running part does not recover from."""
    if pod.deleting:
        return None
    run = client.run
    node = run.node_problem(pod.node) if pod.node else None
    if node is not None or pod.problem is None:
        return node
    limit = timedelta(seconds=run.spec.timeouts.scheduling_seconds)
    since = undisturbed_since(run.status.outages, client.nodes, pod.created, run.now)
    return pod.problem if not pod.problem.transient or run.now - since > limit else None


def exit_problem(client: Client, client_exit: ClientExit) -> Problem:
    """Returns why a client ended with trials missing. After a transient problem, another attempt follows."""
    return interrupted_by_outage(client, _exit_problem(client, client_exit))


def interrupted_by_outage(client: Client, problem: Problem) -> Problem:
    """Returns that a client was interrupted if an outage of its nodes explains its problem, else the problem."""
    outages = client.interrupted_by
    if not outages or not (problem.transient or explains(problem.reason)):
        return problem
    if problem.reason == reasons.TIMED_OUT and client.is_late:
        return problem
    return Problem(reasons.INTERRUPTED, f"{describe(outages[0])}. {problem.message}", transient=True)


def _exit_problem(client: Client, client_exit: ClientExit) -> Problem:
    job, pod = client_exit.job, client_exit.pod
    if job.timed_out or client_exit.late:
        return held_too_long(client.run) or _timed_out(client, 0)
    output = Output() if pod is None else client.log(pod).output
    if output.full:
        message = (
            f"The log of the client is larger than {MAXIMUM_OUTPUT_BYTES >> 20} MiB, or has more than "
            f"{MAXIMUM_TRIALS} trials. The rest was not read."
        )
        return Problem(reasons.CLIENT_UNREADABLE, message, transient=True)
    if pod is None or pod.terminated is None:
        return Problem(reasons.CLIENT_LOST, "The client pod was deleted.", transient=True)
    check = check_seal(output, pod.terminated.message)
    if check.seal is not None and check.seal.failure is not None:
        failure = check.seal.failure
        if failure.reason == reasons.TIMED_OUT:
            return _timed_out(client, failure.case)
        message = failure.message
        if failure.reason == _INVALID_ARGUMENTS:
            message = (
                f"{_image_of(pod)} refuses its arguments. If it is of another release than the operator, use images "
                f"and the chart of one: {message}"
            )
        return Problem(failure.reason, message, failure.reason == reasons.INTERRUPTED, failure.case)
    if output.problems or check.state is SealState.OTHER_VERSION:
        what = check.message or f"prints what the operator cannot read ({output.problems[0]})"
        message = f"{_image_of(pod)} {what}. Use images and the chart of one release."
        return Problem(reasons.CLIENT_UNREADABLE, message)
    if check.state is SealState.COMPLETE:
        return Problem(reasons.CLIENT_FAILED, "The client ended before its last trial.", transient=True)
    ending = f"{pod.terminated.reason or 'ended'}, exit code {pod.terminated.exit_code}"
    message = f"The client pod {pod.name} was lost ({ending}): {check.message}"
    return Problem(reasons.CLIENT_LOST, message, transient=True)


def _image_of(pod: PodView) -> str:
    return f"The client image {pod.image_id}" if pod.image_id else "The client"


def _timed_out(client: Client, case: int) -> Problem:
    limit = client.run.spec.timeouts.trial_seconds
    message = (
        f"The client exceeded its deadline ({limit} s per trial). Raise spec.timeouts.trialSeconds, or use smaller "
        "levels."
    )
    return Problem(reasons.TIMED_OUT, message, case=case)
