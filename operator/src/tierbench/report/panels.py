"""Lays out the charts of a run: one factor is on the axis, one is the colour, one is the stroke.

Each level of the other factors has a chart of its own. The rule uses the levels alone; docs/how-to/read-a-report.md
states it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from tierbench.advice.selection import Choice
from tierbench.advice.tables import CLIENT, EMPTY, MIN_CURVE_LEVELS, Cell, RunResults, Table, is_named_by_level
from tierbench.api.placement_advice import Dimension
from tierbench.api.result import BenchmarkResult
from tierbench.results.quantities import levels_and_parameters
from tierbench.results.units import are_numbers, describe_level, factor_traits, humanize, in_sentence

SERVER: Final = Dimension.NODE_CLASS.value
_MOST_LINES: Final = 8
Levels = Mapping[str, tuple[str, ...]]
"""The levels of each factor that varies."""


@dataclass(frozen=True)
class Line:
    """One line, or one kind of bar: the indexes of its colour and stroke, and its cells by the level of the axis."""

    name: str
    tone: int
    dash: int
    cells: Mapping[str, Cell]

    def cell(self, level: str) -> Cell:
        """Returns the cell of a level; it is empty if nothing was measured there."""
        return self.cells.get(level, EMPTY)


@dataclass(frozen=True)
class Panel:
    """One chart: the `levels` of the factor `axis` for each line.

    `distinguished_by` names the factors in which lines differ. `held` has the levels that are the same for all lines.
    """

    axis: str
    levels: tuple[str, ...]
    lines: tuple[Line, ...]
    distinguished_by: tuple[str, ...] = ()
    held: str = ""


def panels(run: RunResults) -> tuple[Panel, ...]:
    """Returns the panels of a run."""
    return tuple(panel for subset in run.subsets for panel in _panels(subset, _axis(_varying(subset), subset)))


def panel_of(table: Table) -> Panel:
    """Returns a table as a panel, with one line per column."""
    columns = enumerate(table.columns)
    lines = (Line(column, tone, 0, {row: table.cell(row, column) for row in table.rows}) for tone, column in columns)
    return Panel(table.factor, table.rows, tuple(lines))


def _panels(run: RunResults, axis: str) -> tuple[Panel, ...]:
    tone = _tone(_varying(run), axis, run)
    compared = tone
    if tone not in {SERVER, CLIENT, ""} and len(run.classes) == 1:
        # Alternatives replace classes, so that their names have the factors that only some of them have.
        run = replace(run, results=Choice((tone,), run.results, frozenset({axis})).relabel(run.results))
        tone = SERVER
    varying = _varying(run)
    dash = _dash(varying, axis, tone, run)
    rest = [name for name in varying if name not in {axis, tone, dash}]
    groups: dict[tuple[str, ...], list[BenchmarkResult]] = {}
    for result in run.results:
        groups.setdefault(tuple(_level(result, name) for name in rest), []).append(result)
    names = client_names(run)
    by = tuple(_noun(name, names) for name in (compared, dash) if name)
    found = []
    for held, results in groups.items():
        there = {_level(result, axis) for result in results}
        levels = tuple(level for level in run.factors.get(axis, ("",)) if level in there)
        fixed = [_held(name, level, names) for name, level in zip(rest, held, strict=True) if level]
        lines = tuple(_lines(results, axis, (tone, dash), varying, names))
        found.append(Panel(axis, levels, lines, by, ", ".join(fixed)))
    return tuple(found)


def _lines(
    results: Sequence[BenchmarkResult], axis: str, factors: tuple[str, str], varying: Levels, names: Mapping[str, str]
) -> Iterator[Line]:
    cells: dict[tuple[str, str, str], list[BenchmarkResult]] = {}
    for result in results:
        cells.setdefault((_level(result, factors[0]), _level(result, factors[1]), _level(result, axis)), []).append(
            result
        )
    tones, dashes = (varying.get(name, ("",)) for name in factors)
    for (tone, first), (dash, second) in product(enumerate(tones), enumerate(dashes)):
        mine = {
            level: Cell(tuple(found)) for (one, other, level), found in cells.items() if (one, other) == (first, second)
        }
        texts = [
            _level_text(name, level, names)
            for name, level in zip(factors, (first, second), strict=True)
            if name and level
        ]
        if mine:
            yield Line(", ".join(texts) or results[0].spec.server.node_class, tone, dash, mine)


def client_names(run: RunResults) -> Mapping[str, str]:
    """Returns the name of each client class: its access network, if all have one and no two have the same."""
    clients = [result.spec.client for result in run.results]
    networks = {client.node_class: client.access_network for client in clients}
    apart = all(networks.values()) and len(set(networks.values())) == len(networks)
    return networks if apart else {name: name for name in networks}


def _varying(run: RunResults) -> Levels:
    """Returns the factors with several levels: those of the cases, the client class, the server class."""
    clients = tuple(dict.fromkeys(_level(result, CLIENT) for result in run.results))
    every = {**run.factors, CLIENT: clients, SERVER: run.classes}
    return {name: levels for name, levels in every.items() if len(levels) > 1}


def _level(result: BenchmarkResult, name: str) -> str:
    spec = result.spec
    client = "" if spec.clients else spec.client.node_class  # several clients at once have no class
    return {**levels_and_parameters(result), CLIENT: client, SERVER: spec.server.node_class}.get(name, "")


def _level_text(name: str, level: str, clients: Mapping[str, str]) -> str:
    if name == CLIENT:
        return clients[level]
    return level if is_named_by_level(name) else describe_level(name, level)


def _held(name: str, level: str, clients: Mapping[str, str]) -> str:
    return f"clients on {clients[level]}" if name == CLIENT else _level_text(name, level, clients)


def _noun(name: str, clients: Mapping[str, str]) -> str:
    if name == SERVER:
        return "class"
    if name == CLIENT:
        return "client class" if all(each == shown for each, shown in clients.items()) else "access network"
    return in_sentence(humanize(name))


def _axis(varying: Levels, run: RunResults) -> str:
    """Returns the factor with the most levels, among those that every case has. Three or more numbers come first."""
    own = [
        name for name in varying if name not in {CLIENT, SERVER} and not factor_traits(name).sum and _shared(run, name)
    ]
    if not all(_shared(run, name) for name in varying):
        own = [
            name for name in own if name not in _settings(varying, run)[:1]
        ]  # it decides which cases have the other factors
    usual = "" if run.row_factor in varying else run.row_factor
    return max(own, key=lambda name: _weight(name, varying[name]), default=usual)


def _weight(name: str, levels: Sequence[str]) -> tuple[bool, int, bool]:
    numbers = are_numbers(name, levels)
    return numbers and len(levels) >= MIN_CURVE_LEVELS, len(levels), numbers


def _tone(varying: Levels, axis: str, run: RunResults) -> str:
    """Returns the factor to compare: the server class, a setting, the client, or the factor with the fewest levels."""
    shared = [name for name in varying if not factor_traits(name).sum and _shared(run, name)]
    others = sorted(shared, key=lambda name: len(varying[name]))
    wanted = [SERVER, *_settings(varying, run), CLIENT, *others]
    return next((name for name in wanted if name in varying and name != axis), "")


def _settings(varying: Levels, run: RunResults) -> list[str]:
    """Returns the factors that can be chosen, have words as levels, and exist in every case."""
    return [
        name for name in Dimension if name in varying and not are_numbers(name, varying[name]) and _shared(run, name)
    ]


def _dash(varying: Levels, axis: str, tone: str, run: RunResults) -> str:
    """Returns the client, else a factor of words, if there are few enough lines."""
    words_only = [name for name, levels in varying.items() if not are_numbers(name, levels) and _shared(run, name)]
    others = (name for name in (CLIENT, *words_only) if name in varying and name not in {axis, tone, SERVER})
    free = (name for name in others if not factor_traits(name).sum)
    lines = len(varying.get(tone, ("",)))
    return next((name for name in free if lines * len(varying[name]) <= _MOST_LINES), "")


def _shared(run: RunResults, name: str) -> bool:
    """Returns whether every case has a level of a factor."""
    return name in {CLIENT, SERVER} or all(name in levels_and_parameters(result) for result in run.results)
