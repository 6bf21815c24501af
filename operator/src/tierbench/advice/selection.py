"""Selects what an advice reads: runs, results, the needed fields of these, and the alternatives that it compares.

Code that compares classes also compares alternatives. A result is relabelled: the name of its alternative takes the
place of the node class. The factors of the alternative are no levels then. Unless the class is chosen too, it becomes a
level.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final, TypeVar

from tierbench.advice.requirements import canonical_level, mean_limits
from tierbench.advice.tables import (
    RunResults,
    is_named_by_level,
    runs,
    sort_levels,
    with_derived_quantities,
)
from tierbench.api.model import Metadata, Model
from tierbench.api.placement_advice import Dimension, Objective, ObjectiveType, PlacementAdviceSpec
from tierbench.api.record import BenchmarkReference
from tierbench.api.result import BenchmarkResult, ResultPhase
from tierbench.results.quantities import (
    RETRIES,
    levels_and_parameters,
    percentile_name,
    rate_quantity,
    time_quantity,
)
from tierbench.results.units import describe_level, factor_traits, join_words, level_number

Change = Callable[[Sequence[BenchmarkResult]], tuple[BenchmarkResult, ...]]
_NO_FIELDS: Final[set[str]] = set()
ModelType = TypeVar("ModelType", bound=Model)
MAX_LEVELS: Final = 8
"""The most levels of a factor that are compared."""
MAX_READINGS: Final = 1000
"""The most readings that are compared. With more readings, fewer levels of each factor are compared."""
_FEWER_LEVELS: Final = (MAX_LEVELS, 6, 5, 4, 3, 2)
CLIENT_CLASS: Final = "clientClass"
ACCESS_NETWORK: Final = "accessNetwork"
Settings = Mapping[str, str]
"""The levels that define an alternative, by factor."""


@dataclass(frozen=True)
class Selection:
    """The newest run of each benchmark and the run before it. A run that is not finished is left out."""

    current: tuple[RunResults, ...]
    before: tuple[RunResults, ...]

    @property
    def results(self) -> tuple[BenchmarkResult, ...]:
        """The results that the answer is computed from."""
        return tuple(result for run in self.current for result in run.results)

    def map_results(self, change: Change) -> "Selection":
        """Returns the selection with the results of each run replaced by what `change` makes of them."""
        current, before = (
            tuple(replace(run, results=change(run.results)) for run in found) for found in (self.current, self.before)
        )
        return Selection(current, before)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the benchmarks."""
        return tuple(sorted({run.benchmark.kind for run in self.current}))


def select(spec: PlacementAdviceSpec, results: Iterable[BenchmarkResult]) -> Selection:
    """Returns the runs that the spec of an advice selects."""
    histories: dict[tuple[str, str, str], list[RunResults]] = {}
    for run in runs(result for result in results if _chosen(spec, result)):
        histories.setdefault((run.namespace, run.benchmark.kind, run.benchmark.name), []).append(run)
    kept = [_finished(history) for history in histories.values()]
    return Selection(tuple(history[-1] for history in kept), tuple(history[-2] for history in kept if len(history) > 1))


def _chosen(spec: PlacementAdviceSpec, result: BenchmarkResult) -> bool:
    names, labels = spec.benchmarks.names, result.metadata.labels
    return (
        result.spec.client.node_class == spec.client_class_name
        and (not names or result.spec.benchmark.name in names)
        and all(labels.get(key) == value for key, value in spec.benchmarks.match_labels.items())
    )


def _finished(history: Sequence[RunResults]) -> Sequence[RunResults]:
    """Returns the runs of a benchmark without those that are not complete, unless there is no other run."""
    history = [run for run in history if not run.superseded] or history
    running = any(result.status.phase is ResultPhase.RUNNING for result in history[-1].results)
    return history[:-1] if running and len(history) > 1 else history


def quantities_read(spec: PlacementAdviceSpec, kind: str, there: Container[str]) -> tuple[str, ...]:
    """Returns the quantities that an advice reads; `there` are the quantities that results have."""
    limited = (limit.quantity for limit in mean_limits(spec.constraints, kind, there))
    return (quantity_of(objective_of(spec), kind, there), *limited)


def quantity_of(objective: Objective, kind: str, there: Container[str]) -> str:
    """Returns the quantity that alternatives are ranked by; `there` are the quantities that results have."""
    if objective.type is ObjectiveType.PERCENTILE and objective.percentile is not None:
        return percentile_name(time_quantity(kind, there), objective.percentile)
    if objective.type is ObjectiveType.RETRIES:
        return RETRIES
    return rate_quantity(kind) if objective.type is ObjectiveType.THROUGHPUT else time_quantity(kind, there)


def objective_of(spec: PlacementAdviceSpec) -> Objective:
    """Returns the objective of an advice. The default is the mean time over a workload, and throughput without one."""
    default = ObjectiveType.THROUGHPUT if spec.workload is None else ObjectiveType.MEAN_TIME
    return spec.objective or Objective(type=default)


def project_result(spec: PlacementAdviceSpec, raw: Mapping[str, Any]) -> BenchmarkResult:
    """Returns a stored result with only the statistics that the advice reads. Others are not validated.

    Raises:
        ValidationError: a field that is needed is invalid.
    """
    status = dict(raw.get("status", {}))
    there = status.get("statistics", {})
    kind = BenchmarkReference.model_validate(raw["spec"]["benchmark"]).kind
    quantities = quantities_read(spec, kind, there)
    bases = (quantities, (time_quantity(kind, there),))
    status["statistics"] = {name: there[name] for names in bases for name in names if name in there}
    valid = BenchmarkResult.model_validate({**raw, "status": status}, by_name=False)
    result = with_derived_quantities(valid, quantities)
    metadata, asked, found = result.metadata, result.spec, result.status
    known = Metadata(name=metadata.name, namespace=metadata.namespace, labels=metadata.labels)
    places = {
        "benchmark": _shared(asked.benchmark),
        "levels": _shared_levels(tuple(asked.levels.items())),
        "settings": _shared_levels(tuple(asked.settings.items())),
        "server": _shared(asked.server),
        "client": _shared(asked.client),
        "service": None,
    }
    numbers = {
        "statistics": {name: _changed(one) for name, one in found.statistics.items()},
        "percentiles": {name: _changed(one) for name, one in found.percentiles.items()},
        "counts": _changed(found.counts),
        "engine": None if found.engine is None else _shared(found.engine),
    }
    return _changed(result, metadata=_changed(known), spec=_changed(asked, **places), status=_changed(found, **numbers))


def _changed(one: ModelType, **changes: Any) -> ModelType:
    """Changes an object that only its caller has, and returns it.

    All share one set of given fields, which saves a third of the memory. Copies would take a quarter of the time.
    """
    vars(one).update(changes)
    object.__setattr__(one, "__pydantic_fields_set__", _NO_FIELDS)
    return one


@lru_cache(maxsize=4096)
def _shared(one: ModelType) -> ModelType:
    """Returns one object for all equal ones."""
    return one


@lru_cache(maxsize=4096)
def _shared_levels(levels: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return dict(levels)


@dataclass(frozen=True)
class Choice:
    """The alternatives among results: the combinations of levels of the factors `dimensions`.

    A factor that only some alternatives have, such as the codec of Kafka, cannot be held equal. With several levels it
    becomes part of the alternative; with one level it is dropped. Factors that are `named` always stay levels.
    """

    dimensions: tuple[str, ...]
    results: Sequence[BenchmarkResult]
    named: frozenset[str] = frozenset()

    @property
    def of_classes(self) -> bool:
        """Whether alternatives differ in their node class."""
        return Dimension.NODE_CLASS in self.dimensions

    @property
    def noun(self) -> str:
        """The noun for an alternative in messages."""
        return "class" if self.dimensions == (Dimension.NODE_CLASS,) else "choice"

    @cached_property
    def alternatives(self) -> Mapping[str, Settings]:
        """The settings of every alternative, by its name."""
        every = {tuple(settings.items()): settings for settings in map(self.settings, self.results)}
        return {alternative_name(settings): settings for settings in every.values() if settings}

    def relabel(self, results: Sequence[BenchmarkResult]) -> tuple[BenchmarkResult, ...]:
        """Returns results with their alternative in place of the node class, without those that have no alternative."""
        if self.noun == "class":
            return tuple(results)
        return tuple(self._relabelled(result, settings) for result in results if (settings := self.settings(result)))

    def _relabelled(self, result: BenchmarkResult, settings: Settings) -> BenchmarkResult:
        spec, absorbed = result.spec, self.absorbed_factors
        held = {} if self.of_classes else {Dimension.NODE_CLASS.value: spec.server.node_class}
        update = {
            "server": spec.server.model_copy(update={"node_class": alternative_name(settings)}),
            "levels": held | {name: level for name, level in spec.levels.items() if name not in absorbed},
            "settings": {name: level for name, level in spec.settings.items() if name not in absorbed},
        }
        return result.model_copy(update={"spec": spec.model_copy(update=update)})

    @cached_property
    def absorbed_factors(self) -> frozenset[str]:
        """The factors that are no level of a relabelled result."""
        return frozenset({*self.dimensions, *self._dependent_factors})

    def settings(self, result: BenchmarkResult) -> Settings:
        """Returns the settings of the alternative that a result belongs to; empty if it has none of the dimensions."""
        levels = attributes_of(result)
        chosen = {name: levels[name] for name in self.dimensions if name in levels}
        own = {
            name: levels[name] for name, known in self._dependent_factors.items() if len(known) > 1 and name in levels
        }
        return chosen | own if chosen else {}

    @cached_property
    def _dependent_factors(self) -> Mapping[str, frozenset[str]]:
        """The factors that only some alternatives have, with their levels."""
        if self.noun == "class":
            return {}
        having: dict[tuple[str | None, ...], set[str]] = {}
        found: dict[str, set[str]] = {}
        for result in self.results:
            levels = attributes_of(result)
            names = having.setdefault(tuple(map(levels.get, self.dimensions)), set())
            for name, level in result.spec.levels.items():
                names.add(name)
                found.setdefault(name, set()).add(level)
        shared = set.intersection(*having.values()) if having else set()
        return {name: frozenset(found[name]) for name in found.keys() - shared - self.named - {*self.dimensions}}


def attributes_of(result: BenchmarkResult) -> dict[str, str]:
    """Returns all that results may differ in, by name: classes, access network of the client, levels and conditions."""
    spec = result.spec
    return {
        Dimension.NODE_CLASS.value: spec.server.node_class,
        CLIENT_CLASS: spec.client.node_class,
        ACCESS_NETWORK: spec.client.access_network,
        **levels_and_parameters(result),
    }


def alternative_name(settings: Settings) -> str:
    """Returns the name of an alternative, such as "cloud" or "mosquitto on cloud with delivery AtMostOnce"."""
    names = sorted(filter(is_named_by_level, settings), key=lambda name: name == Dimension.NODE_CLASS)
    others = [describe_level(name, level) for name, level in settings.items() if name not in names]
    return " with ".join(filter(None, (" on ".join(settings[name] for name in names), join_words(others))))


def relabelled_run(run: RunResults) -> RunResults:
    """Returns the run with its results relabelled by what the run compares."""
    choice = run_choice(run)
    return run if choice.of_classes else replace(run, results=choice.relabel(run.results))


def run_choice(run: RunResults) -> Choice:
    """Returns the alternatives that a run compares."""
    return Choice((compared_factor(run),), run.results)


def compared_factor(run: RunResults) -> str:
    """Returns the factor that a run compares: the node class, or with one class the first setting that varies."""
    if len(run.classes) != 1:
        return Dimension.NODE_CLASS
    competing = (name for name in Dimension if factor_traits(name).competing)
    return next((name for name in competing if _is_varied_setting(run.factors.get(name, ()))), Dimension.NODE_CLASS)


def _is_varied_setting(levels: Sequence[str]) -> bool:
    """Returns whether a factor varies and its levels are words."""
    return len(levels) > 1 and any(level_number(level) is None for level in levels)


def kept_levels(every: Sequence[Settings]) -> Mapping[str, frozenset[str]]:
    """Returns the levels to compare, for each factor that has too many levels."""
    factors = varying_levels(every)
    kept: dict[str, frozenset[str]] = {}
    for most in _FEWER_LEVELS:
        many = {name: levels for name, levels in factors.items() if len(levels) > most}
        kept = {name: frozenset(map(canonical_level, _spread(levels, most))) for name, levels in many.items()}
        if sum(is_kept(levels, kept) for levels in every) <= MAX_READINGS:
            break
    return kept


def is_kept(levels: Settings, kept: Mapping[str, frozenset[str]]) -> bool:
    """Returns whether the levels of a result are among those to compare."""
    return all(not levels.get(name) or canonical_level(levels[name]) in some for name, some in kept.items())


def _spread(levels: Sequence[str], number: int) -> list[str]:
    """Returns `number` levels at even distances, including the first and the last one."""
    return [levels[round(index * (len(levels) - 1) / (number - 1))] for index in range(number)]


def varying_levels(every: Sequence[Settings]) -> dict[str, tuple[str, ...]]:
    """Returns the levels of each factor that varies, ascending if they are numbers, else in the order of the cases."""
    found: dict[str, dict[str, str]] = {}
    for levels in every:
        for factor, level in levels.items():
            if level:
                found.setdefault(factor, {}).setdefault(canonical_level(level), level)
    return {factor: sort_levels(tuple(levels.values())) for factor, levels in found.items() if len(levels) > 1}
