"""Results with no more than an answer needs: ten thousand of them fit into a small operator."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

from tierbench.advice.advise import quantities_read
from tierbench.advice.derived import with_quantities
from tierbench.api.model import Metadata, Model
from tierbench.api.placement_advice import PlacementAdviceSpec
from tierbench.api.result import BenchmarkReference, BenchmarkResult

_NOT_TOLD: Final[set[str]] = set()
_UNUSED: Final = frozenset({"display", "pairShares"})

Shared = TypeVar("Shared", bound=Model)


def essence(spec: PlacementAdviceSpec, raw: Mapping[str, Any]) -> BenchmarkResult:
    """A stored result, with what the answer needs. The rest is not looked at either: that would take longer than the
    answer.

    Raises:
        ValidationError: what is needed cannot be understood.
    """
    result = BenchmarkResult.model_validate({**raw, "status": _needed(spec, raw)})
    quantities = quantities_read(spec, result.spec.benchmark.kind, result.status.statistics)
    metadata, asked, status = result.metadata, result.spec, with_quantities(result, quantities).status
    every = _needs_every_trial(spec)
    known = Metadata(name=metadata.name, namespace=metadata.namespace, labels=metadata.labels)
    places = {
        "benchmark": _shared(asked.benchmark),
        "levels": _shared_levels(tuple(asked.levels.items())),
        "conditions": _shared_levels(tuple(asked.conditions.items())),
        "server": _shared(asked.server),
        "client": _shared(asked.client),
        "service": None,
    }
    numbers = {
        "trials": tuple(
            trial.model_copy(update={"server": None}) for trial in status.trials if every or trial.failure is not None
        ),
        "statistics": {name: _light(status.statistics[name]) for name in quantities if name in status.statistics},
        "counts": _light(status.counts),
        "engine": None if status.engine is None else _shared(status.engine),
    }
    return _light(result, metadata=_light(known), spec=_light(asked, **places), status=_light(status, **numbers))


def _light(one: Shared, **changes: Any) -> Shared:
    """The same with changes, and without a set of its own of the fields that were given: that is a third of it."""
    return cast(Shared, type(one).model_construct(_NOT_TOLD, **{**vars(one), **changes}))


def _needed(spec: PlacementAdviceSpec, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Of a status, as it is stored, what the answer comes from."""
    status = {name: part for name, part in raw.get("status", {}).items() if name not in _UNUSED}
    if _needs_every_trial(spec):
        return status
    status.pop("distributions", None)
    there = status.get("statistics", {})
    quantities = quantities_read(spec, BenchmarkReference.model_validate(raw["spec"]["benchmark"]).kind, there)
    if any(name not in there for name in quantities):
        return status
    status["statistics"] = {name: there[name] for name in quantities}
    status["trials"] = [trial for trial in status.get("trials", ()) if "failure" in trial]
    return status


def _needs_every_trial(spec: PlacementAdviceSpec) -> bool:
    return spec.constraints.maximum_p99_milliseconds is not None


@lru_cache(maxsize=4096)
def _shared(one: Shared) -> Shared:
    """One object for all that are equal."""
    return one


@lru_cache(maxsize=4096)
def _shared_levels(levels: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return dict(levels)
