"""Objects, as the API server and kubectl give them, become models; and the choice among them."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError

from tierbench.advice.tables import RunResults, newest, runs
from tierbench.api.benchmark import Benchmark
from tierbench.api.model import API_VERSION, GROUP, Resource
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.result import UNKNOWN_KIND, BenchmarkResult, BenchmarkTrace
from tierbench.cli.errors import UnknownKindError, UserError
from tierbench.kinds.registry import BENCHMARKS

Raw = Mapping[str, Any]
Parsed = TypeVar("Parsed", bound=Resource)
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reference:
    """A benchmark as the user names it: `kind` is None if any will do."""

    name: str
    kind: type[Benchmark] | None = None


@dataclass(frozen=True)
class Objects:
    """Results, the specs of benchmarks by kind, namespace and name, questions, and node classes."""

    results: tuple[BenchmarkResult, ...]
    specs: Mapping[tuple[str, str, str], Raw] = field(default_factory=dict)
    advices: tuple[PlacementAdvice, ...] = ()
    classes: tuple[NodeClass, ...] = ()
    traces: tuple[BenchmarkTrace, ...] = ()

    @classmethod
    def together(cls, parts: Sequence["Objects"]) -> "Objects":
        """All of them; a result that is in several counts once."""
        results = {
            (result.metadata.namespace, result.metadata.name, result.metadata.uid): result
            for part in parts
            for result in part.results
        }
        specs = {key: spec for part in parts for key, spec in part.specs.items()}
        advices = tuple(advice for part in parts for advice in part.advices)
        classes = tuple(each for part in parts for each in part.classes)
        return cls(
            tuple(results.values()), specs, advices, classes, tuple(one for part in parts for one in part.traces)
        )


def parse_reference(text: str) -> Reference:
    """`NAME`, or `KIND/NAME` with the kind as kubectl takes it.

    Raises:
        UserError: there is no such kind.
    """
    word, slash, name = text.rpartition("/")
    if not slash:
        return Reference(name)
    for model in BENCHMARKS.values():
        kind = model.KIND
        names = {kind.kind.lower(), kind.singular, kind.plural, f"{kind.plural}.{GROUP}", *kind.short_names}
        if word.lower() in names:
            return Reference(name, model)
    known = ", ".join(model.KIND.singular for model in BENCHMARKS.values())
    raise UserError(f"{word!r} is no kind of benchmark: write KIND/NAME with one of {known}")


def parse_items(items: Iterable[Raw], origin: str) -> Objects:
    """Objects of our kinds; others are passed over, and what is said of a kind of benchmark not known is left out.

    Raises:
        UserError: one of them is damaged.
    """
    results, specs, advices, classes, traces, unknown = [], {}, [], [], [], []
    for number, item in enumerate(items, start=1):
        if not isinstance(item, Mapping):
            raise UserError(f"{origin}: item {number} is not an object: give what `kubectl get results -o json` prints")
        kind, place = item.get("kind"), f"{origin}: item {number}"
        if not _is_ours(item):
            continue
        try:
            _check_version(item, place)
            if kind == BenchmarkResult.KIND.kind:
                results.append(parse_object(BenchmarkResult, item, place))
            elif isinstance(kind, str) and kind in BENCHMARKS:
                metadata = parse_object(BENCHMARKS[kind], item, place).metadata
                specs[kind, metadata.namespace or "default", metadata.name] = item["spec"]
            elif kind == PlacementAdvice.KIND.kind:
                advices.append(parse_object(PlacementAdvice, item, place))
            elif kind == NodeClass.KIND.kind:
                classes.append(parse_object(NodeClass, item, place))
            elif kind == BenchmarkTrace.KIND.kind:
                traces.append(parse_object(BenchmarkTrace, item, place))
        except UnknownKindError as problem:
            unknown.append(problem)
    if unknown:
        _logger.warning("%d left out: %s", len(unknown), unknown[0])
    return Objects(tuple(results), specs, tuple(advices), tuple(classes), tuple(traces))


def _is_ours(item: Raw) -> bool:
    return str(item.get("apiVersion", API_VERSION)).startswith(f"{GROUP}/")


def _check_version(item: Raw, place: str) -> None:
    version = item.get("apiVersion", API_VERSION)
    if version != API_VERSION:
        raise UnknownKindError(f"{place}: {item.get('kind')} is of {version}; use the tierbench version that made it")


def parse_object(model: type[Parsed], item: Raw, origin: str = "the cluster") -> Parsed:
    """One object.

    Raises:
        UnknownKindError: it is of a benchmark of another version's kind.
        UserError: it is damaged, or of another version.
    """
    try:
        return model.model_validate(item)
    except ValidationError as error:
        errors = error.errors()
        first = next((each for each in errors if each["type"] == UNKNOWN_KIND), errors[0])
        metadata = item.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        what = f"{origin}: {model.KIND.kind} {name or 'without a name'}"
        place = ".".join(str(part) for part in first["loc"])
        problem = UnknownKindError if first["type"] == UNKNOWN_KIND else UserError
        raise problem(f"{what}: {place}: {first['msg']}; use the tierbench version that made it") from None


def choose(objects: Objects, text: str | None, namespace: str | None, number: int | None) -> Sequence[RunResults]:
    """The runs that the user asks for: of one benchmark or of all, the newest or a given one.

    Raises:
        UserError: there is none.
    """
    every = [run for run in runs(objects.results) if namespace in {None, run.namespace}]
    if not every:
        place = f" in namespace {namespace}" if namespace else ""
        plurals = ",".join(model.KIND.plural for model in BENCHMARKS.values())
        raise UserError(f"there are no results{place} yet: see `kubectl get {plurals} -A` for what runs")
    chosen = every if text is None else [run for run in every if names(parse_reference(text), run)]
    if not chosen:
        known = ", ".join(sorted({run.benchmark.name for run in every}))
        raise UserError(f"{text} has no results; these have: {known}")
    if number is None:
        return newest(chosen)
    numbered = [run for run in chosen if run.number == number]
    if not numbered:
        known = ", ".join(str(each) for each in sorted({run.number for run in chosen}))
        raise UserError(f"there is no run {number}; these are kept: {known}")
    return numbered


def names(reference: Reference, run: RunResults) -> bool:
    """Whether a reference means the benchmark of a run."""
    kind = reference.kind
    return run.benchmark.name == reference.name and kind in {None, BENCHMARKS[run.benchmark.kind]}
