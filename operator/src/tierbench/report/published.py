"""Published numbers beside one's own, case by case. Nothing here decides: verdicts are made of tables without them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tierbench.advice.estimate import measured_quantities, smaller_is_better
from tierbench.advice.selection import run_choice
from tierbench.advice.tables import CLIENT, Cell, ResultSet, RunResults, Table, sort_levels
from tierbench.advice.workload import canonical_level
from tierbench.api.result import BenchmarkResult
from tierbench.report.figures import Figure, measured_figure
from tierbench.report.panels import panel_of
from tierbench.results.published import UNKNOWN_CLASS
from tierbench.results.quantities import RETRIES, levels_and_parameters
from tierbench.results.units import describe_level, join_words


@dataclass(frozen=True)
class PublishedTable:
    """A table with a column for each class or setting of which something is published, and a row for each level.

    `names` are the benchmarks that these numbers are of, `quantities` those that are published of them, the ones first
    by which their kind is read.
    """

    table: Table
    names: tuple[str, ...]
    quantities: tuple[str, ...]


def matching_results(run: RunResults, published: Iterable[BenchmarkResult]) -> tuple[BenchmarkResult, ...]:
    """Those of the run's kind of benchmark, told apart by what the run compares."""
    alike = [result for result in published if result.spec.benchmark.kind == run.benchmark.kind]
    return run_choice(run).relabel(alike)


def published_table(run: RunResults, table: Table, published: Sequence[BenchmarkResult]) -> PublishedTable | None:
    """What is published of the cases of a table; None if there is nothing.

    A published case is one of the table's if it has the level that is held, or fixed in the whole run, of every factor
    that both name, and its client's class, if it names one. Where there are several rows it must name its own. `run`
    and `published` are told apart by what is compared.
    """
    fixed = {**run.fixed, **table.held}
    if len(run.clients) == 1:
        fixed[CLIENT] = run.clients[0]
    fixed.pop(table.factor, None)
    row = "" if table.factor in run.fixed else table.factor
    found = [result for result in published if _belongs(_known(result), fixed, row)]
    if not found:
        return None
    names = tuple(dict.fromkeys(result.spec.benchmark.name for result in found))
    known = tuple(name for name in measured_quantities(ResultSet(tuple(found))) if name != RETRIES)
    return PublishedTable(_wider(table, found, _columns(found, {*fixed, table.factor}, names)), names, known)


def no_match_message(run: RunResults) -> str:
    """What to say where something was given to stand beside a run, and nothing of it is of these cases."""
    factors = [f"{name} {' or '.join(levels)}" for name, levels in run.factors.items()]
    cases = ", ".join([run.benchmark.kind, f"clients on {join_words(run.clients, 'or')}", *factors])
    return (
        f"Nothing published is of these cases ({cases}): "
        "a published row must have the same kind, client class and levels, or none."
    )


def _wider(table: Table, found: Sequence[BenchmarkResult], columns: Sequence[str]) -> Table:
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


def _known(result: BenchmarkResult) -> Mapping[str, str]:
    every = {**levels_and_parameters(result), CLIENT: result.spec.client.node_class}
    return {name: level for name, level in every.items() if level != UNKNOWN_CLASS}


def _belongs(known: Mapping[str, str], fixed: Mapping[str, str], row: str) -> bool:
    placed = not row or row in known
    return placed and all(
        canonical_level(known[name]) == canonical_level(level) for name, level in fixed.items() if name in known
    )


def _columns(found: Sequence[BenchmarkResult], said: set[str], names: Sequence[str]) -> list[str]:
    """A name for each: its class or setting, and the levels in which those published differ and the run does not."""
    others = [{name: level for name, level in _known(result).items() if name not in said} for result in found]
    return [_column(result, _differing(own, others), names) for result, own in zip(found, others, strict=True)]


def _differing(own: Mapping[str, str], others: Sequence[Mapping[str, str]]) -> list[str]:
    return [describe_level(name, level) for name, level in own.items() if len({each.get(name) for each in others}) > 1]


def _column(result: BenchmarkResult, levels: Sequence[str], names: Sequence[str]) -> str:
    server, name = result.spec.server.node_class, result.spec.benchmark.name
    who = [] if server == UNKNOWN_CLASS else [server]
    return ", ".join([*who, "published" if len(names) == 1 else f"published in {name}", *levels])


def published_figures(name: str, found: PublishedTable | None) -> tuple[Figure, ...]:
    """A plot of each quantity that is published, with a line for each class measured and each class published."""
    if found is None:
        return ()
    figures = (
        measured_figure(f"{name}-beside-{quantity}", panel_of(found.table), quantity, log=smaller_is_better(quantity))
        for quantity in found.quantities
    )
    return tuple(figure for figure in figures if figure is not None)
