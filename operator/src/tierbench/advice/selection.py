"""Which results an advice reads, what it reads of them, and among which alternatives it chooses. Pure.

All that compares classes then compares alternatives: the label of one stands in the place of the node class. What was
chosen is no level any more; of what was not, the server's class becomes one, so that it is held equal like the others.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final, TypeVar, cast

from tierbench.advice.constraints import mean_limits
from tierbench.advice.estimate import percentile_name, with_derived_quantities
from tierbench.advice.tables import NAMED_BY_VALUE, RunResults, runs
from tierbench.api.model import Metadata, Model
from tierbench.api.placement_advice import Dimension, Objective, ObjectiveType, PlacementAdviceSpec
from tierbench.api.result import BenchmarkReference, BenchmarkResult, ResultPhase
from tierbench.results.quantities import RETRIES, levels_and_parameters, rate_quantity, time_quantity
from tierbench.results.units import describe_level, join_words, level_number

Change = Callable[[Sequence[BenchmarkResult]], tuple[BenchmarkResult, ...]]
_NOT_TOLD: Final[set[str]] = set()
_UNUSED: Final = frozenset({"display", "pairShares"})
Shared = TypeVar("Shared", bound=Model)
CLIENT_CLASS: Final = "clientClass"
ACCESS_NETWORK: Final = "accessNetwork"
Settings = Mapping[str, str]
"""Levels of what is chosen, by name."""


@dataclass(frozen=True)
class Selection:
    """The newest run of each benchmark, and the run before it. A run that is not over yields to the one before."""

    current: tuple[RunResults, ...]
    before: tuple[RunResults, ...]

    @property
    def results(self) -> tuple[BenchmarkResult, ...]:
        """Those that the answer rests on."""
        return tuple(result for run in self.current for result in run.results)

    def map_results(self, change: Change) -> "Selection":
        """The same with the results of each run changed."""
        return Selection(_changed(self.current, change), _changed(self.before, change))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of their benchmarks."""
        return tuple(sorted({run.benchmark.kind for run in self.current}))


def _changed(found: Sequence[RunResults], change: Change) -> tuple[RunResults, ...]:
    return tuple(replace(run, results=change(run.results)) for run in found)


def select(spec: PlacementAdviceSpec, results: Iterable[BenchmarkResult]) -> Selection:
    """What the spec chooses."""
    histories: dict[tuple[str, str, str], list[RunResults]] = {}
    for run in runs(result for result in results if _chosen(spec, result)):
        histories.setdefault((run.namespace, run.benchmark.kind, run.benchmark.name), []).append(run)
    kept = [_finished(history) for history in histories.values()]
    return Selection(tuple(history[-1] for history in kept), tuple(history[-2] for history in kept if len(history) > 1))


def _chosen(spec: PlacementAdviceSpec, result: BenchmarkResult) -> bool:
    names, labels = spec.benchmarks.names, result.metadata.labels
    return (
        result.spec.client.node_class == spec.client_class
        and (not names or result.spec.benchmark.name in names)
        and all(labels.get(key) == value for key, value in spec.benchmarks.match_labels.items())
    )


def _finished(history: Sequence[RunResults]) -> Sequence[RunResults]:
    running = any(result.status.phase is ResultPhase.RUNNING for result in history[-1].results)
    return history[:-1] if running and len(history) > 1 else history


def quantities_read(spec: PlacementAdviceSpec, kind: str, there: Container[str]) -> tuple[str, ...]:
    """The quantities that the answer rests on, of those that are `there`."""
    limited = (limit.quantity for limit in mean_limits(spec.constraints, kind, there))
    return (quantity_of(objective_of(spec), kind, there), *limited)


def quantity_of(objective: Objective, kind: str, there: Container[str]) -> str:
    """What alternatives are ranked by, of the quantities that are `there`."""
    if objective.type is ObjectiveType.PERCENTILE and objective.percentile is not None:
        return percentile_name(time_quantity(kind, there), objective.percentile)
    if objective.type is ObjectiveType.RETRIES:
        return RETRIES
    return rate_quantity(kind) if objective.type is ObjectiveType.THROUGHPUT else time_quantity(kind, there)


def objective_of(spec: PlacementAdviceSpec) -> Objective:
    """The objective of an advice, by default the throughput, or the mean time over a workload."""
    default = ObjectiveType.THROUGHPUT if spec.workload is None else ObjectiveType.MEAN_TIME
    return spec.objective or Objective(type=default)


def project_result(spec: PlacementAdviceSpec, raw: Mapping[str, Any]) -> BenchmarkResult:
    """A stored result, with what the answer needs. The rest is not looked at either: that would take longer than the
    answer.

    Raises:
        ValidationError: what is needed cannot be understood.
    """
    result = BenchmarkResult.model_validate({**raw, "status": _needed(spec, raw)})
    quantities = quantities_read(spec, result.spec.benchmark.kind, result.status.statistics)
    metadata, asked, status = result.metadata, result.spec, with_derived_quantities(result, quantities).status
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


@dataclass(frozen=True)
class Choice:
    """`dimensions` are chosen among; `results` are all that are meant, and factors that are `named` stay levels.

    A factor that only some alternatives have, as Kafka's codec, can be held equal for none: with several levels it is
    chosen, too, and with one it goes without saying.
    """

    dimensions: tuple[str, ...]
    results: Sequence[BenchmarkResult]
    named: frozenset[str] = frozenset()

    @property
    def of_classes(self) -> bool:
        """Whether the node class is among what is chosen."""
        return Dimension.NODE_CLASS in self.dimensions

    @property
    def noun(self) -> str:
        """What an alternative is called."""
        return "class" if self.dimensions == (Dimension.NODE_CLASS,) else "choice"

    @cached_property
    def alternatives(self) -> Mapping[str, Settings]:
        """Every alternative, by its label."""
        every = {tuple(settings.items()): settings for settings in map(self.settings, self.results)}
        return {alternative_name(settings): settings for settings in every.values() if settings}

    def relabel(self, results: Sequence[BenchmarkResult]) -> tuple[BenchmarkResult, ...]:
        """The results, each as one of its alternative; those that have nothing of what is chosen are left out."""
        if self.noun == "class":
            return tuple(results)
        return tuple(self._as_one_of(result, settings) for result in results if (settings := self.settings(result)))

    def _as_one_of(self, result: BenchmarkResult, settings: Settings) -> BenchmarkResult:
        spec, gone = result.spec, self.absorbed_factors
        held = {} if self.of_classes else {Dimension.NODE_CLASS.value: spec.server.node_class}
        update = {
            "server": spec.server.model_copy(update={"node_class": alternative_name(settings)}),
            "levels": held | {name: level for name, level in spec.levels.items() if name not in gone},
            "conditions": {name: level for name, level in spec.conditions.items() if name not in gone},
        }
        return result.model_copy(update={"spec": spec.model_copy(update=update)})

    @cached_property
    def absorbed_factors(self) -> frozenset[str]:
        """The factors that are no level any more: what is chosen, and what goes without saying with it."""
        return frozenset({*self.dimensions, *self._dependent_factors})

    def settings(self, result: BenchmarkResult) -> Settings:
        """Which alternative a result is one of; nothing if it has nothing of what is chosen."""
        levels = attributes_of(result)
        chosen = {name: levels[name] for name in self.dimensions if name in levels}
        own = {
            name: levels[name] for name, known in self._dependent_factors.items() if len(known) > 1 and name in levels
        }
        return chosen | own if chosen else {}

    @cached_property
    def _dependent_factors(self) -> Mapping[str, frozenset[str]]:
        """The factors that some alternatives have and others have not, and their levels."""
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
    """All that results may differ in, by name: classes, the access network of the client, levels and conditions."""
    spec = result.spec
    return {
        Dimension.NODE_CLASS.value: spec.server.node_class,
        CLIENT_CLASS: spec.client.node_class,
        ACCESS_NETWORK: spec.client.access_network,
        **levels_and_parameters(result),
    }


def alternative_name(settings: Settings) -> str:
    """An alternative in words: cloud; mosquitto on cloud with delivery AtMostOnce and TLSv1.3."""
    who = " on ".join(settings[name] for name in NAMED_BY_VALUE if name in settings)
    others = [describe_level(name, level) for name, level in settings.items() if name not in NAMED_BY_VALUE]
    return " with ".join(filter(None, (who, join_words(others))))


def relabelled_run(run: RunResults) -> RunResults:
    """The run as what it compares."""
    choice = run_choice(run)
    return run if choice.of_classes else replace(run, results=choice.relabel(run.results))


def run_choice(run: RunResults) -> Choice:
    """What a run compares, as a choice."""
    return Choice((compared_factor(run),), run.results)


def compared_factor(run: RunResults) -> str:
    """What its answer compares: classes, or with one server class the first setting of words that varies. UDP is as
    fast as it is told to be, so TCP is no alternative to it.
    """
    varying = (
        name for name in Dimension if name is not Dimension.PROTOCOL and _is_varied_setting(run.factors.get(name, ()))
    )
    return Dimension.NODE_CLASS if len(run.classes) != 1 else next(varying, Dimension.NODE_CLASS)


def _is_varied_setting(levels: Sequence[str]) -> bool:
    return len(levels) > 1 and any(level_number(level) is None for level in levels)
