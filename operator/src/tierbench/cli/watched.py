"""Whether an operator watches a namespace, in words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

ANNOTATION: Final = "tierbench.io/watch-namespaces"
"""On the ClusterRole of each release of the chart: the namespaces that it watches; empty for all."""


@dataclass(frozen=True)
class Watched:
    """The namespaces that operators watch, as far as the user may read it. `known` is False where no release says."""

    namespaces: tuple[str, ...] = ()
    known: bool = False
    everywhere: bool = False

    def misses(self, namespace: str) -> bool:
        """Whether it is certain that no operator watches this namespace."""
        return self.known and not self.everywhere and namespace not in self.namespaces


def watched(roles: Iterable[Mapping[str, Any]]) -> Watched:
    """What the metadata of all ClusterRoles say."""
    annotations = [role.get("annotations") or {} for role in roles]
    found = [each[ANNOTATION] for each in annotations if ANNOTATION in each]
    names = sorted({name for text in found for name in text.split(",") if name})
    return Watched(tuple(names), known=bool(found), everywhere="" in found)


def not_watched(found: Watched, namespace: str) -> str:
    """That no operator watches the namespace, and what to do."""
    return (
        f"The operator does not watch namespace {namespace}, only {', '.join(found.namespaces)}: use a namespace that "
        f"it watches, or have {namespace} added to watchNamespaces, a value of the chart."
    )


def no_status(found: Watched, name: str, namespace: str, seconds: float) -> str:
    """Why a benchmark may have no status after this time, and what to do."""
    symptom = f"{name} has no status after {seconds:.0f} s."
    if found.misses(namespace):
        return f"{symptom} {not_watched(found, namespace)}"
    if found.known:
        return (
            f"{symptom} An operator is installed for namespace {namespace}, but does not answer: see `kubectl get pods "
            "-A -l app.kubernetes.io/name=tierbench`."
        )
    return (
        f"{symptom} Either the operator does not watch namespace {namespace}, or it does not run. Ask the person who "
        f"installed tierbench whether watchNamespaces, a value of the chart, lists {namespace}."
    )
