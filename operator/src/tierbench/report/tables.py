"""The tables of a report: effects of factors, nodes, networks, trials, cautions for the run, and notes on cases."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tierbench.advice.answer import factor_statements, summarize_run
from tierbench.advice.effects import SIGNIFICANT, Effect, LevelEffect
from tierbench.advice.tables import RunResults, smaller_is_better
from tierbench.api.contract import Outcome as TrialOutcome
from tierbench.api.measurements import EchoSpread, NodeNetwork
from tierbench.api.record import ResultTrial
from tierbench.api.result import BenchmarkResult, NodeFacts, ResultPhase
from tierbench.kinds.registry import kind_of
from tierbench.results.nodes import COMPUTER_COLUMNS, network_quantities, node_computers
from tierbench.results.quantities import is_bare_mean, rate_quantity, trial_quantities
from tierbench.results.units import DASH, describe_level, humanize, join_words, percent, show, show_level, title
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
_ENOUGH_TRIALS: Final = 10


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
        show("pingNanoseconds", ping.min_nanoseconds),
        show("pingNanoseconds", ping.p99_nanoseconds),
        show("pingNanoseconds", ping.max_nanoseconds),
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
        for trial in result.recorded.trials
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


@dataclass(frozen=True)
class CaseNote:
    """A note on one case. `kind` is Failed, Not valid or Fact."""

    kind: str
    case: str
    reason: str
    message: str


def case_name(run: RunResults, result: BenchmarkResult) -> str:
    """Returns the name of a case, from the levels that vary and its classes."""
    varying = [show_level(name, level) for name, level in result.spec.levels.items() if name not in run.fixed]
    return f"{', '.join([*varying, result.spec.server.node_class])} to {result.spec.client.node_class}"


def case_notes(run: RunResults) -> tuple[CaseNote, ...]:
    """Returns the notes on cases: failures, then what may have distorted results, then what explains them."""
    failed, invalid, facts = [], [], []
    for result in run.results:
        name, status = case_name(run, result), result.status
        if status.phase is ResultPhase.FAILED:
            failed.append(CaseNote("Failed", name, status.reason, status.message))
        invalid += [CaseNote("Not valid", name, note.reason, note.message) for note in status.invalid]
        facts += [CaseNote("Fact", name, note.reason, note.message) for note in status.facts]
    return (*failed, *invalid, *facts)


def networks(run: RunResults) -> tuple[NodeNetwork, ...]:
    """Returns what the preflight of a run measured, one entry per pair of nodes."""
    return tuple(dict.fromkeys(network for result in run.results for network in result.spec.networks))


def cautions(run: RunResults) -> tuple[str, ...]:
    """Returns what limits the results of a run."""
    rules = (_running, _failed, _invalid, _means_alone, _few_trials, _one_node)
    return tuple(text for rule in rules if (text := rule(run)))


def _count(run: RunResults, matches: Callable[[BenchmarkResult], bool]) -> str:
    """Returns how many cases match, such as "2 of 10 cases"; empty if there are none."""
    count = sum(map(matches, run.results))
    return f"{count} of {len(run.results)} cases" if count else ""


def _running(run: RunResults) -> str:
    count = _count(run, lambda result: result.status.phase is ResultPhase.RUNNING)
    return f"The run is not finished: {count} that started are still running." if count else ""


def _failed(run: RunResults) -> str:
    count = _count(run, lambda result: result.status.phase is ResultPhase.FAILED)
    return f"{count} failed; see the notes on single cases." if count else ""


def _invalid(run: RunResults) -> str:
    count = _count(run, lambda result: result.status.valid is False)
    return f"{count} are not valid: their results may be distorted." if count else ""


def _means_alone(run: RunResults) -> str:
    count = _count(run, is_bare_mean)
    if not count:
        return ""
    return (
        f"{count} are published means without the number of trials or the standard deviation: they are shown, and no "
        "verdict uses them."
    )


def _few_trials(run: RunResults) -> str:
    counted = (result.spec.trials for result in run.results if not is_bare_mean(result))
    fewest = min(counted, default=_ENOUGH_TRIALS)
    if fewest >= _ENOUGH_TRIALS:
        return ""
    trials = f"{fewest} trial{'s' * (fewest != 1)}"
    return f"A case has only {trials}: intervals are imprecise with fewer than {_ENOUGH_TRIALS} trials."


def _one_node(run: RunResults) -> str:
    nodes: dict[str, set[str]] = {}
    for result in run.results:
        nodes.setdefault(result.spec.server.node_class, set()).add(result.spec.server.node)
    single = [name for name, members in nodes.items() if len(members) == 1]
    if not single:
        return ""
    verb, each = ("were", " each") if len(single) > 1 else ("was", "")
    return f"{join_words(single)} {verb} measured on one node{each}: how much nodes of a class differ is unknown."
