"""What stands where in the pictures of a run: one factor on the axis, one told by colour, one by stroke, the others by
picture. The rule goes by the levels alone; docs/how-to-read-a-report.md states it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from tierbench.advice.selection import Choice
from tierbench.advice.tables import CLIENT, EMPTY, MIN_CURVE_LEVELS, Cell, RunResults, Table
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
    """One line, or one kind of bar: which colour and stroke it has, and its cells by the level of the axis."""

    name: str
    tone: int
    dash: int
    cells: Mapping[str, Cell]

    def cell(self, level: str) -> Cell:
        """The cell, empty if it is not measured."""
        return self.cells.get(level, EMPTY)


@dataclass(frozen=True)
class Panel:
    """One picture: the `levels` of the factor `axis` for each line. `told` names what tells lines apart, `held` what is
    the same for all.
    """

    axis: str
    levels: tuple[str, ...]
    lines: tuple[Line, ...]
    distinguished_by: tuple[str, ...] = ()
    held: str = ""


def panels(run: RunResults) -> tuple[Panel, ...]:
    """The pictures of a run with its axis."""
    return tuple(panel for part in run.subsets for panel in _panels(part, _axis(_varying(part), part)))


def panels_of_trials(run: RunResults) -> tuple[Panel, ...]:
    """The same for an axis that is no factor, the number of the trial: each line has one cell."""
    return _panels(run, "")


def panel_of(table: Table) -> Panel:
    """A table as a picture: a line a column."""
    columns = enumerate(table.columns)
    lines = (Line(column, tone, 0, {row: table.cell(row, column) for row in table.rows}) for tone, column in columns)
    return Panel(table.factor, table.rows, tuple(lines))


def _panels(run: RunResults, axis: str) -> tuple[Panel, ...]:
    tone = _tone(_varying(run), axis, run)
    told = tone
    if tone not in {SERVER, CLIENT, ""} and len(run.classes) == 1:
        # The alternatives take the place of classes: so factors that only some of them have stand in their names.
        run = replace(run, results=Choice((tone,), run.results, frozenset({axis})).relabel(run.results))
        tone = SERVER
    varying = _varying(run)
    dash = _dash(varying, axis, tone, run)
    rest = [name for name in varying if name not in {axis, tone, dash}]
    groups: dict[tuple[str, ...], list[BenchmarkResult]] = {}
    for result in run.results:
        groups.setdefault(tuple(_level(result, name) for name in rest), []).append(result)
    names = client_names(run)
    by = tuple(_noun(name, names) for name in (told, dash) if name)
    found = []
    for held, results in groups.items():
        there = {_level(result, axis) for result in results}
        levels = tuple(level for level in run.factors.get(axis, ("",)) if level in there)
        fixed = [_held(name, level, names) for name, level in zip(rest, held, strict=True) if level]
        lines = tuple(_lines(results, axis, (tone, dash), varying, names))
        found.append(Panel(axis, levels, lines, by, ", ".join(fixed)))
    return tuple(found)


def _lines(
    results: Sequence[BenchmarkResult], axis: str, told: tuple[str, str], varying: Levels, names: Mapping[str, str]
) -> Iterator[Line]:
    cells: dict[tuple[str, str, str], list[BenchmarkResult]] = {}
    for result in results:
        cells.setdefault((_level(result, told[0]), _level(result, told[1]), _level(result, axis)), []).append(result)
    tones, dashes = (varying.get(name, ("",)) for name in told)
    for (tone, first), (dash, second) in product(enumerate(tones), enumerate(dashes)):
        mine = {
            level: Cell(tuple(found)) for (one, other, level), found in cells.items() if (one, other) == (first, second)
        }
        said = [_words(name, level, names) for name, level in zip(told, (first, second), strict=True) if name and level]
        if mine:
            yield Line(", ".join(said) or results[0].spec.server.node_class, tone, dash, mine)


def client_names(run: RunResults) -> Mapping[str, str]:
    """What each client class is called: its access network, where each has one and no two have the same."""
    clients = [result.spec.client for result in run.results]
    networks = {client.node_class: client.access_network for client in clients}
    apart = all(networks.values()) and len(set(networks.values())) == len(networks)
    return networks if apart else {name: name for name in networks}


def _varying(run: RunResults) -> Levels:
    """The factors of more than one level: those of the cases, then the client class, then the server class."""
    clients = tuple(dict.fromkeys(_level(result, CLIENT) for result in run.results))
    every = {**run.factors, CLIENT: clients, SERVER: run.classes}
    return {name: levels for name, levels in every.items() if len(levels) > 1}


def _level(result: BenchmarkResult, name: str) -> str:
    spec = result.spec
    client = "" if spec.clients else spec.client.node_class  # several at once are no class
    return {**levels_and_parameters(result), CLIENT: client, SERVER: spec.server.node_class}.get(name, "")


def _words(name: str, level: str, clients: Mapping[str, str]) -> str:
    if name == CLIENT:
        return clients[level]
    return level if name in {SERVER, Dimension.BROKER} else describe_level(name, level)


def _held(name: str, level: str, clients: Mapping[str, str]) -> str:
    return f"clients on {clients[level]}" if name == CLIENT else _words(name, level, clients)


def _noun(name: str, clients: Mapping[str, str]) -> str:
    if name == SERVER:
        return "class"
    if name == CLIENT:
        return "client class" if all(each == shown for each, shown in clients.items()) else "access network"
    return in_sentence(humanize(name))


def _axis(varying: Levels, run: RunResults) -> str:
    """The factor with the most levels, numbers of three or more before words; of what every case has."""
    own = [
        name for name in varying if name not in {CLIENT, SERVER} and not factor_traits(name).sum and _shared(run, name)
    ]
    if not all(_shared(run, name) for name in varying):
        own = [name for name in own if name not in _settings(varying, run)[:1]]  # it tells which cases have the others
    usual = "" if run.row_factor in varying else run.row_factor
    return max(own, key=lambda name: _weight(name, varying[name]), default=usual)


def _weight(name: str, levels: Sequence[str]) -> tuple[bool, int, bool]:
    numbers = are_numbers(name, levels)
    return numbers and len(levels) >= MIN_CURVE_LEVELS, len(levels), numbers


def _tone(varying: Levels, axis: str, run: RunResults) -> str:
    """What is compared: the server class, else a setting of words, else the client, else the fewest levels."""
    shared = [name for name in varying if not factor_traits(name).sum and _shared(run, name)]
    others = sorted(shared, key=lambda name: len(varying[name]))
    wanted = [SERVER, *_settings(varying, run), CLIENT, *others]
    return next((name for name in wanted if name in varying and name != axis), "")


def _settings(varying: Levels, run: RunResults) -> list[str]:
    """What can be chosen, is told in words, and every case has."""
    return [
        name for name in Dimension if name in varying and not are_numbers(name, varying[name]) and _shared(run, name)
    ]


def _dash(varying: Levels, axis: str, tone: str, run: RunResults) -> str:
    """The client, else a factor of words, as long as the lines can be told apart."""
    told = [name for name, levels in varying.items() if not are_numbers(name, levels) and _shared(run, name)]
    others = (name for name in (CLIENT, *told) if name in varying and name not in {axis, tone, SERVER})
    free = (name for name in others if not factor_traits(name).sum)
    lines = len(varying.get(tone, ("",)))
    return next((name for name in free if lines * len(varying[name]) <= _MOST_LINES), "")


def _shared(run: RunResults, name: str) -> bool:
    """Whether every case has a level of it, as it has not of a setting that one broker alone knows."""
    return name in {CLIENT, SERVER} or all(name in levels_and_parameters(result) for result in run.results)
