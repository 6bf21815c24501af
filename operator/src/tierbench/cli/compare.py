"""`kubectl tierbench compare`: compares two runs, benchmarks, node classes or settings, case by case."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich import box
from rich.table import Table as Grid
from rich.text import Text

from tierbench.advice.comparison import (
    Change,
    compare_classes,
    compare_runs,
    describe_p,
    differences,
    left_out,
)
from tierbench.advice.selection import Choice, quantity_of
from tierbench.advice.tables import RunResults, newest, runs
from tierbench.api.placement_advice import Dimension
from tierbench.api.result import BenchmarkResult
from tierbench.cli import console
from tierbench.cli.advise import OBJECTIVES
from tierbench.cli.command import ExitCode, UserError, add_output_argument, add_source_arguments
from tierbench.cli.objects import is_run_of, parse_reference, read_objects
from tierbench.cli.output import data_as, write_output
from tierbench.results.units import describe_level, join_words, percent, show, title

_MAX_TOLERANCE: Final = 1000
_STYLES: Final = {"worse": "red", "inconclusive": "dim"}


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `compare`."""
    parser.set_defaults(run=compare)
    form = "[KIND/]BENCHMARK[@RUN] (default: the newest run), a node class, or a setting as in tls=None"
    parser.add_argument("first", metavar="A", help=form)
    parser.add_argument("second", metavar="B", help="another one of the same type")
    add_source_arguments(parser)
    add_output_argument(parser, "table", "json", "yaml")
    parser.add_argument("--by", choices=OBJECTIVES, default="mean", help="the quantity to compare (default: mean)")
    parser.add_argument(
        "--tolerance",
        type=_percent,
        default=0.0,
        metavar="PERCENT",
        help="tolerate that B is worse by this (default: 0)",
    )


def _percent(text: str) -> float:
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = -1
    if not 0 <= number <= _MAX_TOLERANCE:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage: write 5 for 5%")
    return number / 100


def compare(options: argparse.Namespace) -> ExitCode:
    """Prints the differences.

    Raises:
        UserError: A or B has no results, or they have no case in common.
    """
    objects, namespace = read_objects(options)
    every = [each for each in runs(objects.results) if namespace in {None, each.namespace}]
    if "=" in options.first or "=" in options.second:
        first, second = _settings(options.first, options.second, every)
    else:
        first, second = _side(options.first, every), _side(options.second, every)
    kinds = sorted({result.spec.benchmark.kind for result in (*first, *second)})
    if len(kinds) > 1:
        raise UserError(f"{join_words(kinds)} measure different quantities: compare benchmarks of one kind")
    there = {name for result in (*first, *second) for name in result.status.statistics}
    quantity = quantity_of(OBJECTIVES[options.by], kinds[0], there)
    names = (options.first, options.second)
    of_classes = "=" in options.first or all(_is_class(name, every) for name in names)
    if of_classes:
        changes = compare_classes(first, second, quantity)
    else:
        changes = compare_runs(first, second, quantity, _earlier(first, second, every))
    if not changes:
        why = "" if of_classes else f" ({'; '.join(differences(first, second, names))})"
        raise UserError(f"{' and '.join(names)} have no case in common{why}: see `kubectl tierbench results`")
    if options.output == "table":
        _print(options.first, options.second, changes, options.tolerance)
        if not of_classes:
            _print_left_out(names, left_out(first, second))
    else:
        write_output(data_as(options.output, _as_data(changes, options.tolerance)), Path("-"))
    return ExitCode.NO if any(change.worse(options.tolerance) for change in changes) else ExitCode.ANSWER


def _earlier(
    first: Sequence[BenchmarkResult], second: Sequence[BenchmarkResult], every: Sequence[RunResults]
) -> list[BenchmarkResult]:
    """Returns all other results of the benchmarks of `first`. They show how much runs differ."""
    names = {(each.metadata.namespace or "default", each.spec.benchmark) for each in first}
    runs_of = [each for each in every if (each.namespace, each.benchmark) in names]
    return [result for each in runs_of for result in each.results if result not in second]


def _is_class(text: str, every: Sequence[RunResults]) -> bool:
    return not _named(text, every) and any(text in each.classes for each in every)


def _named(text: str, every: Sequence[RunResults]) -> Sequence[RunResults]:
    name, at, number = text.partition("@")
    found = [each for each in every if is_run_of(parse_reference(name), each)]
    return [each for each in found if str(each.number) == number] if at else newest(found)


def _settings(first: str, second: str, every: Sequence[RunResults]) -> tuple[Sequence[BenchmarkResult], ...]:
    """Returns the results of each of two levels of a setting. The levels take the place of server classes."""
    factor, levels = first.partition("=")[0], [text.partition("=")[2] for text in (first, second)]
    if factor not in set(Dimension) or second.partition("=")[0] != factor:
        raise UserError(f"{first} and {second} are not two levels of a setting: write tls=None tls=TLSv1.3")
    results = [result for each in newest(every) for result in each.results]
    choice = Choice((factor,), results)
    sides = {level: [name for name, of in choice.alternatives.items() if of[factor] == level] for level in levels}
    for level, names_of in sides.items():
        if len(names_of) != 1:
            known = join_words(names_of or list(choice.alternatives)) or "none"
            problem = "matches several alternatives" if names_of else "has no results"
            raise UserError(f"{factor}={level} {problem}; there are {known}: see `kubectl tierbench advise --choose`")
    relabelled = choice.relabel(results)
    return tuple(
        [result for result in relabelled if result.spec.server.node_class == sides[level][0]] for level in levels
    )


def _side(text: str, every: Sequence[RunResults]) -> list[BenchmarkResult]:
    """Returns the results of A or B."""
    if _is_class(text, every):
        of_newest = [result for each in newest(every) for result in each.results]
        return [result for result in of_newest if result.spec.server.node_class == text]
    found = [result for each in _named(text, every) for result in each.results]
    if not found:
        known = [f"{each.benchmark.name}@{each.number}" for each in every]
        classes = dict.fromkeys(name for each in every for name in each.classes)
        raise UserError(f"{text} has no results; these have: {', '.join([*known, *classes]) or 'none'}")
    return found


def _as_data(changes: Sequence[Change], tolerance: float) -> Mapping[str, Any]:
    """Returns the differences as data. `differenceInterval` is the 95% interval of B less A."""
    return {
        "quantity": changes[0].quantity,
        "cases": [
            {
                "serverClass": change.server,
                "clientClass": change.client,
                "levels": dict(change.levels),
                "first": change.first.mean,
                "second": change.second.mean,
                "difference": change.value,
                "differenceInterval": None if change.interval is None else list(change.interval),
                "change": change.share,
                "p": change.p,
                "verdict": _verdict(change, tolerance),
            }
            for change in changes
        ],
    }


def _verdict(change: Change, tolerance: float) -> str:
    """Returns what B is."""
    if change.worse(tolerance):
        return "worse"
    if change.worse():
        return "worse, within tolerance"
    return "better" if change.better else "inconclusive"


def _print(first: str, second: str, changes: Sequence[Change], tolerance: float) -> None:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("Case", first, second, "Difference (95%)", "Change", "Chance"):
        grid.add_column(name, justify="left" if name == "Case" else "right")
    grid.add_column("B is")
    varying = _varying(changes)
    for change in changes:
        grid.add_row(*_row(change, varying, tolerance))
    heading = Text(f"{title(changes[0].quantity)}, B less A; {_basis(changes)}")
    console.show(heading, grid, Text(summary(second, changes, tolerance)))


def _print_left_out(names: tuple[str, str], cases: tuple[int, int]) -> None:
    """Prints how many cases of each run are not compared."""
    if any(cases):
        ones, others = (f"{number} of {name}" for number, name in zip(cases, names, strict=True))
        console.show(
            Text(f"Not compared, because the other has no case of the same levels and settings: {ones}, {others}.")
        )


def _basis(changes: Sequence[Change]) -> str:
    """Returns how the chances were computed."""
    runs = max(change.runs for change in changes)
    if not runs:
        return f"chances are adjusted for {len(changes)} comparisons"
    if runs == 1:
        return "with one earlier run, the variation between runs is assumed, not measured"
    return f"judged by the variation between {runs} earlier runs"


def _varying(changes: Sequence[Change]) -> frozenset[str]:
    """Returns the factors that have several levels."""
    found: dict[str, set[str]] = {}
    for change in changes:
        for factor, level in change.levels.items():
            found.setdefault(factor, set()).add(level)
    return frozenset(factor for factor, levels in found.items() if len(levels) > 1)


def _row(change: Change, varying: frozenset[str], tolerance: float) -> Sequence[Text | str]:
    levels = [describe_level(factor, level) for factor, level in change.levels.items() if factor in varying]
    place = f"{change.server} to {change.client}" if change.server else f"to {change.client}"
    interval, share = change.interval, change.share
    shown = _signed(change.quantity, change.value)
    if interval is not None:
        shown += f" ({_signed(change.quantity, interval[0])} to {_signed(change.quantity, interval[1])})"
    sign = "+" if share is not None and share > 0 else "−" if share else ""
    verdict = _verdict(change, tolerance)
    return [
        ", ".join([*levels, place]),
        show(change.quantity, change.first.mean),
        show(change.quantity, change.second.mean),
        shown,
        sign + percent(None if share is None else abs(share)),
        describe_p(change.p),
        Text(verdict, style=_STYLES.get(verdict, "green")),
    ]


def _signed(quantity: str, value: float) -> str:
    return f"{'−' if value < 0 else '+'}{show(quantity, abs(value))}"


def summary(second: str, changes: Sequence[Change], tolerance: float) -> str:
    """Returns in how many cases the second one is worse, better, or neither."""
    worse = sum(change.worse(tolerance) for change in changes)
    better = sum(change.better for change in changes)
    rest = len(changes) - worse - better
    return f"{second} is worse in {worse} of {len(changes)} cases, better in {better}, and inconclusive in {rest}."
