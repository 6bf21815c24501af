"""A server that Strimzi brings up: what Strimzi says of it, how far it is, and in which order it is removed."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from tierbench.api.benchmark import Phase
from tierbench.api.rbac import Permission, Scope
from tierbench.domain import reasons
from tierbench.domain.actions import Action, Decision, DeleteProviderObject, RemoveFinalizers
from tierbench.domain.observed import ClusterState, is_unreachable
from tierbench.domain.providers import STANDALONE_PROVIDER
from tierbench.domain.run import Run
from tierbench.domain.status import ConditionUpdate, build_status
from tierbench.domain.views import PodView, Problem, ProviderApi, ProviderObject, ProviderState, Raw
from tierbench.kinds.broker.strimzi import ARCHITECTURES, GROUP, KINDS, ROLE, StrimziNames, strimzi_names
from tierbench.kube.clock import parse_time
from tierbench.workloads.names import LABEL_RUN, LABEL_SLOT
from tierbench.workloads.plan import Case
from tierbench.workloads.workload import RunningServer, ServerInstance, Workload

# After a while Strimzi says that it took too long, and goes on trying: how long that may be is the benchmark's to say.
_GOING_ON: Final = frozenset({"Creating", "TimeoutException"})
_LASTING: Final = frozenset(
    {"InvalidConfigurationException", "InvalidResourceException", "UnsupportedKafkaVersionException"}
)
_LONGEST_MESSAGE: Final = 600
PERMISSIONS: Final = (
    Permission(
        GROUP,
        ("kafkas", "kafkanodepools", "kafkatopics", "kafkausers"),
        ("list", "create", "delete"),
        Scope.NAMESPACED,
        "Has Strimzi bring up Kafka, where a benchmark asks for it.",
    ),
    Permission(
        GROUP,
        ("kafkatopics",),
        ("patch",),
        Scope.NAMESPACED,
        "Lets go a topic whose operator is gone, which would block its namespace.",
    ),
)
_LOOK_AGAIN_SECONDS: Final = 2.0  # nothing wakes the loop when Strimzi says something
_ORDER: Final = (("KafkaTopic",), ("KafkaUser", "Kafka"), ("KafkaNodePool",))
_ANSWERED: Final = ("Kafka", "KafkaUser", "KafkaTopic")
_SILENCE: Final = 3  # times as long as a pod may take to find its node: Strimzi may be starting, too
_HUNG: Final = timedelta(seconds=30)


def strimzi_object(kind: str, raw: Raw) -> ProviderObject:
    """One of Strimzi's objects that bears the labels of `workloads.names`."""
    metadata, status = raw["metadata"], raw.get("status", {})
    labels, deleted = metadata["labels"], metadata.get("deletionTimestamp")
    conditions = status.get("conditions", ())
    current = status.get("observedGeneration") == metadata.get("generation")
    refused = _refused(conditions) if current else None
    return ProviderObject(
        kind=kind,
        name=metadata["name"],
        run=int(labels[LABEL_RUN]),
        slot=int(labels[LABEL_SLOT]),
        created=parse_time(metadata["creationTimestamp"]),
        deleted=None if deleted is None else parse_time(deleted),
        answered=bool(status),
        ready=current and any((item["type"], item["status"]) == ("Ready", "True") for item in conditions),
        rejection=None if refused is None else _object_problem(kind, metadata["name"], refused),
        rejected_since=None if refused is None else _since(refused),
        listeners=_listeners(status),
        versions=_versions(status),
    )


def _refused(conditions: Iterable[Raw]) -> Raw | None:
    """The condition that says no. Kafka says NotReady, and a topic that Ready is False."""
    no = {("NotReady", "True"), ("Ready", "False")}
    found = (item for item in conditions if (item["type"], item["status"]) in no)
    return next((item for item in found if item.get("reason") not in _GOING_ON), None)


def _object_problem(kind: str, name: str, condition: Raw) -> Problem:
    reason = condition.get("reason", "")
    said = f"{kind} {name}: {reason}: {condition.get('message', '')}"[:_LONGEST_MESSAGE]
    message = f"{said} (see `kubectl describe {kind.lower()}`, and correct spec.brokers[].kafka)"
    return Problem(reasons.STRIMZI_REFUSED, message, transient=reason not in _LASTING)


def _since(condition: Raw) -> datetime | None:
    since = condition.get("lastTransitionTime")
    return None if since is None else parse_time(since)


def _listeners(status: Raw) -> dict[str, str]:
    """host:port of each listener: of several, which are of one broker, the first."""
    found = {item.get("name", ""): item.get("bootstrapServers", "") for item in status.get("listeners", ())}
    return {name: servers.split(",")[0] for name, servers in found.items() if servers}


def _versions(status: Raw) -> dict[str, str]:
    names = {"kafkaVersion": "kafkaVersion", "strimziVersion": "operatorLastSuccessfulVersion"}
    return {name: status[field] for name, field in names.items() if status.get(field)}


STRIMZI_API: Final = ProviderApi(
    group=GROUP,
    versions=("v1", "v1beta2"),
    kinds=KINDS,
    role=ROLE,
    owner_kinds=frozenset({"StrimziPodSet", "ReplicaSet", "Kafka"}),
    view=strimzi_object,
)


class StrimziProvider:
    """Asks Strimzi for a Kafka, next to the agent of tierbench."""

    api = STRIMZI_API

    def check(self, run: Run, instance: ServerInstance) -> Problem | None:
        """Why Strimzi cannot bring this server up, known before it is asked."""
        strimzi, node = _seen(run.observed), run.observed.nodes.get(instance.node)
        if not strimzi.installed:
            message = (
                f"The cluster does not serve {GROUP}: Strimzi is not installed. Install Strimzi, or write "
                "provider: Standalone."
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
                f"Strimzi has no image for {node.architecture}, which node {instance.node} is: leave its class out, "
                "or write provider: Standalone."
            )
            return Problem(reasons.NO_IMAGE_FOR_ARCHITECTURE, message)
        return None

    def ensure(
        self,
        run: Run,
        workload: Workload,
        instance: ServerInstance,
        current: Sequence[Case],
        cleanup: tuple[Action, ...],
    ) -> RunningServer | Problem | Decision:
        """The agent as a server of ours is, and beside it what Strimzi is asked for."""
        complete = {item.kind for item in _mine(run, instance)} == set(KINDS)
        instance = replace(instance, api_version=f"{GROUP}/{_seen(run.observed).version}")
        server = STANDALONE_PROVIDER.ensure(run, workload, instance, current, cleanup, complete=complete)
        if not isinstance(server, RunningServer):
            return server
        problem, lacking = _problem(run, instance), _lacking(run, instance)
        if problem is not None:
            return problem
        if lacking:
            message = f"Strimzi starts Kafka on {instance.node}; not ready yet: {', '.join(lacking)}."
            said = ConditionUpdate(reasons.SERVER_READY, False, reasons.STARTING, message)
            status = build_status(run, Phase.RUNNING, said, current=current)
            return Decision(status, requeue_after=_LOOK_AGAIN_SECONDS)
        listeners = next((item.listeners for item in _mine(run, instance) if item.kind == "Kafka"), {})
        return replace(server, listeners=listeners)

    def has_leftovers(self, owned: ClusterState, keep: Sequence[ServerInstance]) -> bool:
        """Whether Strimzi has anything of another server still there: it would disturb what is measured."""
        pods = (pod for pod in owned.pods if pod.role == ROLE and not _is_of(owned, keep, pod.name))
        return bool(_others(owned, keep)) or any(not is_unreachable(owned, pod) for pod in pods)

    def teardown(self, owned: ClusterState, now: datetime, keep: Sequence[ServerInstance]) -> tuple[Action, ...]:
        """Topics go first, while their operator lives, then users and Kafka, then the pools. A topic that hangs all the
        same is let go, or its namespace could never be deleted."""
        objects = _others(owned, keep)
        going = next((found for kinds in _ORDER if (found := [item for item in objects if item.kind in kinds])), [])
        api_version = f"{GROUP}/{_seen(owned).version}"
        topics = (item for item in going if item.kind == "KafkaTopic")
        hung = [item for item in topics if item.deleted is not None and now - item.deleted > _HUNG]
        return (
            *(DeleteProviderObject(api_version, item.kind, item.name) for item in going if item.deleted is None),
            *(RemoveFinalizers(api_version, item.kind, item.name) for item in hung),
        )


def _lacking(run: Run, instance: ServerInstance) -> tuple[str, ...]:
    """What of the server is not ready yet. Kafka stays Ready for a while when its pod is not, so both are asked."""
    ready = {item.kind for item in _mine(run, instance) if item.ready and item.deleted is None}
    kinds = tuple(kind for kind in _ANSWERED if kind not in ready)
    pod = _broker(run, instance)
    stands = pod is not None and pod.ready and not pod.deleting and pod.node == instance.node
    return kinds if stands else (*kinds, f"pod {_names(run, instance).pod}")


def _problem(run: Run, instance: ServerInstance) -> Problem | None:
    """What the server will not recover from. What a pod says comes first: Strimzi hears of it late."""
    return _pod_problem(run, instance) or _refusal(run, instance) or _silence(run, instance)


def _pod_problem(run: Run, instance: ServerInstance) -> Problem | None:
    """Of the broker, and until all is ready of the operators of its topics and users."""
    name, starting = _names(run, instance).pod, _lacking(run, instance)
    for pod in _pods(run, instance):
        found = pod.problem
        if found is None or not (pod.name == name or starting):
            continue
        if not found.transient or run.now - pod.created > _patience(run):
            hint = "" if pod.name == name else ": it may use any node that this run does not measure, and needs one"
            return Problem(found.reason, f"{pod.name}: {found.message}{hint}")
    return None


def _refusal(run: Run, instance: ServerInstance) -> Problem | None:
    for item in _mine(run, instance):
        since = item.rejected_since or item.created
        if item.rejection is not None and (not item.rejection.transient or run.now - since > _patience(run)):
            return item.rejection
    return None


def _silence(run: Run, instance: ServerInstance) -> Problem | None:
    """The problem that no Strimzi watches the Kafka, or that it takes too long."""
    kafka = next((item for item in _mine(run, instance) if item.kind == "Kafka"), None)
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
    limit, missing = run.spec.timeouts.server_ready_seconds, _lacking(run, instance)
    if missing and age > timedelta(seconds=limit):
        message = (
            f"Strimzi had not brought up {', '.join(missing)} of {kafka.name} within {limit} s: "
            "see `kubectl describe kafka`, or raise spec.timeouts.serverReadySeconds"
        )
        return Problem(reasons.SERVER_NOT_READY, message)
    return None


def _patience(run: Run) -> timedelta:
    return timedelta(seconds=run.spec.timeouts.scheduling_seconds)


def _seen(owned: ClusterState) -> ProviderState:
    return owned.provider_states.get(GROUP, ProviderState())


def _names(run: Run, instance: ServerInstance) -> StrimziNames:
    return strimzi_names(run.observed.owner, instance.name)


def _is_of(owned: ClusterState, instances: Sequence[ServerInstance], name: str) -> bool:
    return any(strimzi_names(owned.owner, instance.name).have(name) for instance in instances)


def _others(owned: ClusterState, keep: Sequence[ServerInstance]) -> list[ProviderObject]:
    """The objects of all servers but some."""
    return [item for item in _seen(owned).objects if not _is_of(owned, keep, item.name)]


def _mine(run: Run, instance: ServerInstance) -> tuple[ProviderObject, ...]:
    return tuple(item for item in _seen(run.observed).objects if _is_of(run.observed, [instance], item.name))


def _pods(run: Run, instance: ServerInstance) -> tuple[PodView, ...]:
    pods = run.observed.pods
    return tuple(pod for pod in pods if pod.role == ROLE and _is_of(run.observed, [instance], pod.name))


def _broker(run: Run, instance: ServerInstance) -> PodView | None:
    return next((pod for pod in _pods(run, instance) if pod.name == _names(run, instance).pod), None)
