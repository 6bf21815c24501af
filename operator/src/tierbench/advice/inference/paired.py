"""Alternatives that stand on the same nodes: what a node does to all of them alike is no difference between them."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from statistics import fmean

from tierbench.advice.inference.hierarchy import Trials

Cells = Mapping[tuple[str, Hashable], Mapping[str, Trials]]
"""By alternative and level: what the trials of each node say."""


def paired(cells: Cells) -> Cells:
    """The same without it, where at every level all alternatives were measured on the same nodes; else unchanged.

    Of a level, each node is moved by how far its mean over the alternatives lies from that of all nodes. What is left
    is made wider by n / (n - 1) for n alternatives, which are then taken for independent: by the root of it, so that
    differences have the variance of paired ones (Morey, Tutorials in Quantitative Methods for Psychology 4, 2008), and
    by the root again, since n alternatives tell as much of that variance as n - 1 independent ones.
    """
    levels: dict[Hashable, list[str]] = {}
    for name, level in cells:
        levels.setdefault(level, []).append(name)
    if any(
        cells[name, level].keys() != cells[names[0], level].keys() for level, names in levels.items() for name in names
    ):
        return cells
    return {place: _paired(cells, place, levels[place[1]]) for place in cells}


def _paired(cells: Cells, place: tuple[str, Hashable], names: list[str]) -> Mapping[str, Trials]:
    mine, level = cells[place], place[1]
    if len(names) == 1 or len(mine) == 1:
        return mine
    wider = len(names) / (len(names) - 1)
    shift = {node: fmean(cells[name, level][node].log for name in names) for node in mine}
    own, common = fmean(one.log for one in mine.values()), fmean(shift.values())
    return {
        node: replace(one, log=own + wider * (one.log - own - (shift[node] - common))) for node, one in mine.items()
    }
