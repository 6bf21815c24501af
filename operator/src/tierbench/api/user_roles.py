"""What users may do with our kinds: the table behind what the chart adds to Kubernetes' own view, edit and admin."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tierbench.api.kinds import KINDS
from tierbench.api.model import Resource
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.result import BenchmarkResult
from tierbench.api.trace import BenchmarkTrace
from tierbench.kinds.registry import BENCHMARKS


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


_ASKED: Final[tuple[type[Resource], ...]] = (*BENCHMARKS.values(), PlacementAdvice)
_MEASURED: Final = (BenchmarkResult, BenchmarkTrace)
_DELETE: Final = ("delete", "deletecollection")

GRANTS: Final = (
    Grant(
        UserRole.VIEW,
        tuple(model.KIND.plural for model in KINDS),
        ("get", "list", "watch"),
        "Reads everything; node classes, which have no namespace, where the role is bound for the cluster.",
    ),
    Grant(
        UserRole.EDIT,
        tuple(model.KIND.plural for model in _ASKED),
        ("create", "update", "patch", *_DELETE),
        "Asks; statuses are the operator's to write.",
    ),
    Grant(
        UserRole.ADMIN,
        tuple(model.KIND.plural for model in _MEASURED),
        _DELETE,
        "Throws away what was measured.",
    ),
)
