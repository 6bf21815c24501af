"""The tables of a report: effects of factors, nodes, networks and trials."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tierbench.advice.answer import factor_statements, summarize_run
from tierbench.advice.effects import SIGNIFICANT, Effect, LevelEffect
from tierbench.advice.tables import RunResults, smaller_is_better
from tierbench.api.contract import Outcome as TrialOutcome
from tierbench.api.measurements import EchoSpread, NodeNetwork
from tierbench.api.result import BenchmarkResult, NodeFacts, ResultTrial
from tierbench.kinds.registry import kind_of
from tierbench.report.notes import networks
from tierbench.results.nodes import COMPUTER_COLUMNS, network_quantities, node_computers
from tierbench.results.quantities import rate_quantity, trial_quantities
from tierbench.results.units import DASH, describe_level, humanize, percent, show, show_level, title
from tierbench.stats.posterior import Relation

NODE_FACTS = (
    "Class",
    "Architecture",
    "CPUs",
    "Memory",
    "Access network",
    "Storage",
    "Kernel",
    "Operating system",
    "Kubelet",
    "Container runtime",
    *COMPUTER_COLUMNS,
)
NETWORK_HEADINGS: Final = (
    "Upload", "Download", "Retransmits", "Ping", "Shortest", "99th percentile", "Longest", "S.d.", "Ping lost",
    "Access",
)  # fmt: skip
_FIRST_HEADINGS: Final = ("Class", "Node", "Trial", "Outcome", "Time", "Throughput", "Retries")
_LAST_HEADINGS: Final = ("Started",)
_OPEN_ROWS: Final = 24


@dataclass(frozen=True)
class NodeColumn:
    """A node, its role, and its facts in the order of NODE_FACTS."""

    node: str
    role: str
    facts: tuple[str, ...]


def node_columns(run: RunResults) -> tuple[NodeColumn, ...]:
    """Returns every node of a run, servers first."""
    roles: dict[NodeFacts, list[str]] = {}
    for role in ("server", "client"):
        for result in run.results:
            used = roles.setdefault(getattr(result.spec, role), [])
            if role not in used:
                used.append(role)
    computers = {computer.node: computer.cells for computer in node_computers(run.results)}
    return tuple(
        NodeColumn(node.node or "none", " and ".join(used), (*_facts(node), *_computer_facts(computers.get(node.node))))
        for node, used in roles.items()
    )


def _computer_facts(cells: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(text or DASH for text in cells or ("",) * len(COMPUTER_COLUMNS))


def _facts(node: NodeFacts) -> tuple[str, ...]:
    return (
        node.node_class,
        node.architecture or "–",
        f"{node.cpu_millicores / 1000:g}" if node.cpu_millicores else "–",
        show("memoryBytes", node.memory_bytes) if node.memory_bytes else "–",
        node.access_network or "–",
        node.storage or "–",
        node.kernel or "–",
        node.os_image or "–",
        node.kubelet or "–",
        node.runtime or "–",
    )


@dataclass(frozen=True)
class NetworkRow:
    """What the preflight measured between two nodes, in the order of NETWORK_HEADINGS, and why something is missing."""

    name: str
    cells: tuple[str, ...]
    missing: str


def network_rows(run: RunResults) -> tuple[NetworkRow, ...]:
    """Returns a row for every pair of nodes between which the run measured."""
    return tuple(_network_row(network) for network in networks(run))


def _network_row(network: NodeNetwork) -> NetworkRow:
    known, ping = network_quantities(network), network.ping or EchoSpread()
    ways = [way for way in (network.upload, network.download) if way is not None]
    access = [name for name in (network.client_access_network, network.server_access_network) if name]
    cells = (
        show("uploadBitsPerSecond", known.get("uploadBitsPerSecond")),
        show("downloadBitsPerSecond", known.get("downloadBitsPerSecond")),
        str(sum(way.retransmits for way in ways)) if ways else DASH,
        show("pingNanoseconds", ping.mean_nanoseconds),
        show("pingNanoseconds", ping.minimum_nanoseconds),
        show("pingNanoseconds", ping.p99_nanoseconds),
        show("pingNanoseconds", ping.maximum_nanoseconds),
        show("pingNanoseconds", ping.standard_deviation_nanoseconds),
        show("pingLostPartsPerMillion", known.get("pingLostPartsPerMillion")),
        " to ".join(access) or DASH,
    )
    missing = "" if network.reason is None else f"{network.reason}: {network.message}"
    return NetworkRow(f"{network.client_node} to {network.server_node}", cells, missing)


@dataclass(frozen=True)
class TrialRow:
    """A trial: the levels that vary, then its cells in the order of `trial_headings`."""

    cells: tuple[str, ...]
    muted: bool


def trial_headings(run: RunResults) -> tuple[str, ...]:
    """Returns the headings of the cells of a trial, without those of the levels that vary."""
    kind = kind_of(run.benchmark.kind)
    return (*_FIRST_HEADINGS, *kind.report.cells(kind.measures.everything), *_LAST_HEADINGS)


def trial_rows(run: RunResults) -> tuple[TrialRow, ...]:
    """Returns a row for every trial of every case, including warm-up trials."""
    varying = [name for name in run.factors if name not in run.fixed or name == run.row_factor]
    kind = kind_of(run.benchmark.kind).report
    return tuple(
        TrialRow(
            (
                *(show_level(name, result.spec.levels.get(name, "")) for name in varying),
                *_first_cells(result, trial),
                *kind.cells(trial).values(),
                trial.start_time[11:19],
            ),
            trial.warmup or trial.outcome is TrialOutcome.FAILED,
        )
        for result in run.results
        for trial in result.status.trials
    )


def _first_cells(result: BenchmarkResult, trial: ResultTrial) -> tuple[str, ...]:
    kind = result.spec.benchmark.kind
    rate = rate_quantity(kind)
    return (
        result.spec.server.node_class,
        result.spec.server.node,
        f"w{trial.trial}" if trial.warmup else str(trial.trial),
        trial.outcome if trial.failure is None else f"{trial.outcome}: {trial.failure.reason}",
        show("durationNanoseconds", trial.duration_nanoseconds or None),
        show(rate, trial_quantities(kind, trial).get(rate)),
        _retries(kind, trial),
    )


def _retries(kind: str, trial: ResultTrial) -> str:
    text = kind_of(kind).report.retries(trial)
    if text is not None:
        return text
    known = trial_quantities(kind, trial).get("retries")
    return DASH if known is None else f"{known:.0f}"


@dataclass(frozen=True)
class EffectRow:
    """The ratio of an effect, and the conclusion from it."""

    factor: str
    pair: str
    place: str
    ratio: str
    conclusion: str


@dataclass(frozen=True)
class EffectTable:
    """The effects of factors on one quantity."""

    title: str
    statements: tuple[str, ...]
    rows: tuple[EffectRow, ...]

    @property
    def open(self) -> bool:
        """Whether the table is short enough to be shown open."""
        return len(self.rows) <= _OPEN_ROWS


def effect_tables(run: RunResults) -> tuple[EffectTable, ...]:
    """Returns a table for each quantity with effects."""
    return tuple(
        EffectTable(
            title(summary.quantity),
            tuple(factor_statements([summary])),
            tuple(row for effect in summary.effects for row in _rows(effect)),
        )
        for summary in summarize_run(run)
        if summary.effects
    )


def _rows(effect: Effect) -> Iterator[EffectRow]:
    for each in effect.level_effects:
        place = describe_level(effect.by, each.level) if effect.by else ""
        yield EffectRow(humanize(effect.factor), _pair(effect), place, _ratio(each), _conclusion(effect, each))


def _pair(effect: Effect) -> str:
    return f"{effect.second} compared with {effect.first}"


def _ratio(each: LevelEffect) -> str:
    return f"{each.ratio.value:.3g} ({each.ratio.low:.3g}–{each.ratio.high:.3g})"


def _conclusion(effect: Effect, each: LevelEffect) -> str:
    if each.relation is Relation.EQUAL:
        return f"equal within {percent(effect.margin)}"
    if each.relation not in SIGNIFICANT:
        return "inconclusive"
    worse = (each.ratio.value > 1) == smaller_is_better(effect.quantity)
    perhaps = each.relation in {Relation.AHEAD, Relation.BEHIND}
    return f"{'worse' if worse else 'better'}{f', perhaps by less than {percent(effect.margin)}' if perhaps else ''}"
