"""The registry of the kinds of benchmark. Shared code asks the registry, and names no kind.

This module imports nothing of tierbench at run time, so every package can import it. The registry imports the folder of
a kind when someone first asks for more than the kind's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tierbench.advice.tables import RunResults, Table
    from tierbench.api.benchmark import Access, Benchmark, BenchmarkSpec, ServiceSpec
    from tierbench.api.contract import TrialLine
    from tierbench.api.measurements import NodeNetwork
    from tierbench.api.policy import Policy
    from tierbench.api.rbac import Permission
    from tierbench.api.record import RecordStatus, ResultTrial
    from tierbench.api.result import BenchmarkResult, Note, ResultSpec
    from tierbench.domain.servers import Provider
    from tierbench.metrics.results import Samples
    from tierbench.report.figures import Figure
    from tierbench.report.panels import Panel
    from tierbench.workloads.plan import Case
    from tierbench.workloads.workload import Images, Owner, Workload

    Rule = Callable[[ResultSpec, Sequence[ResultTrial]], Sequence[Note]]
    """A function that derives notes from the good trials of a case."""


def _nothing(*_: object) -> tuple[()]:
    return ()


def _none(*_: object) -> None:
    return None


def _never(_: object) -> bool:
    return False


def _unchanged(merged: TrialLine, _: object, __: object) -> TrialLine:
    return merged


def _no_text(_: object) -> str:
    return ""


def _no_fields(*_: object) -> Mapping[str, Any]:
    return {}


def _as_given(values: Mapping[str, float], _: object) -> Mapping[str, float]:
    return values


@dataclass(frozen=True)
class FactorTraits:
    """How the levels of a factor are interpreted and shown.

    `usual` is the level if a result names none. `words` formats a level in a list of levels, and `phrases` single
    levels in a sentence. With `names`, levels are never numbers. With `first`, the level comes before those of other
    factors. A `load` is how much is requested at the same time, an `amount` is the size of one request. With `sum`,
    some levels are about one client and others about all clients, so they are not alternatives. With `refinable`, a run
    can measure levels between two others.
    """

    usual: str | None = None
    words: str = "{}"
    phrases: Mapping[str, str] = field(default_factory=dict)
    names: bool = False
    first: bool = False
    load: bool = False
    amount: bool = False
    sum: bool = False
    refinable: bool = False
    competing: bool = True
    """Whether one level can be better than another. UDP sends at the rate that it is given, so TCP does not compete."""


@dataclass(frozen=True)
class Measures:
    """The quantities of a trial, and how they are interpreted.

    Of `main` and `time`, the first one that a result has is used. `times` maps each rate to the time in its
    denominator. `everything` is a trial that has all quantities. `facts` explain the numbers, `invalid` notes say what
    may have distorted them. `merge` adds the fields of this kind to a merged trial of several clients. It gets the
    lines of the clients (None for a lost client), and whether each client echoes. `counts` returns fields of Counts
    over the counted trials. `derived` adds quantities to a trial that others have published, by its levels.
    """

    quantities: Callable[[ResultTrial], Mapping[str, float | None]]
    everything: ResultTrial
    main: Sequence[str]
    time: Sequence[str]
    rate: str
    byte_rate: str = ""
    """The rate in bytes, if `rate` counts something else."""
    times: Mapping[str, str] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    larger_is_better: Sequence[str] = ()
    """The quantities, other than rates, of which a larger value is better."""
    distributions: Mapping[str, str] = field(default_factory=dict)
    """Quantities with many values per trial, and the fields of Distributions that contain these."""
    costs: Sequence[str] = ()
    """Quantities that no answer compares, but whose effects are reported."""
    facts: Rule = _nothing
    invalid: Rule = _nothing
    merge: Callable[[TrialLine, Sequence[TrialLine | None], Sequence[bool]], TrialLine] = _unchanged
    condense: Callable[[TrialLine], Mapping[str, Any]] = _no_fields
    """Returns the fields of ResultTrial that replace the distributions of a trial."""
    accumulate: Callable[[RecordStatus, TrialLine], Mapping[str, Any]] = _no_fields
    """Returns the fields of RecordStatus that add up over good trials, with one more trial."""
    is_client_rate: Callable[[str], bool] = _never
    """Whether a quantity is the rate of one of several clients."""
    counts: Callable[[Sequence[ResultTrial]], Mapping[str, Any]] = _no_fields
    totals: Callable[[ResultSpec, RecordStatus], Mapping[str, int]] = _no_fields
    """Returns sums over the good trials that metrics need, by name."""
    derived: Callable[[Mapping[str, float], Mapping[str, str]], Mapping[str, float]] = _as_given
    bits_per_second: Callable[[ResultTrial, str], float | None] = _none
    """Returns the bits per second that a trial sent in a direction, `up` or `down`."""
    bytes_served: Callable[[ResultTrial], float | None] = _none
    """Returns the bytes that a disk had to read for a trial."""


@dataclass(frozen=True)
class Metrics:
    """What the operator exposes of a result.

    `factors` are labels of all metrics of the kind, `parameters` are labels of `tierbench_result_info`. Other entries
    of a result are not labels. A factor of one kind is no parameter of another.
    """

    factors: Sequence[str]
    parameters: Sequence[str]
    add: Callable[[Samples, BenchmarkResult], None]
    histograms: Sequence[str] = ()
    """The quantities whose distribution a metric exposes."""


@dataclass(frozen=True)
class ReportSection:
    """A section of figures that only one kind has. `figures` takes the prefix of names and a panel of the run."""

    name: str
    title: str
    figures: Callable[[str, Panel], tuple[Figure, ...]]


@dataclass(frozen=True)
class Report:
    """What a report shows only for this kind: a row of cells per trial, and figures.

    If the rates of single clients are quantities, `figures` contain them.
    """

    cells: Callable[[ResultTrial], Mapping[str, str]]
    """Returns the cells of a trial by heading; the headings are the same for each trial."""
    retries: Callable[[ResultTrial], str | None] = _none
    """Returns the retries of a trial in words, or None if their number is enough."""
    answers: Callable[[RunResults], tuple[str, ...]] = _nothing
    """The sentences that this kind adds to the answer of a run."""
    losses: Callable[[Table], str] = _no_text
    """A sentence on what was lost in the cases of a table, or nothing."""
    figures: Callable[[str, RunResults], tuple[Figure, ...]] = _nothing
    spreads: Mapping[str, str] = field(default_factory=dict)
    """The fields of Distributions that are drawn, with their titles."""
    other_spreads: Mapping[str, str] = field(default_factory=dict)
    """The fields of Distributions that are drawn with less important quantities."""
    sections: Sequence[ReportSection] = ()
    """Further sections of figures."""


@dataclass(frozen=True)
class Reasons:
    """The meanings of reasons by name: of failed cases, and of the notes `invalid` and `facts` of results.

    `unreachable` has those of failures that a node explains that is away.
    """

    failures: Mapping[str, str] = field(default_factory=dict)
    invalid: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    unreachable: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Probe:
    """How a kind measures the network between two nodes before the first case of another kind."""

    programs: str
    program: str
    """The program that measures rates."""
    workloads: Callable[[Owner, ServiceSpec, Access, Images], tuple[Workload, ...]]
    is_known: Callable[[NodeNetwork, Case], bool]
    """Returns whether a known network includes what a case measures."""


@dataclass(frozen=True)
class Image:
    """An image that a kind uses. With `alternatives`, a benchmark can name further images of the server."""

    description: str
    alternatives: bool = False


@dataclass(frozen=True, eq=False)
class BenchmarkKind:
    """One kind of benchmark: everything that shared code needs to know about it.

    `dashboard` is the name of a module with a function `dashboard`. Only the generator imports it, because the package
    that draws dashboards is not installed elsewhere.
    """

    model: type[Benchmark]
    workload: Callable[[Owner, Any, Images, Policy], Workload]
    measures: Measures
    metrics: Metrics
    report: Report
    factors: Mapping[str, FactorTraits] = field(default_factory=dict)
    implied: Mapping[str, str] = field(default_factory=dict)
    """Levels of factors that results do not name if a benchmark leaves them alone."""
    images: Mapping[str, Image] = field(default_factory=dict)
    """Images by their names in the chart values."""
    reasons: Reasons = field(default_factory=Reasons)
    dashboard: str = ""
    providers: Mapping[str, Provider] = field(default_factory=dict)
    """Further providers of servers, by the provider of a placement."""
    permissions: Sequence[Permission] = ()
    """Permissions of the operator that only this kind needs."""
    exports: Mapping[str, Callable[[Sequence[BenchmarkResult]], str]] = field(default_factory=dict)
    """Formats of `kubectl tierbench export` that only this kind has."""
    configurations: Mapping[str, Callable[[str, Mapping[str, str], Sequence[BenchmarkResult]], str]] = field(
        default_factory=dict
    )
    """Formats of `kubectl tierbench advise` for other programs. Their arguments are the name of an advice, the levels
    that it chooses and asks for, and the results with these levels."""
    probe: Probe | None = None
    not_from_outside: Callable[[Any], str] | None = None
    """Returns what of a spec members of external classes cannot measure, and what to do. None: they measure nothing."""
    first: Mapping[str, Any] | None = None
    """The spec that `kubectl tierbench init` proposes, without node classes. One kind has it."""


MODULES: Final[dict[str, str]] = {
    "FileTransferBenchmark": "tierbench.kinds.file_transfer",
    "BrokerBenchmark": "tierbench.kinds.broker",
    "NetworkBenchmark": "tierbench.kinds.network",
}
"""The module of each kind, whose `KIND` is a BenchmarkKind. To register a kind, add a line."""


def kinds() -> tuple[BenchmarkKind, ...]:
    """Returns all kinds."""
    return tuple(map(kind_of, MODULES))


def kind_of(name: str) -> BenchmarkKind:
    """Returns the kind of this name.

    Raises:
        KeyError: no kind has this name.
    """
    return _load(MODULES[name])


@cache
def _load(module: str) -> BenchmarkKind:
    kind: BenchmarkKind = import_module(module).KIND
    return kind


def workload_of(owner: Owner, spec: BenchmarkSpec, images: Images, policy: Policy) -> Workload:
    """Returns the workload of a benchmark."""
    return kind_of(owner.kind).workload(owner, spec, images, policy)


def probe() -> Probe:
    """Returns how the network between two nodes is measured."""
    return next(kind.probe for kind in kinds() if kind.probe is not None)


class _Benchmarks(Mapping[str, "type[Benchmark]"]):
    """The models of all kinds, by name."""

    def __getitem__(self, name: str) -> type[Benchmark]:
        return kind_of(name).model

    def __contains__(self, name: object) -> bool:
        return name in MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


BENCHMARKS: Final[Mapping[str, type[Benchmark]]] = _Benchmarks()
