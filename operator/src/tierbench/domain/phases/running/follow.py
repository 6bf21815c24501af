"""Follows a client that was started: whether it measures, is over, or can go no further."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tierbench.domain import reasons
from tierbench.domain.limits import too_long
from tierbench.domain.phases.running.client import Client
from tierbench.domain.phases.running.refuse import lasting
from tierbench.domain.views import JobView, PodView, Problem
from tierbench.results.output import SealState, check_seal
from tierbench.workloads.workload import Role

_LONGEST_TROUBLE: Final = 300
_SOON_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 30.0
_POD_SECONDS: Final = 5.0  # nothing wakes the loop when a pod is refused


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
    run, trouble = client.run, client.log(pod).trouble
    patience = timedelta(seconds=run.spec.timeouts.node_not_ready_seconds)
    if trouble is None or run.now - trouble.since <= patience:
        return None
    message = (
        f"The client has ended, and its log on node {pod.node} could not be read for {patience.total_seconds():.0f} s "
        f"({trouble.message[:_LONGEST_TROUBLE]}): see `kubectl logs {pod.name}`, and how the API server reaches the "
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
    return lasting(client.run, client.run.observed.refused_pods.get(job.name))


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
