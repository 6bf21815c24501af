"""What a report shows of a network: its trials, and what each client had when all measured at once."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tierbench.advice.estimate import Estimate, estimate
from tierbench.advice.matrix import Cell, RunResults
from tierbench.api.result import BenchmarkResult, NodeFacts, ResultTrial
from tierbench.kinds.network.measures import RATE
from tierbench.report import charts
from tierbench.report.charts import Chart, Point, Series
from tierbench.report.figures import Figure, estimate_words
from tierbench.results.conditions import circumstances
from tierbench.results.levels import level_in_words
from tierbench.results.quantities import quantities
from tierbench.results.units import show

HEADINGS: Final = ("Sent", "Sent again", "Packets lost", "Jitter", "Ping", "Ping lost", "iperf3's CPU")


def cells(trial: ResultTrial) -> tuple[str, ...]:
    """The cells in the order of HEADINGS."""
    values = quantities([trial])
    names = (
        "sentBitsPerSecond", "retransmits", "lostPartsPerMillion", "jitterNanoseconds", "pingNanoseconds",
        "pingLostPartsPerMillion", "iperf3CpuPartsPerMillion",
    )  # fmt: skip
    return tuple(show(name, values.get(name, [None])[0]) for name in names)


_AT_ONCE: Final = ("together", "simultaneousClients")
_OF_CLIENT: Final = re.compile(r"client\d+BitsPerSecond")
_NOTE: Final = "Mean of the good trials, with 95 % confidence interval."


def is_of_client(quantity: str) -> bool:
    """Whether it is the rate of one of several clients."""
    return _OF_CLIENT.fullmatch(quantity) is not None


def device_figures(prefix: str, run: RunResults) -> tuple[Figure, ...]:
    """A picture for each server class and each other level, where clients measured at once."""
    groups: dict[tuple[str, ...], list[BenchmarkResult]] = {}
    for result in run.results:
        groups.setdefault(_held(run, result), []).append(result)
    return tuple(
        _figure(f"{prefix}-{number}", ", ".join(held), results)
        for number, (held, results) in enumerate(groups.items())
        if any(result.spec.clients for result in results)
    )


def _held(run: RunResults, result: BenchmarkResult) -> tuple[str, ...]:
    others = {name: level for name, level in circumstances(result).items() if name not in {*run.fixed, *_AT_ONCE}}
    server = [result.spec.server.node_class] if len(run.classes) > 1 else []
    return (*server, *(level_in_words(name, level) for name, level in others.items()))


def _figure(name: str, held: str, results: Sequence[BenchmarkResult]) -> Figure:
    alone = [result for result in results if not result.spec.clients]
    at_once = [result for result in results if result.spec.clients]
    devices = tuple(dict.fromkeys(client for result in at_once for client in result.spec.clients))
    series = (Series("alone", tuple(_alone(devices, alone))), Series("all at once", tuple(_at_once(devices, at_once))))
    title = f"Throughput of each client{', alone and all at once' if alone else ' at once'}"
    chart = Chart(
        name,
        f"{title}: {held}" if held else title,
        f"Bars by client. {_NOTE}",
        RATE,
        "Client",
        _names(devices),
        tuple(one for one in series if one.points),
        bars=True,
    )
    return Figure(chart, charts.bars(chart), _NOTE)


def _names(devices: Sequence[NodeFacts]) -> tuple[str, ...]:
    """Their classes; the nodes of a class that has several."""
    classes = [device.node_class for device in devices]
    return tuple(device.node if classes.count(device.node_class) > 1 else device.node_class for device in devices)


def _alone(devices: Sequence[NodeFacts], results: Sequence[BenchmarkResult]) -> Iterator[Point]:
    for level, device in enumerate(devices):
        mine = Cell(tuple(result for result in results if result.spec.client.node == device.node))
        yield from _point(level, estimate(mine, RATE))


def _at_once(devices: Sequence[NodeFacts], results: Sequence[BenchmarkResult]) -> Iterator[Point]:
    """Clients are numbered from 1, in the same order in every case of a run."""
    for level, device in enumerate(devices):
        mine = tuple(result for result in results if device in result.spec.clients)
        number = mine[0].spec.clients.index(device) + 1
        yield from _point(level, estimate(Cell(mine), f"client{number}BitsPerSecond"))


def _point(level: int, found: Estimate | None) -> Iterator[Point]:
    if found is not None:
        yield Point(level, found.mean, estimate_words(RATE, found), found.low, found.high)
