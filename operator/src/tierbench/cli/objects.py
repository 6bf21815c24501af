"""Reads objects from files and clusters, and selects the runs that a command shows."""

import argparse
import json
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml
from pydantic import ValidationError

from tierbench.advice.requirements import canonical_level
from tierbench.advice.tables import RunResults, newest, runs
from tierbench.api.benchmark import Benchmark
from tierbench.api.model import API_VERSION, GROUP, Resource
from tierbench.api.node_class import NodeClass
from tierbench.api.placement_advice import PlacementAdvice
from tierbench.api.record import UNKNOWN_KIND, BenchmarkRecord
from tierbench.api.result import BenchmarkResult
from tierbench.cli.command import UnknownKindError, UserError, run_with_cluster
from tierbench.kinds.registry import BENCHMARKS
from tierbench.results.published import read_csv
from tierbench.results.quantities import levels_and_parameters
from tierbench.results.units import join_words

Raw = Mapping[str, Any]
Specs = Mapping[tuple[str, str, str], Raw]
"""Specs of benchmarks by kind, namespace and name."""
Parsed = TypeVar("Parsed", bound=Resource)
_logger = logging.getLogger(__name__)
_GIVE: Final = "use the output of `kubectl get results -o json`"
_STANDARD_INPUT: Final = Path("-")
_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Reference:
    """A benchmark as the user names it. A `kind` of None matches every kind."""

    name: str
    kind: type[Benchmark] | None = None


@dataclass(frozen=True)
class Objects:
    """The objects that a command reads."""

    results: tuple[BenchmarkResult, ...]
    specs: Specs = field(default_factory=dict)
    advices: tuple[PlacementAdvice, ...] = ()
    classes: tuple[NodeClass, ...] = ()
    records: tuple[BenchmarkRecord, ...] = ()

    @classmethod
    def merge(cls, parts: Sequence["Objects"]) -> "Objects":
        """Returns the objects of all parts. A result that is in several parts counts once."""
        results = {
            (result.metadata.namespace, result.metadata.name, result.metadata.uid): result
            for part in parts
            for result in part.results
        }
        return cls(
            tuple(results.values()),
            {key: spec for part in parts for key, spec in part.specs.items()},
            tuple(advice for part in parts for advice in part.advices),
            tuple(each for part in parts for each in part.classes),
            tuple(record for part in parts for record in part.records),
        )


def select_runs(options: argparse.Namespace, *, records: bool = True) -> tuple[Sequence[RunResults], Specs]:
    """Returns the runs that the arguments select, and the specs of their benchmarks as far as they are known.

    With `records`, each result has its record, if there is one. Those in files are always used.

    Raises:
        UserError: no run or case matches, or the objects cannot be read.
    """
    objects, namespace = read_objects(options, options.name)
    selected, found = _select(options, objects, namespace), objects.records
    if records and not options.source:
        found = run_with_cluster(options, lambda cluster: cluster.records(selected))
    known = {_key(record): record for record in found}
    return [_with_records(run, known) for run in selected] if known else selected, objects.specs


def _with_records(run: RunResults, known: Mapping[tuple[str, str], BenchmarkRecord]) -> RunResults:
    joined = (result.model_copy(update={"record": known.get(_key(result))}) for result in run.results)
    return replace(run, results=tuple(joined))


def _key(item: Resource) -> tuple[str, str]:
    """Returns what a result and its record have in common."""
    return item.metadata.namespace or "default", item.metadata.name


def _select(options: argparse.Namespace, objects: Objects, namespace: str | None) -> Sequence[RunResults]:
    """Returns the selected runs, each with the selected results only."""
    of_runs = _runs(objects, options.name, namespace, options.number)
    selected = [
        replace(run, results=matching)
        for run in of_runs
        if (matching := tuple(result for result in run.results if _matches(options, result)))
    ]
    if not selected:
        classes = join_words(list(dict.fromkeys(name for run in of_runs for name in (*run.classes, *run.clients))))
        levels = "; ".join(f"{name} {', '.join(all_)}" for run in of_runs for name, all_ in run.factors.items())
        raise UserError(f"no case matches; the node classes are {classes}, and the levels are {levels}")
    return selected


def _matches(options: argparse.Namespace, result: BenchmarkResult) -> bool:
    """Returns whether a result has the classes and levels that the arguments name."""
    spec = result.spec
    return (
        options.server_class in {None, spec.server.node_class}
        and options.client_class in {None, spec.client.node_class}
        and all(
            canonical_level(levels_and_parameters(result).get(factor, "")) == canonical_level(level)
            for factor, level in options.where
        )
    )


def _runs(objects: Objects, text: str | None, namespace: str | None, number: int | None) -> Sequence[RunResults]:
    """Returns the newest run, or the run of this number, of one benchmark or of all."""
    every = [run for run in runs(objects.results) if namespace in {None, run.namespace}]
    if not every:
        place = f" in namespace {namespace}" if namespace else ""
        plurals = ",".join(model.KIND.plural for model in BENCHMARKS.values())
        raise UserError(f"there are no results{place} yet: see `kubectl get {plurals} -A` for the state of benchmarks")
    found = every if text is None else [run for run in every if is_run_of(parse_reference(text), run)]
    if not found:
        known = ", ".join(sorted({run.benchmark.name for run in every}))
        raise UserError(f"{text} has no results; these benchmarks have: {known}")
    if number is None:
        return newest(found)
    numbered = [run for run in found if run.number == number]
    if not numbered:
        known = ", ".join(str(each) for each in sorted({run.number for run in found}))
        raise UserError(f"there is no run {number}; the results have these runs: {known}")
    return numbered


def is_run_of(reference: Reference, run: RunResults) -> bool:
    """Returns whether a reference matches the benchmark of a run."""
    kind = reference.kind
    return run.benchmark.name == reference.name and kind in {None, BENCHMARKS[run.benchmark.kind]}


def read_objects(options: argparse.Namespace, name: str | None = None) -> tuple[Objects, str | None]:
    """Returns the objects and the namespace to use, from the files of --from or from the cluster.

    A `name` limits the results that are read from a cluster to those of that benchmark.

    Raises:
        UserError: the objects cannot be read.
    """
    if options.source:
        return read_files(options.source), namespace_of_files(options)
    reference = None if name is None else parse_reference(name)
    return run_with_cluster(
        options, lambda cluster: cluster.read(reference, options.selector, everywhere=options.all_namespaces)
    )


def namespace_of_files(options: argparse.Namespace) -> str | None:
    """Returns the namespace of the objects to use from files, None for all.

    Raises:
        UserError: the arguments select objects by label.
    """
    if options.selector:
        raise UserError("--selector is for a cluster: use `kubectl get results --selector` to write the file")
    return None if options.all_namespaces else options.namespace


def read_files(paths: Sequence[Path]) -> Objects:
    """Reads objects from JSON or YAML as kubectl prints them, and results from the CSV that `export` writes.

    The path `-` is standard input. A result that is in several files counts once.

    Raises:
        UserError: a file cannot be read, or has another format.
    """
    return Objects.merge([_read(path) for path in paths])


def _read(path: Path) -> Objects:
    origin = "standard input" if path == _STANDARD_INPUT else str(path)
    try:
        text = sys.stdin.read() if path == _STANDARD_INPUT else path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {origin}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{origin} is not text: {_GIVE}") from None
    if path.suffix == ".csv" or "kind" in text.partition("\n")[0].split(","):
        return _table(text, origin, path.stem)
    items: list[Any] = []
    for body in _documents(text, origin):
        found = body.get("items", [body]) if isinstance(body, dict) else body
        if not isinstance(found, list):
            raise UserError(f"{origin} contains no list of objects: {_GIVE}")
        items += found
    return parse_items(items, origin)


def _table(text: str, origin: str, name: str) -> Objects:
    try:
        return Objects(tuple(read_csv(text, name, origin)))
    except ValueError as error:
        raise UserError(f"{origin}, {error}") from None


def _documents(text: str, origin: str) -> list[Any]:
    """Returns the documents of a JSON or YAML file."""
    if text.lstrip()[:1] in {"{", "["}:
        try:
            return [json.loads(text)]
        except json.JSONDecodeError as error:
            raise UserError(f"{origin}, line {error.lineno}: {error.msg}; {_GIVE}") from None
    try:
        return [body for body in yaml.load_all(text, _Loader) if body is not None]
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        raise UserError(f"{origin}, line {line}: {error.problem}; {_GIVE}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{origin}: {str(error).splitlines()[0]}; {_GIVE}") from None


def parse_reference(text: str) -> Reference:
    """Parses `NAME`, or `KIND/NAME` with any name of the kind that kubectl accepts.

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
    raise UserError(f"{word!r} is not a kind of benchmark: write KIND/NAME with one of {known}")


def parse_items(items: Iterable[Raw], origin: str) -> Objects:
    """Parses the objects of tierbench's API, and ignores others. Logs how many are of an unknown version or kind.

    Raises:
        UserError: an object is invalid.
    """
    results, specs, advices, classes, records, unknown = [], {}, [], [], [], []
    for number, item in enumerate(items, start=1):
        if not isinstance(item, Mapping):
            raise UserError(f"{origin}: item {number} is not an object: {_GIVE}")
        kind, place = item.get("kind"), f"{origin}: item {number}"
        if not str(item.get("apiVersion", API_VERSION)).startswith(f"{GROUP}/"):
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
            elif kind == BenchmarkRecord.KIND.kind:
                records.append(parse_object(BenchmarkRecord, item, place))
        except UnknownKindError as problem:
            unknown.append(problem)
    if unknown:
        _logger.warning("ignoring %d objects of an unknown version or kind, such as %s", len(unknown), unknown[0])
    return Objects(tuple(results), specs, tuple(advices), tuple(classes), tuple(records))


def _check_version(item: Raw, place: str) -> None:
    version = item.get("apiVersion", API_VERSION)
    if version != API_VERSION:
        raise UnknownKindError(f"{place}: {item.get('kind')} is {version}: use the tierbench version that wrote it")


def parse_object(model: type[Parsed], item: Raw, origin: str = "the cluster") -> Parsed:
    """Parses one object.

    Raises:
        UnknownKindError: the object belongs to a kind of benchmark that this version does not know.
        UserError: the object is invalid.
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
        raise problem(f"{what}: {place}: {first['msg']}; use the tierbench version that wrote it") from None
