"""Published results of the same cases, for comparison with those of a run. No verdict uses them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from tierbench.advice.requirements import canonical_level
from tierbench.advice.selection import run_choice
from tierbench.advice.tables import (
    CLIENT,
    Cell,
    ResultSet,
    RunResults,
    Table,
    estimate,
    measured_quantities,
    smaller_is_better,
    sort_levels,
)
from tierbench.api.result import BenchmarkResult
from tierbench.report.figures import Figure, measured_figure
from tierbench.report.panels import panel_of
from tierbench.results.published import UNKNOWN_CLASS
from tierbench.results.quantities import RETRIES, levels_and_parameters
from tierbench.results.units import DASH, describe_level, join_words, show_with_deviation, title
from tierbench.stats.estimates import Estimate

PUBLISHED_HEADINGS: Final = ("Case", "Class or setting", "Quantity", "Published", "Measured", "Ratio")


@dataclass(frozen=True)
class PublishedTable:
    """A table of a run with further columns for published classes or settings.

    `names` are the benchmarks that the published results are of. `quantities` are the published quantities, with the
    main quantity of their kind first. `measured` has for each published column the measured one of the same class or
    setting, or None.
    """

    table: Table
    names: tuple[str, ...]
    quantities: tuple[str, ...]
    measured: Mapping[str, str | None]


@dataclass(frozen=True)
class PublishedRow:
    """A published quantity of a case, and the measured one if the run has the same case.

    `alternative` is the class or setting that the run compares, or the column of published results.
    """

    case: str
    alternative: str
    quantity: str
    published: Estimate
    measured: Estimate | None

    @property
    def ratio(self) -> float | None:
        """The measured mean divided by the published one."""
        return None if self.measured is None or not self.published.mean else self.measured.mean / self.published.mean

    @property
    def cells(self) -> tuple[str, ...]:
        """A text for each of PUBLISHED_HEADINGS."""
        shown = (
            DASH if one is None else show_with_deviation(self.quantity, one.mean, one.deviation)
            for one in (self.published, self.measured)
        )
        ratio = DASH if self.ratio is None else f"{self.ratio:.2f}"
        return (self.case or "all", self.alternative, title(self.quantity), *shown, ratio)


def matching_results(run: RunResults, published: Iterable[BenchmarkResult]) -> tuple[BenchmarkResult, ...]:
    """Returns the published results of the kind of a run, relabelled by what the run compares."""
    alike = [result for result in published if result.spec.benchmark.kind == run.benchmark.kind]
    return run_choice(run).relabel(alike)


def published_table(run: RunResults, table: Table, published: Sequence[BenchmarkResult]) -> PublishedTable | None:
    """Returns a table of a relabelled run with the published results of its cases; None if there are none.

    A published case belongs to the table if each level that it names is held in the table or fixed in the run. The same
    holds for the class of its client. If the table has several rows, the case must name its row.
    """
    fixed = {**run.fixed, **table.held}
    if len(run.clients) == 1:
        fixed[CLIENT] = run.clients[0]
    fixed.pop(table.factor, None)
    row = "" if table.factor in run.fixed else table.factor
    found = [result for result in published if _matches(_named_levels(result), fixed, row)]
    if not found:
        return None
    names = tuple(dict.fromkeys(result.spec.benchmark.name for result in found))
    known = tuple(name for name in measured_quantities(ResultSet(tuple(found))) if name != RETRIES)
    columns = _columns(found, {*fixed, table.factor}, names)
    measured = {column: _measured_column(result, table) for result, column in zip(found, columns, strict=True)}
    return PublishedTable(_widened(table, found, columns), names, known, measured)


def published_rows(tables: Iterable[PublishedTable]) -> Iterator[PublishedRow]:
    """Yields every published number that belongs to a case of the run, with what was measured of it."""
    for found in tables:
        table, own_columns = found.table, Counter(found.measured.values())
        for row, (column, own), quantity in product(table.rows, found.measured.items(), found.quantities):
            published = estimate(table.cell(row, column), quantity)
            if published is not None:
                measured = None if own is None else estimate(table.cell(row, own), quantity)
                name = own if own is not None and own_columns[own] == 1 else column
                yield PublishedRow(_case(table, row), name, quantity, published, measured)


def _case(table: Table, row: str) -> str:
    """Returns the levels of a row of a table, such as `pi-lte, 1 KiB`."""
    levels = {**table.held, **({table.factor: row} if table.factor else {})}
    return ", ".join(level if name == CLIENT else describe_level(name, level) for name, level in levels.items())


def _measured_column(result: BenchmarkResult, table: Table) -> str | None:
    server = result.spec.server.node_class
    if server in table.columns:
        return server
    return table.columns[0] if server == UNKNOWN_CLASS and len(table.columns) == 1 else None


def no_match_message(run: RunResults) -> str:
    """Returns the message for published results of which none belongs to a case of the run."""
    factors = [f"{name} {' or '.join(levels)}" for name, levels in run.factors.items()]
    cases = ", ".join([run.benchmark.kind, f"clients on {join_words(run.clients, 'or')}", *factors])
    return (
        f"No published result matches a case of this run ({cases}). A published row must have the same kind, and the "
        "same client class and levels if it names them."
    )


def _widened(table: Table, found: Sequence[BenchmarkResult], columns: Sequence[str]) -> Table:
    rows = {canonical_level(level): level for level in table.rows}
    cells: dict[tuple[str, str], list[BenchmarkResult]] = {}
    for result, column in zip(found, columns, strict=True):
        level = levels_and_parameters(result).get(table.factor, table.rows[0])
        cells.setdefault((rows.setdefault(canonical_level(level), level), column), []).append(result)
    return replace(
        table,
        rows=sort_levels(tuple(rows.values())),
        columns=(*table.columns, *dict.fromkeys(columns)),
        cells={**table.cells, **{place: Cell(tuple(results)) for place, results in cells.items()}},
    )


def _named_levels(result: BenchmarkResult) -> Mapping[str, str]:
    every = {**levels_and_parameters(result), CLIENT: result.spec.client.node_class}
    return {name: level for name, level in every.items() if level != UNKNOWN_CLASS}


def _matches(known: Mapping[str, str], fixed: Mapping[str, str], row: str) -> bool:
    placed = not row or row in known
    return placed and all(
        canonical_level(known[name]) == canonical_level(level) for name, level in fixed.items() if name in known
    )


def _columns(found: Sequence[BenchmarkResult], shared: set[str], names: Sequence[str]) -> list[str]:
    """Returns the column of each result: its class or setting, and the levels in which published results differ."""
    others = [{name: level for name, level in _named_levels(result).items() if name not in shared} for result in found]
    return [_column(result, _differing(own, others), names) for result, own in zip(found, others, strict=True)]


def _differing(own: Mapping[str, str], others: Sequence[Mapping[str, str]]) -> list[str]:
    return [describe_level(name, level) for name, level in own.items() if len({each.get(name) for each in others}) > 1]


def _column(result: BenchmarkResult, levels: Sequence[str], names: Sequence[str]) -> str:
    server, name = result.spec.server.node_class, result.spec.benchmark.name
    who = [] if server == UNKNOWN_CLASS else [server]
    return ", ".join([*who, "published" if len(names) == 1 else f"published in {name}", *levels])


def published_figures(name: str, found: PublishedTable | None) -> tuple[Figure, ...]:
    """Returns a figure for each published quantity, with a line for each measured and each published class."""
    if found is None:
        return ()
    figures = (
        measured_figure(
            f"{name}-published-{quantity}", panel_of(found.table), quantity, log=smaller_is_better(quantity)
        )
        for quantity in found.quantities
    )
    return tuple(figure for figure in figures if figure is not None)
