"""A client has ended, and its log cannot be read: how long its trials are waited for, and what its benchmark says."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from tierbench.domain import reasons
from tierbench.domain.decision import Event, PodLog
from tierbench.domain.run import Run
from tierbench.domain.status import ConditionUpdate
from tierbench.domain.views import PodView, Problem
from tierbench.results.client_output import SealState, check_seal

_LONGEST_ERROR: Final = 300
_CAUSES: Final = (
    (
        ("results: status",),
        "its node class has results: Status, and the status of a pod does not hold so many trials. Set results: Auto",
    ),
    (
        ("refused",),
        "nothing listens at the port of its kubelet. KubeEdge needs cloudStream and edgeStream, or iptables rules for "
        "its tunnel",
    ),
    (
        ("timeout", "timed out", "deadline", "no route", "unreachable"),
        "the API server cannot reach the port of its kubelet, as behind NAT or a firewall. Open port 10250 from the "
        "API server to the node",
    ),
    (("x509", "certificate", "tls:"), "the API server does not trust the certificate of its kubelet"),
    (("unauthorized", "forbidden"), "its kubelet refuses the credentials of the API server"),
    (("not found", "could not find", "empty"), "its kubelet has no log of the container any more"),
    (
        ("gateway", "tunnel", "agent", "proxy", "websocket", "dialer", "unavailable", "eof", "payload"),
        "the tunnel or proxy between the API server and the node is interrupted",
    ),
)
"""Words of errors, and what they mean. The first that fits counts."""


def has_waited(run: Run, log: PodLog) -> bool:
    """Whether a log could not be read for `timeouts.nodeNotReadySeconds`."""
    limit = timedelta(seconds=run.spec.timeouts.node_not_ready_seconds)
    return log.error is not None and run.now - log.error.since > limit


def log_problem(run: Run, pod: PodView, log: PodLog) -> Problem | None:
    """Returns a problem if the log of a pod that has ended did not arrive in time.

    There is none if the termination message has all trials.
    """
    if log.error is None or pod.terminated is None or log.complete or not has_waited(run, log):
        return None
    check = check_seal(log.output, pod.terminated.message)
    if check.state is SealState.COMPLETE:
        return None
    arrived = "" if check.seal is None else f" {len(log.output.printed)} of {check.seal.trials} trials have arrived."
    message = (
        f"The client has ended, but its log on node {pod.node} could not be read for "
        f"{run.spec.timeouts.node_not_ready_seconds} s: {likely_cause(log.error.message)}.{arrived} They are not "
        f"measured again, because the operator could not read them either. See `kubectl logs {pod.name}` "
        f"({log.error.message[:_LONGEST_ERROR]})."
    )
    return Problem(reasons.LOGS_UNREACHABLE, message)


def likely_cause(error: str) -> str:
    """Returns what an error of the API server probably means for the log of a node."""
    text = error.lower()
    causes = (cause for words, cause in _CAUSES if any(word in text for word in words))
    return next(causes, "the API server cannot read it from its kubelet")


def logs_update(run: Run, pods: Iterable[PodView]) -> tuple[ConditionUpdate, ...]:
    """Returns the condition LogsReachable. A benchmark has it as soon as the log of an ended client is unreachable."""
    ended = [(pod, run.observed.logs.get(pod.uid, PodLog())) for pod in pods if pod.terminated is not None]
    unreachable = [(pod, log.error.message) for pod, log in ended if log.error is not None]
    if unreachable:
        pod, error = unreachable[0]
        message = f"The log of a client on node {pod.node} cannot be read: {likely_cause(error)}."
        return (ConditionUpdate(reasons.LOGS_REACHABLE, False, reasons.LOGS_UNREACHABLE, message),)
    was_unreachable = any(item.type == reasons.LOGS_REACHABLE for item in run.observed.benchmark.status.conditions)
    if was_unreachable and any(log.complete for _, log in ended):
        message = f"The log of the last client on node {ended[-1][0].node} was read to its end."
        return (ConditionUpdate(reasons.LOGS_REACHABLE, True, reasons.LOGS_READ, message),)
    return ()


def logs_events(run: Run, updates: Iterable[ConditionUpdate]) -> tuple[Event, ...]:
    """Returns a warning if the log of a client has become unreachable, or is so for another cause."""
    known = {(item.type, item.status, item.message) for item in run.observed.benchmark.status.conditions}
    return tuple(
        Event(update.reason, update.message, warning=True)
        for update in updates
        if not update.status and (update.type, str(update.status), update.message) not in known
    )
