"""What a kind of benchmark is, and all that there are. Shared code asks here, and names no kind.

This module imports nothing of tierbench, so that every package may import it: the folder of a kind is imported when
somebody first asks for more than its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tierbench.advice.tables import RunResults, Table
    from tierbench.api.benchmark import Access, Benchmark, BenchmarkSpec, ServiceSpec
    from tierbench.api.contract import TrialLine
    from tierbench.api.measurements import NodeNetwork
    from tierbench.api.policy import Policy
    from tierbench.api.rbac import Permission
    from tierbench.api.result import BenchmarkResult, Note, ResultSpec, ResultStatus, ResultTrial
    from tierbench.domain.providers import Provider
    from tierbench.metrics.family import Samples
    from tierbench.report.figures import Figure
    from tierbench.report.panels import Panel
    from tierbench.workloads.names import Owner
    from tierbench.workloads.plan import Case
    from tierbench.workloads.workload import Images, Workload

    Rule = Callable[[ResultSpec, Sequence[ResultTrial]], Sequence[Note]]
    """What the good trials of a case show."""


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
    """How the levels of a factor are read.

    `usual` is its level where nothing is said of it, `words` how a level stands among others, `phrases` how single
    levels stand in a sentence. The levels of a factor of names are never numbers. One that is `first` stands before the
    others of a case. A `load` is how much is asked for at once, an `amount` what one request carries. With a `sum` the
    levels are no alternatives to one another: some are one client's, others the sum of all.
    """

    usual: str | None = None
    words: str = "{}"
    phrases: Mapping[str, str] = field(default_factory=dict)
    names: bool = False
    first: bool = False
    load: bool = False
    amount: bool = False
    sum: bool = False
    competing: bool = True
    """Whether one level can be better than another. UDP sends at the rate that it is given, so TCP does not compete."""


@dataclass(frozen=True)
class Measures:
    """The quantities that trials give, and how they are read.

    Of several main ones and times the first is taken that there is. `times` names for each rate the time by which its
    amount is divided. `everything` is a trial that leaves no quantity out. `facts` explain the numbers, `invalid` is
    what could have spoiled them. `merge` adds what only this kind merges to a trial of several clients: their lines,
    None of those that were lost, and whether each is an echo. `counts` are fields of Counts, of the counted trials.
    `derived` adds quantities to a trial that others have measured, by its levels.
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
    """The times of which a trial has many, and the fields of Distributions that keep them."""
    costs: Sequence[str] = ()
    """The quantities that no answer compares, and of which the costs of factors are said all the same."""
    facts: Rule = _nothing
    invalid: Rule = _nothing
    merge: Callable[[TrialLine, Sequence[TrialLine | None], Sequence[bool]], TrialLine] = _unchanged
    condense: Callable[[TrialLine], Mapping[str, Any]] = _no_fields
    """Returns the fields of ResultTrial that replace the distributions of a trial."""
    accumulate: Callable[[ResultStatus, TrialLine], Mapping[str, Any]] = _no_fields
    """Returns the fields of ResultStatus that add up over good trials, with one more trial."""
    is_client_rate: Callable[[str], bool] = _never
    """Whether a quantity is the rate of one of several clients."""
    counts: Callable[[Sequence[ResultTrial]], Mapping[str, Any]] = _no_fields
    derived: Callable[[Mapping[str, float], Mapping[str, str]], Mapping[str, float]] = _as_given
    bits_per_second: Callable[[ResultTrial, str], float | None] = _none
    """What a trial took of the network, `up` or `down`."""
    bytes_served: Callable[[ResultTrial], float | None] = _none
    """What a disk had to read for a trial."""
    has_traces: Callable[[BenchmarkResult], bool] = _never
    """Whether there is a trace of the case, or was."""


@dataclass(frozen=True)
class Metrics:
    """What the operator exposes of a result. Factors are labels of all that results of the kind say, parameters of
    `tierbench_result_info`; what others write into a result is no label."""

    factors: Sequence[str]
    parameters: Sequence[str]
    add: Callable[[Samples, BenchmarkResult], None]


@dataclass(frozen=True)
class ReportSection:
    """A section of figures that only one kind has. `figures` takes the prefix of names and a panel of the run."""

    name: str
    title: str
    figures: Callable[[str, Panel], tuple[Figure, ...]]


@dataclass(frozen=True)
class Report:
    """What a report shows of this kind alone: a row of cells a trial, and pictures.

    `drawn` says of a quantity that `figures` show it, so that it needs no picture of its own.
    """

    headings: tuple[str, ...]
    cells: Callable[[ResultTrial], tuple[str, ...]]
    retries: Callable[[ResultTrial], str | None] = _none
    """The retries of a trial in words, where they are more than a number."""
    answers: Callable[[RunResults], tuple[str, ...]] = _nothing
    """The sentences that this kind adds to the answer of a run."""
    losses: Callable[[Table], str] = _no_text
    """A sentence on what was lost in the cases of a table, or nothing."""
    figures: Callable[[str, RunResults], tuple[Figure, ...]] = _nothing
    drawn: Callable[[str], bool] = _never
    spreads: Mapping[str, str] = field(default_factory=dict)
    """The fields of Distributions that are drawn, with their titles."""
    other_spreads: Mapping[str, str] = field(default_factory=dict)
    """Those that are drawn with the quantities that few readers look for."""
    sections: Sequence[ReportSection] = ()
    """Further sections of figures."""


@dataclass(frozen=True)
class Probe:
    """How a kind measures the way between two nodes before the first case of another kind."""

    programs: str
    program: str
    """Of these the one that measures rates."""
    workloads: Callable[[Owner, ServiceSpec, Access, Images], tuple[Workload, ...]]
    is_known: Callable[[NodeNetwork, Case], bool]
    """Whether the network that is known has what a case measures."""


@dataclass(frozen=True)
class FirstBenchmark:
    """What `kubectl tierbench init` proposes: a spec without its classes, how many cases it has for each pair of them,
    and the bytes that one trial of each of these cases moves and that a server keeps on its disk."""

    spec: Mapping[str, Any]
    cases: int
    warmup: int
    repetitions: int
    bytes_moved: int
    bytes_on_disk: int


@dataclass(frozen=True)
class Image:
    """An image that a kind uses. Of a server that has `alternatives` a benchmark can name others."""

    description: str
    alternatives: bool = False


@dataclass(frozen=True, eq=False)
class BenchmarkKind:
    """One kind of benchmark: everything that shared code asks of it.

    `dashboard` names a module with a function `dashboard`. The generator alone imports it, as the package that draws
    dashboards is installed nowhere else.
    """

    model: type[Benchmark]
    workload: Callable[[Owner, Any, Images, Policy], Workload]
    measures: Measures
    metrics: Metrics
    report: Report
    factors: Mapping[str, FactorTraits] = field(default_factory=dict)
    images: Mapping[str, Image] = field(default_factory=dict)
    """By the names that they have among the values of the chart."""
    dashboard: str = ""
    providers: Mapping[str, Provider] = field(default_factory=dict)
    """Who else than this operator brings servers up, by the name that a slot bears."""
    permissions: Sequence[Permission] = ()
    """What the operator may ask of the API server for this kind alone."""
    exports: Mapping[str, Callable[[Sequence[BenchmarkResult]], str]] = field(default_factory=dict)
    """Formats of `kubectl tierbench export` that only this kind has."""
    probe: Probe | None = None
    first: FirstBenchmark | None = None


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
    kind: BenchmarkKind = import_module(MODULES[name]).KIND
    return kind


def workload_of(owner: Owner, spec: BenchmarkSpec, images: Images, policy: Policy) -> Workload:
    """What a benchmark deploys."""
    return kind_of(owner.kind).workload(owner, spec, images, policy)


def probe() -> Probe:
    """How the way between two nodes is measured."""
    return next(kind.probe for kind in kinds() if kind.probe is not None)


class _Benchmarks(Mapping[str, "type[Benchmark]"]):
    """The models of all kinds, by their names."""

    def __getitem__(self, name: str) -> type[Benchmark]:
        return kind_of(name).model

    def __contains__(self, name: object) -> bool:
        return name in MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


BENCHMARKS: Final[Mapping[str, type[Benchmark]]] = _Benchmarks()
