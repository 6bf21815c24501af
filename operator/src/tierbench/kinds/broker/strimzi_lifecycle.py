"""The Strimzi provider: asks Strimzi for a Kafka, waits until it is ready, and deletes its objects in order."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from tierbench.api.benchmark import Phase
from tierbench.api.rbac import Permission, Scope
from tierbench.domain import reasons
from tierbench.domain.decision import (
    Action,
    ClusterState,
    Decision,
    DeleteProviderObject,
    ProviderApi,
    ProviderObject,
    ProviderState,
    RemoveFinalizers,
    is_unreachable,
)
from tierbench.domain.outages import undisturbed_since
from tierbench.domain.run import Run
from tierbench.domain.servers import STANDALONE_PROVIDER, Provider
from tierbench.domain.status import ConditionUpdate, build_status
from tierbench.domain.views import PodView, Problem
from tierbench.kinds.broker.strimzi import ARCHITECTURES, CLUSTER, GROUP, KINDS, ROLE, StrimziNames, strimzi_names
from tierbench.kube.meta import Raw, parse_time
from tierbench.workloads.plan import Case
from tierbench.workloads.workload import LABEL_RUN, LABEL_SLOT, RunningServer, ServerInstance, Workload

# After TimeoutException Strimzi continues to try. The timeouts of the benchmark decide when it has failed.
_IN_PROGRESS: Final = frozenset({"Creating", "TimeoutException"})
_PERMANENT: Final = frozenset(
    {"InvalidConfigurationException", "InvalidResourceException", "UnsupportedKafkaVersionException"}
)
_MAXIMUM_MESSAGE: Final = 600
PERMISSIONS: Final = (
    Permission(
        GROUP,
        ("kafkas", "kafkanodepools", "kafkatopics", "kafkausers"),
        ("list", "create", "delete"),
        Scope.NAMESPACED,
        "Asks Strimzi for a Kafka if a benchmark needs one.",
    ),
    Permission(
        GROUP,
        ("kafkatopics",),
        ("patch",),
        Scope.NAMESPACED,
        "Removes the finalizers of a topic whose operator is gone, so that its namespace can be deleted.",
    ),
)
_RETRY_SECONDS: Final = 2.0  # the operator does not watch the objects of Strimzi
_DELETION_ORDER: Final = (("KafkaTopic",), ("KafkaUser", "Kafka"), ("KafkaNodePool",))
_KINDS_WITH_STATUS: Final = ("Kafka", "KafkaUser", "KafkaTopic")
_SCHEDULING_TIMEOUTS: Final = 3  # Strimzi itself may be starting
_FINALIZER_TIMEOUT: Final = timedelta(seconds=30)


def strimzi_object(kind: str, raw: Raw) -> ProviderObject:
    """Returns the view of an object of Strimzi with the labels of `workloads.workload`."""
    metadata, status = raw["metadata"], raw.get("status", {})
    labels, deleted = metadata["labels"], metadata.get("deletionTimestamp")
    conditions = status.get("conditions", ())
    current = status.get("observedGeneration") == metadata.get("generation")
    rejected = _rejected(conditions) if current else None
    return ProviderObject(
        kind=kind,
        name=metadata["name"],
        run=int(labels[LABEL_RUN]),
        slot=int(labels[LABEL_SLOT]),
        created=parse_time(metadata["creationTimestamp"]),
        deleted=None if deleted is None else parse_time(deleted),
        answered=bool(status),
        ready=current and any((item["type"], item["status"]) == ("Ready", "True") for item in conditions),
        rejection=None if rejected is None else _object_problem(kind, metadata["name"], rejected),
        rejected_since=None if rejected is None else _since(rejected),
        listeners=_listeners(status),
        versions=_versions(status),
    )


def _rejected(conditions: Iterable[Raw]) -> Raw | None:
    """Returns the condition of a rejection. A Kafka has NotReady then, a topic has Ready with the status False."""
    rejected = {("NotReady", "True"), ("Ready", "False")}
    found = (item for item in conditions if (item["type"], item["status"]) in rejected)
    return next((item for item in found if item.get("reason") not in _IN_PROGRESS), None)


def _object_problem(kind: str, name: str, condition: Raw) -> Problem:
    reason = condition.get("reason", "")
    text = f"{kind} {name}: {reason}: {condition.get('message', '')}"[:_MAXIMUM_MESSAGE]
    message = f"{text.rstrip('.')}. See `kubectl describe {kind.lower()} {name}`, and correct spec.brokers[].kafka."
    return Problem(reasons.STRIMZI_REFUSED, message, transient=reason not in _PERMANENT)


def _since(condition: Raw) -> datetime | None:
    since = condition.get("lastTransitionTime")
    return None if since is None else parse_time(since)


def _listeners(status: Raw) -> dict[str, str]:
    """Returns host:port of each listener by name. The addresses of one listener all belong to the only broker."""
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
    pod_label=CLUSTER,
    view=strimzi_object,
)


class StrimziProvider(Provider):
    """Asks Strimzi for a Kafka, next to the agent of tierbench."""

    api = STRIMZI_API

    def check(self, run: Run, instance: ServerInstance) -> Problem | None:
        """Returns why Strimzi cannot bring this server up, before it is asked."""
        strimzi, node = _state(run.observed), run.observed.nodes.get(instance.node)
        if not strimzi.installed:
            message = (
                f"The cluster does not serve {GROUP}: Strimzi is not installed. Install Strimzi, or write "
                "provider: Standalone."
            )
            return Problem(reasons.STRIMZI_NOT_FOUND, message)
        if not strimzi.version:
            message = (
                "The installed Strimzi is too old: it serves no KafkaNodePool in v1 or v1beta2. Upgrade it to 0.48 or "
                "newer, or write provider: Standalone."
            )
            return Problem(reasons.STRIMZI_TOO_OLD, message)
        if node is not None and node.architecture not in ARCHITECTURES:
            message = (
                f"Strimzi has no image for {node.architecture}, the architecture of node {instance.node}. Remove its "
                "class from the benchmark, or write provider: Standalone."
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
        """Implements `Provider.ensure`. The agent is a pod of tierbench, created together with the objects of
        Strimzi."""
        complete = {item.kind for item in _objects(run, instance)} == set(KINDS)
        instance = replace(instance, api_version=f"{GROUP}/{_state(run.observed).version}")
        server = STANDALONE_PROVIDER.ensure(run, workload, instance, current, cleanup, complete=complete)
        if not isinstance(server, RunningServer):
            return server
        problem, lacking = _problem(run, instance), _lacking(run, instance)
        if problem is not None:
            return problem
        if lacking:
            message = f"Strimzi starts Kafka on {instance.node}. Not ready yet: {', '.join(lacking)}."
            update = ConditionUpdate(reasons.SERVER_READY, False, reasons.STARTING, message)
            status = build_status(run, Phase.RUNNING, update, current=current)
            return Decision(status, requeue_after=_RETRY_SECONDS)
        listeners = next((item.listeners for item in _objects(run, instance) if item.kind == "Kafka"), {})
        return replace(server, listeners=listeners)

    def has_leftovers(self, owned: ClusterState, keep: Sequence[ServerInstance]) -> bool:
        """Whether objects or pods of another Kafka still exist, which would disturb the measurement."""
        pods = (pod for pod in owned.pods if pod.role == ROLE and not _is_of(owned, keep, pod.name))
        return bool(_others(owned, keep)) or any(not is_unreachable(owned, pod) for pod in pods)

    def teardown(self, owned: ClusterState, now: datetime, keep: Sequence[ServerInstance]) -> tuple[Action, ...]:
        """Deletes topics first, while their operator runs, then users and Kafka, then node pools. Removes the
        finalizers of a topic that stays, so that its namespace can be deleted."""
        objects = _others(owned, keep)
        deletable = next(
            (found for kinds in _DELETION_ORDER if (found := [item for item in objects if item.kind in kinds])), []
        )
        api_version = f"{GROUP}/{_state(owned).version}"
        topics = (item for item in deletable if item.kind == "KafkaTopic")
        stuck = [item for item in topics if item.deleted is not None and now - item.deleted > _FINALIZER_TIMEOUT]
        return (
            *(DeleteProviderObject(api_version, item.kind, item.name) for item in deletable if item.deleted is None),
            *(RemoveFinalizers(api_version, item.kind, item.name) for item in stuck),
        )


def _lacking(run: Run, instance: ServerInstance) -> tuple[str, ...]:
    """Returns which parts of the server are not ready. A Kafka stays Ready for a while after its pod, so both count."""
    ready = {item.kind for item in _objects(run, instance) if item.ready and item.deleted is None}
    kinds = tuple(kind for kind in _KINDS_WITH_STATUS if kind not in ready)
    pod = _broker(run, instance)
    is_ready = pod is not None and pod.ready and not pod.deleting and pod.node == instance.node
    return kinds if is_ready else (*kinds, f"pod {_names(run, instance).pod}")


def _problem(run: Run, instance: ServerInstance) -> Problem | None:
    """Returns the problem that the server does not recover from. Problems of pods come first: Strimzi reports them
    late."""
    return _pod_problem(run, instance) or _rejection(run, instance) or _timeout(run, instance)


def _pod_problem(run: Run, instance: ServerInstance) -> Problem | None:
    """Returns a problem of the broker's pod, or, until all is ready, of the pods of the topic and user operators."""
    name, starting = _names(run, instance).pod, _lacking(run, instance)
    for pod in _pods(run, instance):
        found = pod.problem
        if found is None or not (pod.name == name or starting):
            continue
        since = undisturbed_since(run.status.outages, {instance.node}, pod.created, run.now)
        if not found.transient or run.now - since > _scheduling_timeout(run):
            hint = "" if pod.name == name else " The pod needs a node that this run does not measure."
            return Problem(found.reason, f"{pod.name}: {found.message}{hint}")
    return None


def _rejection(run: Run, instance: ServerInstance) -> Problem | None:
    for item in _objects(run, instance):
        since = item.rejected_since or item.created
        if item.rejection is not None and (not item.rejection.transient or run.now - since > _scheduling_timeout(run)):
            return item.rejection
    return None


def _timeout(run: Run, instance: ServerInstance) -> Problem | None:
    """Returns a problem if no Strimzi reconciles the Kafka, or if it is not ready in time."""
    kafka = next((item for item in _objects(run, instance) if item.kind == "Kafka"), None)
    if kafka is None:
        return None
    since = undisturbed_since(run.status.outages, {instance.node}, kafka.created, run.now)
    age, namespace = run.now - since, run.observed.owner.namespace
    if not kafka.answered and age > _SCHEDULING_TIMEOUTS * _scheduling_timeout(run):
        message = (
            f"No Strimzi reconciles namespace {namespace}: Kafka {kafka.name} has had no status for "
            f"{age.total_seconds():.0f} s. Check that Strimzi runs and watches {namespace} (watchNamespaces or "
            "watchAnyNamespace of its chart), or write provider: Standalone."
        )
        return Problem(reasons.STRIMZI_NOT_WATCHING, message)
    limit, missing = run.spec.timeouts.server_ready_seconds, _lacking(run, instance)
    if missing and age > timedelta(seconds=limit):
        message = (
            f"{', '.join(missing)} of {kafka.name} was not ready within {limit} s. See `kubectl describe kafka "
            f"{kafka.name}`, or raise spec.timeouts.serverReadySeconds."
        )
        return Problem(reasons.SERVER_NOT_READY, message)
    return None


def _scheduling_timeout(run: Run) -> timedelta:
    return timedelta(seconds=run.spec.timeouts.scheduling_seconds)


def _state(owned: ClusterState) -> ProviderState:
    return owned.provider_states.get(GROUP, ProviderState())


def _names(run: Run, instance: ServerInstance) -> StrimziNames:
    return strimzi_names(run.observed.owner, instance.name)


def _is_of(owned: ClusterState, instances: Sequence[ServerInstance], name: str) -> bool:
    return any(strimzi_names(owned.owner, instance.name).have(name) for instance in instances)


def _others(owned: ClusterState, keep: Sequence[ServerInstance]) -> list[ProviderObject]:
    """Returns the objects of servers that are not in `keep`."""
    return [item for item in _state(owned).objects if not _is_of(owned, keep, item.name)]


def _objects(run: Run, instance: ServerInstance) -> tuple[ProviderObject, ...]:
    return tuple(item for item in _state(run.observed).objects if _is_of(run.observed, [instance], item.name))


def _pods(run: Run, instance: ServerInstance) -> tuple[PodView, ...]:
    pods = run.observed.pods
    return tuple(pod for pod in pods if pod.role == ROLE and _is_of(run.observed, [instance], pod.name))


def _broker(run: Run, instance: ServerInstance) -> PodView | None:
    return next((pod for pod in _pods(run, instance) if pod.name == _names(run, instance).pod), None)
