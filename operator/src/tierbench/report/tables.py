"""The long tables of a report: nodes and trials."""

from dataclasses import dataclass
from typing import Final

from tierbench.advice.matrix import RunResults
from tierbench.api.contract import Outcome
from tierbench.api.measurements import EchoSpread, NodeNetwork
from tierbench.api.result import BenchmarkResult, NodeFacts, ResultTrial
from tierbench.kinds.registry import kind_of
from tierbench.report.notes import networks
from tierbench.results.computers import NAMES, node_computers
from tierbench.results.levels import show_level
from tierbench.results.node_network import quantities as measured
from tierbench.results.quantities import quantities, rate_quantity
from tierbench.results.units import DASH, show


@dataclass(frozen=True)
class NodeColumn:
    """A node: its name, what it was used for, and its facts in the order of NODE_FACTS."""

    node: str
    role: str
    facts: tuple[str, ...]


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
    *NAMES,
)


def node_columns(run: RunResults) -> tuple[NodeColumn, ...]:
    """Every node that took part, servers first."""
    roles: dict[NodeFacts, list[str]] = {}
    for role in ("server", "client"):
        for result in run.results:
            used = roles.setdefault(getattr(result.spec, role), [])
            if role not in used:
                used.append(role)
    said = {computer.node: computer.words for computer in node_computers(run.results)}
    return tuple(
        NodeColumn(node.node or "none", " and ".join(used), (*_facts(node), *_said(said.get(node.node))))
        for node, used in roles.items()
    )


def _said(words_of_node: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(text or DASH for text in words_of_node or ("",) * len(NAMES))


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


NETWORK_HEADINGS: Final = (
    "Upload", "Download", "Sent again", "Ping", "Shortest", "99th percentile", "Longest", "S.d.", "Ping lost",
    "Access",
)  # fmt: skip


@dataclass(frozen=True)
class NetworkRow:
    """A pair of nodes, and what the preflight found, in the order of NETWORK_HEADINGS; or why something is missing."""

    name: str
    cells: tuple[str, ...]
    missing: str


def network_rows(run: RunResults) -> tuple[NetworkRow, ...]:
    """Every pair of nodes between which the run measured."""
    return tuple(_network_row(network) for network in networks(run))


def _network_row(network: NodeNetwork) -> NetworkRow:
    known, ping = measured(network), network.ping or EchoSpread()
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
    """A trial as text, cell by cell in the order of `trial_headings`, after the levels that vary."""

    cells: tuple[str, ...]
    muted: bool


_FIRST_HEADINGS: Final = ("Class", "Node", "Trial", "Outcome", "Time", "Throughput", "Retries")
_LAST_HEADINGS: Final = ("Begun",)


def trial_headings(run: RunResults) -> tuple[str, ...]:
    """What the cells of its trials are, after the levels that vary."""
    return (*_FIRST_HEADINGS, *kind_of(run.benchmark.kind).report.headings, *_LAST_HEADINGS)


def trial_rows(run: RunResults) -> tuple[TrialRow, ...]:
    """Every trial of every case, warm-up ones included."""
    varying = [name for name in run.factors if name not in run.fixed or name == run.row_factor]
    kind = kind_of(run.benchmark.kind).report
    return tuple(
        TrialRow(
            (
                *(show_level(name, result.spec.levels.get(name, "")) for name in varying),
                *_first_cells(result, trial),
                *kind.cells(trial),
                trial.start_time[11:19],
            ),
            trial.warmup or trial.outcome is Outcome.FAILED,
        )
        for result in run.results
        for trial in result.status.trials
    )


def _first_cells(result: BenchmarkResult, trial: ResultTrial) -> tuple[str, ...]:
    rate = rate_quantity(result.spec.benchmark.kind)
    return (
        result.spec.server.node_class,
        result.spec.server.node,
        f"w{trial.trial}" if trial.warmup else str(trial.trial),
        trial.outcome if trial.failure is None else f"{trial.outcome}: {trial.failure.reason}",
        show("durationNanoseconds", trial.duration_nanoseconds or None),
        show(rate, quantities([trial]).get(rate, [None])[0]),
        _retries(result.spec.benchmark.kind, trial),
    )


def _retries(kind: str, trial: ResultTrial) -> str:
    said = kind_of(kind).report.retries(trial)
    if said is not None:
        return said
    known = quantities([trial]).get("retries")
    return DASH if known is None else f"{known[0]:.0f}"
