"""`kubectl tierbench results`: prints tables, the answer in words, and bars."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from tierbench.advice.answer import (
    describe_retries,
    describe_table,
    factor_statements,
    has_alternatives,
    kind_answers,
    short_verdict,
    summarize_run,
)
from tierbench.advice.posterior import LevelVerdict, level_verdicts
from tierbench.advice.selection import compared_factor, relabelled_run
from tierbench.advice.tables import Cell, RunResults, Table, estimate, measured_quantities
from tierbench.api.result import BenchmarkResult
from tierbench.cli import console
from tierbench.cli.command import ExitCode, add_output_argument, add_published_arguments, add_result_arguments
from tierbench.cli.objects import read_files, select_runs
from tierbench.cli.output import objects_as, write_output
from tierbench.report.published import (
    PUBLISHED_HEADINGS,
    PublishedTable,
    matching_results,
    no_match_message,
    published_rows,
    published_table,
)
from tierbench.report.tables import case_notes, cautions, networks
from tierbench.results.nodes import describe_computer, describe_network, node_computers
from tierbench.results.quantities import rate_quantity
from tierbench.results.units import (
    DASH,
    factor_traits,
    humanize,
    join_words,
    show,
    show_level,
    show_with_deviation,
    title,
)

_BAR_WIDTH: Final = 40
_MAX_EFFECTS: Final = 8
_SEVERAL: Final = 2
_FIRST_NUMBER: Final = PUBLISHED_HEADINGS.index("Published")
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_COLOURS: Final = ("blue", "dark_orange3", "green", "magenta", "yellow", "cyan")


def add_results(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `results`."""
    parser.set_defaults(run=results)
    add_result_arguments(parser)
    add_published_arguments(parser)
    add_output_argument(parser, "table", "wide", "json", "yaml", "name")


def results(options: argparse.Namespace) -> ExitCode:
    """Prints the results."""
    runs, _ = select_runs(options, records=options.output == "wide")
    if options.output not in {"table", "wide"}:
        write_output(objects_as(options.output, [result for each in runs for result in each.results]), Path("-"))
        return ExitCode.ANSWER
    published = read_files(options.beside).results
    for each in runs:
        if len({each.namespace for each in runs}) > 1:
            console.show(Text(f"Namespace {each.namespace}", style="bold"))
        console.show(*show_run(each, published, wide=options.output == "wide"))
    return ExitCode.ANSWER


def show_run(
    run: RunResults, published: Sequence[BenchmarkResult] = (), *, wide: bool = False
) -> Iterator[RenderableType]:
    """Renders a run. `published` results appear next to its cases. `wide` adds a table for each further quantity."""
    measured = measured_quantities(run)
    heading = f"{run.benchmark.name}, run {run.number}"
    if not measured:
        yield Text(f"{heading}: no results yet", style="bold")
        yield from _notes(run)
        return
    main, rate = measured[0], rate_quantity(run.benchmark.kind)
    yield Text(f"{heading}: {title(main).lower()}, clients on {', '.join(run.clients)}", style="bold")
    shown, theirs = relabelled_run(run), matching_results(run, published)
    for table, found in zip(shown.tables, level_verdicts(shown.tables, main), strict=True):
        if table.held:
            yield Text(", ".join(f"{humanize(name)} {level}" for name, level in table.held.items()), style="bold")
        yield _grid(table, found, main)
        if has_alternatives(run):
            yield Text(describe_table(table, found))
        yield Text(describe_retries(table))
        if rate in measured:
            yield Text()
            yield from _bars(table, rate)
        yield Text()
    if published:
        yield from _published(run, [each for table in shown.tables if (each := published_table(shown, table, theirs))])
    for quantity in measured[1:] if wide else ():
        yield Text(title(quantity), style="bold")
        for table, found in zip(shown.tables, level_verdicts(shown.tables, quantity), strict=True):
            yield _grid(table, found, quantity)
    yield from map(Text, kind_answers(run))
    yield from _effects(run)
    yield from _notes(run)


def _effects(run: RunResults) -> Iterator[RenderableType]:
    """Renders the effects of factors that the answer does not compare.

    They appear if there are several factors, if one is a load, or if there is no other answer.
    """
    found = summarize_run(run, without=(compared_factor(run),))
    factors = {factor for summary in found for factor in summary.factors}
    has_load = any(factor_traits(name).load for name in factors)
    if len(factors) >= _SEVERAL or has_load or (factors and not has_alternatives(run) and not kind_answers(run)):
        yield Text("Effects of factors, all else equal", style="bold")
        yield from map(Text, factor_statements(found)[:_MAX_EFFECTS])
        yield Text("For every effect with its interval, see `kubectl tierbench report`.", style="dim")
        yield Text()


def _published(run: RunResults, found: Sequence[PublishedTable]) -> Iterator[RenderableType]:
    if not found:
        yield Text(no_match_message(run), style="yellow")
        return
    names = dict.fromkeys(name for table in found for name in table.names)
    yield Text(f"Published numbers of {join_words(tuple(names))} for the same cases (not in verdicts)", style="bold")
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, heading in enumerate(PUBLISHED_HEADINGS):
        grid.add_column(heading, justify="right" if index >= _FIRST_NUMBER else "left")
    for row in published_rows(found):
        grid.add_row(*row.cells)
    yield grid
    yield Text()


def _mean(cell: Cell, quantity: str) -> str:
    found = estimate(cell, quantity)
    return DASH if found is None else show_with_deviation(quantity, found.mean, found.deviation)


def _grid(table: Table, found: Sequence[LevelVerdict], quantity: str) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column(humanize(table.factor) or "Case", vertical="bottom")
    for index, column in enumerate(table.columns):
        grid.add_column(Text(f"{column}\nmean ± s.d.", style=_COLOURS[index % len(_COLOURS)]), justify="right")
        grid.add_column("\nretries", justify="right")
        grid.add_column("\nn", justify="right")
    grid.add_column("\nahead")
    for verdict in found:
        grid.add_row(*_row(table, verdict, quantity))
    return grid


def _row(table: Table, verdict: LevelVerdict, quantity: str) -> list[Text]:
    row = [Text(show_level(table.factor, verdict.level) or "all")]
    for column in table.columns:
        cell = table.cell(verdict.level, column)
        best = verdict.leaders == (column,) and not verdict.only_one
        count = f"{cell.completed} + {cell.failed} failed" if cell.failed else str(cell.completed)
        row += [
            Text(_mean(cell, quantity), style="bold" if best else ""),
            Text(str(cell.retries) if cell.has_retry_counts else DASH, style="red" if cell.retries else ""),
            Text(count if cell.results and cell.completed + cell.failed else DASH),
        ]
    return [*row, Text(short_verdict(verdict, quantity))]


def _bars(table: Table, quantity: str) -> Iterator[RenderableType]:
    found = {place: mean.mean for place, cell in table.cells.items() if (mean := estimate(cell, quantity)) is not None}
    longest = max(found.values(), default=0) or 1
    yield Text(title(quantity), style="bold")
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(justify="right")
    for row in table.rows:
        for index, column in enumerate(table.columns):
            value = found.get((row, column))
            level = show_level(table.factor, row) if index == 0 else ""
            bar = "" if value is None else _bar(value / longest)
            grid.add_row(level, column, Text(bar, style=_COLOURS[index % len(_COLOURS)]), show(quantity, value))
    yield Padding(grid, (0, 0, 0, 1), expand=False)


def _bar(share: float) -> str:
    """Returns a bar with a length of `share` times the full width, to an eighth of a character."""
    full, eighths = divmod(round(share * _BAR_WIDTH * 8), 8)
    return _EIGHTHS[-1] * full + _EIGHTHS[eighths].strip()


def _notes(run: RunResults) -> Iterator[RenderableType]:
    for network in networks(run):
        yield Text(f"Network: {describe_network(network)}")
    for line in filter(None, map(describe_computer, node_computers(run.results))):
        yield Text(f"Node: {line}")
    for text in cautions(run):
        yield Text(f"Note: {text}")
    for note in case_notes(run):
        if note.kind != "Fact":
            yield Text(f"{note.kind}: {note.case}: {note.reason}: {note.message}")
