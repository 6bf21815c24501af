"""A server that Strimzi brings up: whether it can, how far it is, and in which order it goes."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from tierbench.domain import reasons
from tierbench.domain.actions import Action, DeleteStrimziObject, DropFinalizers
from tierbench.domain.observed import Surroundings, out_of_reach
from tierbench.domain.run import Run
from tierbench.domain.strimzi import StrimziObject
from tierbench.domain.views import PodView, Problem
from tierbench.workloads.names import ROLE_STRIMZI
from tierbench.workloads.strimzi import ARCHITECTURES, GROUP, KINDS, is_by_strimzi, strimzi_names
from tierbench.workloads.workload import ServerSite

_ORDER: Final = (("KafkaTopic",), ("KafkaUser", "Kafka"), ("KafkaNodePool",))
_ANSWERED: Final = ("Kafka", "KafkaUser", "KafkaTopic")
_SILENCE: Final = 3  # times as long as a pod may take to find its node: Strimzi may be starting, too
_HUNG: Final = timedelta(seconds=30)


def obstacle(run: Run, site: ServerSite) -> Problem | None:
    """Why Strimzi cannot bring this server up, known before it is asked."""
    if not is_by_strimzi(run.spec, site.slot):
        return None
    strimzi, node = run.observed.strimzi, run.observed.nodes.get(site.node)
    if not strimzi.installed:
        message = (
            f"There is no Strimzi: the cluster does not serve {GROUP}. Install Strimzi, or write provider: Standalone."
        )
        return Problem(reasons.STRIMZI_NOT_FOUND, message)
    if not strimzi.version:
        message = (
            "The Strimzi that is installed is too old: it serves no KafkaNodePool in v1 or v1beta2. "
            "Upgrade it to 0.48 or newer, or write provider: Standalone."
        )
        return Problem(reasons.STRIMZI_TOO_OLD, message)
    if node is not None and node.architecture not in ARCHITECTURES:
        message = (
            f"Strimzi has no image for {node.architecture}, which node {site.node} is: leave its class out, "
            "or write provider: Standalone."
        )
        return Problem(reasons.NO_IMAGE_FOR_ARCHITECTURE, message)
    return None


def is_incomplete(run: Run, site: ServerSite) -> bool:
    """Whether any of the objects that Strimzi is asked for is not there."""
    return is_by_strimzi(run.spec, site.slot) and {item.kind for item in _mine(run, site)} != set(KINDS)


def lacking(run: Run, site: ServerSite) -> tuple[str, ...]:
    """What of the server is not ready yet. Kafka stays Ready for a while when its pod is not, so both are asked."""
    if not is_by_strimzi(run.spec, site.slot):
        return ()
    ready = {item.kind for item in _mine(run, site) if item.ready and item.deleted is None}
    kinds = tuple(kind for kind in _ANSWERED if kind not in ready)
    pod = _broker(run, site)
    stands = pod is not None and pod.ready and not pod.deleting and pod.node == site.node
    return kinds if stands else (*kinds, f"pod {_pod_name(run, site)}")


def listeners(run: Run, site: ServerSite) -> Mapping[str, str]:
    """The addresses that Strimzi gave it, if it is Strimzi's."""
    return next((item.listeners for item in _mine(run, site) if item.kind == "Kafka"), {})


def problem(run: Run, site: ServerSite) -> Problem | None:
    """What the server will not recover from. What a pod says comes first: Strimzi hears of it late."""
    if not is_by_strimzi(run.spec, site.slot):
        return None
    return _pod_problem(run, site) or _refusal(run, site) or _silence(run, site)


def _pod_problem(run: Run, site: ServerSite) -> Problem | None:
    """Of the broker, and until all is ready of the operators of its topics and users."""
    name, starting = _pod_name(run, site), lacking(run, site)
    for pod in _pods(run, site):
        found = pod.problem
        if found is None or not (pod.name == name or starting):
            continue
        if not found.transient or run.now - pod.created > _patience(run):
            hint = "" if pod.name == name else ": it may use any node that this run does not measure, and needs one"
            return Problem(found.reason, f"{pod.name}: {found.message}{hint}")
    return None


def _refusal(run: Run, site: ServerSite) -> Problem | None:
    for item in _mine(run, site):
        since = item.refused_since or item.created
        if item.refusal is not None and (not item.refusal.transient or run.now - since > _patience(run)):
            return item.refusal
    return None


def _silence(run: Run, site: ServerSite) -> Problem | None:
    """That nobody looks after Kafka, or that it takes too long."""
    kafka = next((item for item in _mine(run, site) if item.kind == "Kafka"), None)
    if kafka is None:
        return None
    age, namespace = run.now - kafka.created, run.observed.owner.namespace
    if not kafka.answered and age > _SILENCE * _patience(run):
        message = (
            f"No Strimzi looks after namespace {namespace}: Kafka {kafka.name} has had no status for "
            f"{age.total_seconds():.0f} s. Let Strimzi watch {namespace} (watchNamespaces or "
            "watchAnyNamespace of its chart) and see that it runs, or write provider: Standalone."
        )
        return Problem(reasons.STRIMZI_NOT_WATCHING, message)
    limit, missing = run.spec.timeouts.server_ready_seconds, lacking(run, site)
    if missing and age > timedelta(seconds=limit):
        message = (
            f"Strimzi had not brought up {', '.join(missing)} of {kafka.name} within {limit} s: "
            "see `kubectl describe kafka`, or raise spec.timeouts.serverReadySeconds"
        )
        return Problem(reasons.SERVER_NOT_READY, message)
    return None


def is_shared(run: Run, site: ServerSite) -> bool:
    """Whether Strimzi has anything of another server still there: it would disturb what is measured."""
    here = (site.run, site.slot_index)
    if any((item.run, item.slot) != here for item in run.observed.strimzi.objects):
        return True
    pods = (pod for pod in run.observed.pods if pod.role == ROLE_STRIMZI and (pod.run, pod.slot) != here)
    return any(not out_of_reach(run.observed, pod) for pod in pods)


def retire(here: Surroundings, now: datetime, keep: ServerSite | None = None) -> tuple[Action, ...]:
    """The next step on the way out, of all servers but one.

    Topics go first, while their operator lives, then users and Kafka, then the pools. A topic that hangs all the same
    is let go, or its namespace could never be deleted.
    """
    kept = None if keep is None else (keep.run, keep.slot_index)
    objects = [item for item in here.strimzi.objects if (item.run, item.slot) != kept]
    going = next((found for kinds in _ORDER if (found := [item for item in objects if item.kind in kinds])), [])
    api_version = f"{GROUP}/{here.strimzi.version}"
    topics = (item for item in going if item.kind == "KafkaTopic")
    hung = [item for item in topics if item.deleted is not None and now - item.deleted > _HUNG]
    return (
        *(DeleteStrimziObject(api_version, item.kind, item.name) for item in going if item.deleted is None),
        *(DropFinalizers(api_version, item.kind, item.name) for item in hung),
    )


def _patience(run: Run) -> timedelta:
    return timedelta(seconds=run.spec.timeouts.scheduling_seconds)


def _mine(run: Run, site: ServerSite) -> tuple[StrimziObject, ...]:
    return run.observed.strimzi.of(site.run, site.slot_index)


def _pods(run: Run, site: ServerSite) -> tuple[PodView, ...]:
    here = (site.run, site.slot_index)
    return tuple(pod for pod in run.observed.pods if pod.role == ROLE_STRIMZI and (pod.run, pod.slot) == here)


def _pod_name(run: Run, site: ServerSite) -> str:
    return strimzi_names(run.observed.owner, site.run, site.slot_index).pod


def _broker(run: Run, site: ServerSite) -> PodView | None:
    return next((pod for pod in _pods(run, site) if pod.name == _pod_name(run, site)), None)
