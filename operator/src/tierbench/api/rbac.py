"""The permissions of the operator, and what users may do with our kinds: the tables behind the chart's RBAC."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tierbench.api.model import GROUP
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.result import BenchmarkResult, BenchmarkTrace
from tierbench.api.schema import resource_types
from tierbench.kinds.registry import BENCHMARKS, kinds


class Scope(StrEnum):
    """Where a permission holds."""

    CLUSTER = "Cluster"
    NAMESPACED = "Namespaced"
    LEASES = "Leases"
    REMOVAL = "Removal"
    """The whole cluster, for the account that removes all benchmarks before their definitions go."""
    METRICS = "Metrics"


@dataclass(frozen=True)
class Permission:
    """Verbs on resources of one API group (empty for core), and why the operator needs them."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    scope: Scope
    why: str


_CORE: Final = ""
_FOLLOW: Final = ("list", "watch")
_NODE_CLASSES: Final = NodeClass.KIND.plural
_RESULTS: Final = BenchmarkResult.KIND.plural
_TRACES: Final = BenchmarkTrace.KIND.plural
_ADVICES: Final = PlacementAdvice.KIND.plural


def _benchmarks() -> tuple[str, ...]:
    return tuple(model.KIND.plural for model in BENCHMARKS.values())


def _status(*plurals: str) -> tuple[str, ...]:
    return tuple(f"{plural}/status" for plural in plurals)


def operator_owned_resources() -> tuple[str, ...]:
    """What the operator alone creates and updates, whatever roles permit to others."""
    return (_RESULTS, _TRACES, *_status(_RESULTS, _TRACES, *_benchmarks(), _ADVICES, _NODE_CLASSES))


def permissions() -> tuple[Permission, ...]:
    """Everything that the operator may ask."""
    return (
        Permission(GROUP, (_NODE_CLASSES,), _FOLLOW, Scope.CLUSTER, "Resolves node classes."),
        Permission(GROUP, _status(_NODE_CLASSES), ("patch",), Scope.CLUSTER, "Says what they resolve to."),
        Permission(_CORE, ("nodes",), _FOLLOW, Scope.CLUSTER, "Finds the nodes of a class, and records what they are."),
        Permission(
            GROUP,
            _benchmarks(),
            (*_FOLLOW, "patch", "delete"),
            Scope.NAMESPACED,
            "Runs benchmarks; patches their finalizer, deletes them when runPolicy.ttlSeconds is over.",
        ),
        Permission(GROUP, _status(*_benchmarks()), ("patch",), Scope.NAMESPACED, "Says how they stand."),
        Permission(
            GROUP,
            (_RESULTS,),
            (*_FOLLOW, "create", "delete"),
            Scope.NAMESPACED,
            "Keeps results, within the history.",
        ),
        Permission(GROUP, _status(_RESULTS, _TRACES), ("patch",), Scope.NAMESPACED, "Writes what was measured."),
        Permission(GROUP, (_TRACES,), ("create",), Scope.NAMESPACED, "Keeps traces; never reads one."),
        Permission(GROUP, (_ADVICES,), _FOLLOW, Scope.NAMESPACED, "Sees what is asked."),
        Permission(GROUP, _status(_ADVICES), ("patch",), Scope.NAMESPACED, "Answers."),
        Permission(
            _CORE, ("pods",), (*_FOLLOW, "create", "delete"), Scope.NAMESPACED, "Deploys servers, sees how clients end."
        ),
        Permission(_CORE, ("pods/log",), ("get",), Scope.NAMESPACED, "Reads what clients measured."),
        Permission(_CORE, ("services",), (*_FOLLOW, "create", "delete"), Scope.NAMESPACED, "Gives servers an address."),
        Permission(
            _CORE, ("configmaps",), ("create", "delete"), Scope.NAMESPACED, "Gives servers their configuration."
        ),
        Permission(
            _CORE, ("secrets",), ("create", "delete"), Scope.NAMESPACED, "Makes credentials; never reads a Secret."
        ),
        Permission(
            _CORE,
            ("persistentvolumeclaims",),
            ("create", "delete"),
            Scope.NAMESPACED,
            "Gives servers a volume of a storage class.",
        ),
        Permission(
            "networking.k8s.io",
            ("networkpolicies",),
            ("create", "delete"),
            Scope.NAMESPACED,
            "Keeps strangers from a benchmark's pods.",
        ),
        Permission(_CORE, ("events",), ("create",), Scope.NAMESPACED, "Tells what happened, and why."),
        *(permission for kind in kinds() for permission in kind.permissions),
        Permission("batch", ("jobs",), (*_FOLLOW, "create", "delete"), Scope.NAMESPACED, "Runs clients."),
        Permission(
            GROUP, _benchmarks(), ("list", "delete"), Scope.REMOVAL, "Removes them before their definitions go."
        ),
        Permission(
            "coordination.k8s.io",
            ("leases",),
            ("get", *_FOLLOW, "create", "update", "delete"),
            Scope.LEASES,
            "Keeps nodes for one benchmark at a time, and benchmarks for one operator, across all releases.",
        ),
        Permission("authentication.k8s.io", ("tokenreviews",), ("create",), Scope.METRICS, "Learns who scrapes."),
        Permission(
            "authorization.k8s.io", ("subjectaccessreviews",), ("create",), Scope.METRICS, "Asks whether they may."
        ),
    )


class UserRole(StrEnum):
    """A ClusterRole of Kubernetes' own. Each has what those before it have."""

    VIEW = "view"
    EDIT = "edit"
    ADMIN = "admin"


@dataclass(frozen=True)
class Grant:
    """Verbs on kinds of ours that a role gets, and what for."""

    role: UserRole
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str


_DELETE: Final = ("delete", "deletecollection")


def user_grants() -> tuple[Grant, ...]:
    """Returns what each role grants on the kinds of tierbench."""
    return (
        Grant(
            UserRole.VIEW,
            tuple(model.KIND.plural for model in resource_types()),
            ("get", "list", "watch"),
            "Reads everything; node classes, which have no namespace, where the role is bound for the cluster.",
        ),
        Grant(
            UserRole.EDIT,
            (*_benchmarks(), _ADVICES),
            ("create", "update", "patch", *_DELETE),
            "Asks; statuses are the operator's to write.",
        ),
        Grant(UserRole.ADMIN, (_RESULTS, _TRACES), _DELETE, "Throws away what was measured."),
    )
