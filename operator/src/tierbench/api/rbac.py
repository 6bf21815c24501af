"""The permissions of the operator and of users on tierbench's kinds. The chart's RBAC is generated from these
tables."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tierbench.api.model import GROUP
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.record import BenchmarkRecord
from tierbench.api.result import BenchmarkResult
from tierbench.api.schema import resource_types
from tierbench.kinds.registry import BENCHMARKS, kinds


class Scope(StrEnum):
    """The scope of a permission."""

    CLUSTER = "Cluster"
    NAMESPACED = "Namespaced"
    LEASES = "Leases"
    REMOVAL = "Removal"
    """The whole cluster, for the account that removes all benchmarks before the CRDs are deleted."""
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
_RECORDS: Final = BenchmarkRecord.KIND.plural
_ADVICES: Final = PlacementAdvice.KIND.plural


def _benchmarks() -> tuple[str, ...]:
    return tuple(model.KIND.plural for model in BENCHMARKS.values())


def _status(*plurals: str) -> tuple[str, ...]:
    return tuple(f"{plural}/status" for plural in plurals)


def operator_owned_resources() -> tuple[str, ...]:
    """Returns the resources that only the operator may create and update, even if a role permits it to others."""
    return (_RESULTS, _RECORDS, *_status(_RESULTS, _RECORDS, *_benchmarks(), _ADVICES, _NODE_CLASSES))


def permissions() -> tuple[Permission, ...]:
    """Returns all permissions of the operator."""
    return (
        Permission(GROUP, (_NODE_CLASSES,), _FOLLOW, Scope.CLUSTER, "Resolves node classes."),
        Permission(GROUP, _status(_NODE_CLASSES), ("patch",), Scope.CLUSTER, "Writes the nodes of a class."),
        Permission(
            _CORE, ("nodes",), _FOLLOW, Scope.CLUSTER, "Finds the nodes of a class, and records their properties."
        ),
        Permission(
            GROUP,
            _benchmarks(),
            (*_FOLLOW, "patch", "delete"),
            Scope.NAMESPACED,
            "Runs benchmarks, patches their finalizer, and deletes them after runPolicy.ttlSecondsAfterFinished.",
        ),
        Permission(GROUP, _status(*_benchmarks()), ("patch",), Scope.NAMESPACED, "Writes the state of benchmarks."),
        Permission(
            GROUP,
            (_RESULTS,),
            (*_FOLLOW, "create", "patch", "delete"),
            Scope.NAMESPACED,
            "Keeps results, within the history, and labels those of superseded runs.",
        ),
        Permission(GROUP, _status(_RESULTS, _RECORDS), ("patch",), Scope.NAMESPACED, "Writes what was measured."),
        Permission(
            GROUP,
            (_RECORDS,),
            ("get", "create", "delete"),
            Scope.NAMESPACED,
            "Keeps the trials of each result, and reads those of cases that are being measured.",
        ),
        Permission(GROUP, (_ADVICES,), _FOLLOW, Scope.NAMESPACED, "Reads questions."),
        Permission(GROUP, _status(_ADVICES), ("patch",), Scope.NAMESPACED, "Writes answers."),
        Permission(
            _CORE,
            ("pods",),
            (*_FOLLOW, "create", "delete"),
            Scope.NAMESPACED,
            "Deploys servers, and sees how clients end.",
        ),
        Permission(_CORE, ("pods/log",), ("get",), Scope.NAMESPACED, "Reads what clients measured."),
        Permission(_CORE, ("services",), (*_FOLLOW, "create", "delete"), Scope.NAMESPACED, "Gives servers an address."),
        Permission(
            _CORE, ("configmaps",), ("create", "delete"), Scope.NAMESPACED, "Gives servers their configuration."
        ),
        Permission(
            _CORE,
            ("secrets",),
            ("create", "delete"),
            Scope.NAMESPACED,
            "Creates credentials, and never reads a Secret.",
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
            "Isolates the pods of a benchmark.",
        ),
        Permission(_CORE, ("events",), ("create",), Scope.NAMESPACED, "Reports what happened, and why."),
        *(permission for kind in kinds() for permission in kind.permissions),
        Permission("batch", ("jobs",), (*_FOLLOW, "create", "delete"), Scope.NAMESPACED, "Runs clients."),
        Permission(
            GROUP, _benchmarks(), ("list", "delete"), Scope.REMOVAL, "Removes benchmarks before the CRDs are deleted."
        ),
        Permission(
            "coordination.k8s.io",
            ("leases",),
            ("get", *_FOLLOW, "create", "update", "delete"),
            Scope.LEASES,
            "Reserves nodes for one benchmark at a time, and benchmarks for one operator, across all releases.",
        ),
        Permission(
            "authentication.k8s.io", ("tokenreviews",), ("create",), Scope.METRICS, "Authenticates who reads metrics."
        ),
        Permission(
            "authorization.k8s.io",
            ("subjectaccessreviews",),
            ("create",),
            Scope.METRICS,
            "Checks whether they are authorized.",
        ),
    )


class UserRole(StrEnum):
    """A built-in ClusterRole. Each one includes the grants of those before it."""

    VIEW = "view"
    EDIT = "edit"
    ADMIN = "admin"


@dataclass(frozen=True)
class Grant:
    """Verbs on tierbench's kinds that a role gets, and their purpose."""

    role: UserRole
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str


_DELETE: Final = ("delete", "deletecollection")


def user_grants() -> tuple[Grant, ...]:
    """Returns what each built-in role grants on the kinds of tierbench."""
    return (
        Grant(
            UserRole.VIEW,
            tuple(model.KIND.plural for model in resource_types()),
            ("get", "list", "watch"),
            "Reads everything. Node classes have no namespace, so they need a ClusterRoleBinding.",
        ),
        Grant(
            UserRole.EDIT,
            (*_benchmarks(), _ADVICES),
            ("create", "update", "patch", *_DELETE),
            "Creates and changes benchmarks and advices. Only the operator writes a status.",
        ),
        Grant(UserRole.ADMIN, (_RESULTS, _RECORDS), _DELETE, "Deletes what was measured."),
    )
