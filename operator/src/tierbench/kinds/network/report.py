"""The report of a network: the cells of its trials, and the rate of each client when all measure at once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import hypot
from typing import Final

from tierbench.advice.tables import Cell, RunResults, estimate, result_estimate
from tierbench.api.record import ResultTrial
from tierbench.api.result import BenchmarkResult, NodeFacts, ResultPhase
from tierbench.kinds.network.measures import RATE
from tierbench.kinds.network.spec import CLIENT_MODE, ClientMode
from tierbench.report import charts
from tierbench.report.charts import Chart, Point, Series
from tierbench.report.figures import Figure, describe_estimate
from tierbench.report.tables import case_name
from tierbench.results.quantities import levels_and_parameters, trial_quantities
from tierbench.results.units import describe_level, join_words, percent, show, show_interval
from tierbench.stats.distributions import mean_interval
from tierbench.stats.estimates import Estimate, difference, satterthwaite

_COLUMNS: Final = {
    "Sent": "sentBitsPerSecond",
    "Retransmits": "retransmits",
    "Packets lost": "lostPartsPerMillion",
    "Jitter": "jitterNanoseconds",
    "Ping": "pingNanoseconds",
    "Ping lost": "pingLostPartsPerMillion",
    "Ping under load": "pingUnderLoadNanoseconds",
    "Lost under load": "pingUnderLoadLostPartsPerMillion",
    "iperf3's CPU": "iperf3CpuPartsPerMillion",
}
_DIFFERENCE: Final = "Nanoseconds"
_MOST_ANSWERS: Final = 12
_AT_ONCE: Final = ("clientMode", "simultaneousClients")
_NOTE: Final = "Mean of the good trials, with 95% confidence interval."


def cells(trial: ResultTrial) -> dict[str, str]:
    """Returns the cells of a trial by heading."""
    values = trial_quantities("NetworkBenchmark", trial)
    idle, loaded = values.get("pingNanoseconds"), values.get("pingUnderLoadNanoseconds")
    increase = None if idle is None or loaded is None else loaded - idle
    shown = {heading: show(name, values.get(name)) for heading, name in _COLUMNS.items()}
    return {**shown, "Ping increase": show(_DIFFERENCE, increase)}


def device_figures(prefix: str, run: RunResults) -> tuple[Figure, ...]:
    """Returns a figure for each server class and each other level at which clients measured at once."""
    groups: dict[tuple[str, ...], list[BenchmarkResult]] = {}
    for result in run.results:
        groups.setdefault(_held(run, result), []).append(result)
    return tuple(
        _figure(f"{prefix}-{number}", ", ".join(held), results)
        for number, (held, results) in enumerate(groups.items())
        if any(result.spec.clients for result in results)
    )


def _held(run: RunResults, result: BenchmarkResult) -> tuple[str, ...]:
    others = {
        name: level for name, level in levels_and_parameters(result).items() if name not in {*run.fixed, *_AT_ONCE}
    }
    server = [result.spec.server.node_class] if len(run.classes) > 1 else []
    return (*server, *(describe_level(name, level) for name, level in others.items()))


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
    """Returns the class of each device, or its node if a class has several."""
    classes = [device.node_class for device in devices]
    return tuple(device.node if classes.count(device.node_class) > 1 else device.node_class for device in devices)


def _alone(devices: Sequence[NodeFacts], results: Sequence[BenchmarkResult]) -> Iterator[Point]:
    for level, device in enumerate(devices):
        mine = Cell(tuple(result for result in results if result.spec.client.node == device.node))
        yield from _point(level, estimate(mine, RATE))


def _at_once(devices: Sequence[NodeFacts], results: Sequence[BenchmarkResult]) -> Iterator[Point]:
    """Yields the rates of clients, which have numbers from 1 in the same order in every case of a run."""
    for level, device in enumerate(devices):
        mine = tuple(result for result in results if device in result.spec.clients)
        number = mine[0].spec.clients.index(device) + 1
        yield from _point(level, estimate(Cell(mine), f"client{number}BitsPerSecond"))


def _point(level: int, found: Estimate | None) -> Iterator[Point]:
    if found is not None:
        yield Point(level, found.mean, describe_estimate(RATE, found), found.low, found.high)


@dataclass(frozen=True)
class ClientRates:
    """The rate of a client alone and together with all others, in bits per second.

    `name` is its class, or its node if several clients are of one class.
    """

    name: str
    alone: Estimate
    at_once: Estimate

    @property
    def share(self) -> float:
        """The rate at once divided by the rate alone."""
        return self.at_once.mean / self.alone.mean

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% confidence interval of the share, by the delta method; None if an error is unknown."""
        both = self.alone, self.at_once
        errors = [one.error / one.mean for one in both if one.error is not None]
        if len(errors) < len(both):
            return None
        degrees = satterthwaite([(error**2, one.degrees) for error, one in zip(errors, both, strict=True)])
        return mean_interval(self.share, self.share * hypot(*errors), degrees)


@dataclass(frozen=True)
class AtOnce:
    """A case of all clients at once, with those that were also measured alone. `held` are the levels that vary."""

    server: str
    held: Mapping[str, str]
    clients: tuple[ClientRates, ...]

    @property
    def foremost(self) -> tuple[tuple[str, ...], float]:
        """The fewest clients that have more than half of the total rate, and their share of it."""
        total = sum(client.at_once.mean for client in self.clients)
        names: tuple[str, ...] = ()
        share = 0.0
        for client in sorted(self.clients, key=lambda client: -client.at_once.mean):
            names, share = (*names, client.name), share + client.at_once.mean / total
            if share > 1 / 2:
                break
        return names, share


def at_once(run: RunResults) -> Iterator[AtOnce]:
    """Yields every case of all clients at once of which a client was also measured alone."""
    alone = {_place(result): result for result in run.results if _is(ClientMode.ALONE, result)}
    for result in run.results:
        if not _is(ClientMode.SIMULTANEOUS, result):
            continue
        clients = tuple(_clients(result, alone))
        if clients:
            varying = {name: level for name, level in result.spec.levels.items() if name not in run.fixed}
            varying.pop(CLIENT_MODE, None)
            yield AtOnce(result.spec.server.node_class, varying, clients)


def _is(level: ClientMode, result: BenchmarkResult) -> bool:
    return result.spec.levels.get(CLIENT_MODE) == level and result.status.phase is ResultPhase.COMPLETE


def _place(result: BenchmarkResult, client: str = "") -> tuple[object, ...]:
    """Returns what a client has in common with its case alone."""
    levels = {**result.spec.levels, CLIENT_MODE: ""}
    return result.spec.server.node, client or result.spec.client.node, *sorted(levels.items())


def _clients(result: BenchmarkResult, alone: Mapping[tuple[object, ...], BenchmarkResult]) -> Iterator[ClientRates]:
    classes = [client.node_class for client in result.spec.clients]
    for number, client in enumerate(result.spec.clients, start=1):
        other = alone.get(_place(result, client.node))
        before = None if other is None else result_estimate(other, RATE)
        now = result_estimate(result, f"client{number}BitsPerSecond")
        if before is not None and now is not None and before.mean > 0 and now.mean > 0:
            one_of_class = classes.count(client.node_class) == 1
            yield ClientRates(client.node_class if one_of_class else client.node, before, now)


def answers(run: RunResults) -> tuple[str, ...]:
    """Returns what each client got at once, and what a load does to round trips."""
    return (*client_answers(run), *load_answers(run))


def load_answers(run: RunResults) -> tuple[str, ...]:
    """Returns a sentence per case with echo requests under load, and one for the cases beyond the first 12.

    For example: "Ping, Upload, cloud to phone: 1.02 ms idle, 48.5 ms under load, difference 47.5 ms (46.9–48.0)."
    """
    found = [answer for result in run.results if (answer := _load_answer(run, result))]
    left = len(found) - _MOST_ANSWERS
    rest = (f"Ping of {left} more cases under load: see `kubectl tierbench report`.",) if left > 0 else ()
    return (*found[:_MOST_ANSWERS], *rest)


def _load_answer(run: RunResults, result: BenchmarkResult) -> str:
    idle, loaded = result_estimate(result, "pingNanoseconds"), result_estimate(result, "pingUnderLoadNanoseconds")
    if idle is None or loaded is None:
        return ""
    found = difference(idle, loaded)
    between = show(_DIFFERENCE, loaded.mean - idle.mean) if found is None else show_interval(_DIFFERENCE, *found)
    means = f"{show(_DIFFERENCE, idle.mean)} idle, {show(_DIFFERENCE, loaded.mean)} under load"
    return f"Ping, {case_name(run, result)}: {means}, difference {between}."


def client_answers(run: RunResults) -> tuple[str, ...]:
    """Returns a sentence per case of all clients at once.

    For example: "All at once, phone gets 60% of the total throughput. Compared with alone: phone 98%, tablet 40%."
    """
    several = len(run.classes) > 1
    return tuple(_client_answer(one, one.server if several else "") for one in at_once(run))


def _client_answer(one: AtOnce, server: str) -> str:
    held = [describe_level(name, level) for name, level in one.held.items()]
    where = ", ".join(filter(None, (*held, server and f"to {server}")))
    clients = ", ".join(f"{client.name} {_share(client)}" for client in one.clients)
    text = f"All at once{f' ({where})' if where else ''}"
    names, share = one.foremost
    if 2 * len(names) >= len(one.clients):
        return f"{text}, compared with alone: {clients}."
    verb = "gets" if len(names) == 1 else "get"
    return (
        f"{text}, {join_words(names)} {verb} {percent(share)} of the total throughput. Compared with alone: {clients}."
    )


def _share(client: ClientRates) -> str:
    if client.interval is None:
        return percent(client.share)
    low, high = (f"{100 * end:.0f}" for end in client.interval)
    return f"{percent(client.share)} ({low}–{high}%)"
